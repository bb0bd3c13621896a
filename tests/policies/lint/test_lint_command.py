"""`flexspot lint` as a command: exit codes, formats, standard input, and options."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from command_line import flexspot
from lint_runs import UNTAINTED_POOL

pytestmark = pytest.mark.slow

FLEXSPOT = Path(__file__).resolve().parents[3] / ".venv" / "bin" / "flexspot"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a folder with one pool that breaks a rule of severity high."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "teams").mkdir()
    (tmp_path / "teams" / "pool.yaml").write_text(UNTAINTED_POOL)
    return tmp_path


def flexspot_lint(folder: Path, *arguments: str, stdin: bytes = b"") -> tuple[int, str, str]:
    ended = flexspot("lint", *arguments, folder=folder, given=stdin)
    return ended.returncode, ended.stdout, ended.stderr


@pytest.mark.parametrize(
    "arguments,code",
    [
        (["teams", "--fail-on", "low"], 1),
        (["teams", "--fail-on", "critical"], 0),
        (["nowhere"], 2),
        (["teams", "--fail-on", "grave"], 2),
        (["teams", "--format", "xml"], 2),
        (["teams", "--config", "nowhere.yaml"], 2),
        (["teams", "--baseline", "nowhere.json"], 2),
        (["teams", "--write-baseline"], 2),
        (["teams", "--write-baseline", "--baseline", "nowhere/baseline.json"], 2),
        ([], 2),
    ],
    ids=str,
)
def test_the_exit_code_shows_the_result(arguments: list[str], code: int, repository: Path) -> None:
    ended, printed, stderr = flexspot_lint(repository, *arguments)

    assert ended == code, printed + stderr
    assert "Traceback" not in stderr


def test_standard_input_is_judged_together_with_files(repository: Path) -> None:
    code, printed, _ = flexspot_lint(repository, "-", "teams", "--format", "json", stdin=UNTAINTED_POOL.encode())

    assert code == 1
    assert {each["path"] for each in json.loads(printed)["findings"]} == {"<stdin>", "teams/pool.yaml"}


def test_clusters_are_named_on_the_command_line(repository: Path) -> None:
    pool = UNTAINTED_POOL + "      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: NAME}\n"
    node_class = "---\napiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: NAME}\nspec: {role: nodes}\n"
    for name, other in (("a", "a"), ("b", "a")):
        (repository / f"{name}.yaml").write_text(pool.replace("NAME", other) + node_class.replace("NAME", name))

    code, printed, stderr = flexspot_lint(repository, ".", "--cluster", "a=a.yaml", "--cluster", "b=b.yaml", "--format", "json")
    missing = [each for each in json.loads(printed)["findings"] if each["rule"] == "nodepool-references-missing-class"]
    assert [(each["path"], each["clusters"]) for each in missing] == [("b.yaml", ["b"])], stderr
    assert code == 1
    for wrong in ("a", "=a.yaml", "a=nowhere"):
        assert flexspot_lint(repository, ".", "--cluster", wrong)[0] == 2


def test_the_configuration_is_found_in_parent_folders_and_the_command_line_overrides_it(repository: Path) -> None:
    (repository / "flexspot-lint.yaml").write_text("fail-on: critical\n")

    assert flexspot_lint(repository / "teams", ".")[0] == 0
    assert flexspot_lint(repository / "teams", ".", "--fail-on", "medium")[0] == 1


def test_a_baseline_is_written_and_then_accepted(repository: Path) -> None:
    written, printed, stderr = flexspot_lint(repository, "teams", "--baseline", "baseline.json", "--write-baseline")
    code, summary, _ = flexspot_lint(repository / "teams", ".", "--baseline", "../baseline.json")
    (repository / "teams" / "another.yaml").write_text(UNTAINTED_POOL)
    again, _, _ = flexspot_lint(repository, "teams", "--baseline", "baseline.json")

    assert (written, printed, code, again) == (0, "", 0, 1)
    assert "baseline.json" in stderr
    assert "suppressed." in summary


def test_diff_prints_changes_fix_writes_them_and_unfixed_findings_are_reported(repository: Path) -> None:
    pool = repository / "teams" / "pool.yaml"

    code, printed, stderr = flexspot_lint(repository, "teams", "--diff", "--owner", "team=research")
    assert (code, pool.read_text()) == (1, UNTAINTED_POOL)
    assert "+    team: research\n" in printed
    assert "would fix 2 findings in 1 files." in stderr

    code, printed, stderr = flexspot_lint(repository, "teams", "--fix")
    assert code == 1
    assert "pool.yaml:3: missing-owner-labels is left: name its owner with --owner KEY=VALUE." in stderr
    assert "team: research" not in pool.read_text()
    assert "spot-pool-without-taint" not in printed

    assert flexspot_lint(repository, "teams", "--fix", "--owner", "colour=blue")[0] == 2


def test_a_reader_that_closes_the_pipe_early_causes_no_error_message(repository: Path) -> None:
    for number in range(300):
        (repository / "teams" / f"{number}.yaml").write_text(UNTAINTED_POOL)
    with subprocess.Popen([FLEXSPOT, "lint", "teams"], cwd=repository, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.read(10)
        process.stdout.close()
        stderr = process.stderr.read()
        process.wait(timeout=60)

    assert stderr == b""
