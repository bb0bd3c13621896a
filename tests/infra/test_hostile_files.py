"""Stack files, manifests and plans of somebody who means harm: nothing runs, nothing outside is read, no terminal and no comment obeys.

SECURITY.md says what each may do; these tests hold what it says.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from command_line import CHECKOUT, flexspot
from test_cost_commands import plan_file

if TYPE_CHECKING:
    from pathlib import Path
    from subprocess import CompletedProcess

pytestmark = pytest.mark.slow

SECONDS = 60
"""What a command may take over a file; each of these took for ever, or all memory, somewhere."""

MARKUP = "x|[y](javascript:alert(1))<script>alert(1)</script>`\n# heading @everyone"
ESCAPES = "\x1b[2J\x1b]0;title\x07\u202egnp.exe"
"""Clears a terminal, gives it another title, turns text around."""


@dataclass(frozen=True)
class Project:
    """A project with one stack, whose file a test changes as its writer would."""

    folder: Path

    @property
    def file(self) -> Path:
        return self.folder / "stacks" / "Pulumi.dev-gke.yaml"

    @property
    def touched(self) -> Path:
        """What code that runs would leave behind."""
        return self.folder / "touched"

    def write(self, before: str, after: str) -> None:
        text = self.file.read_text()
        assert before in text
        self.file.write_text(text.replace(before, after, 1))

    def flexspot(self, *arguments: str | Path) -> CompletedProcess[str]:
        return flexspot(*arguments, folder=self.folder, timeout=SECONDS)

    def refused(self, *told: str) -> str:
        """What the check of the stack says, which is what is wrong with it, in words, and with exit code 2."""
        done = self.flexspot("settings", "check", "-s", "dev-gke")
        assert done.returncode == 2, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        assert [each for each in told if each not in done.stderr] == []
        return done.stdout + done.stderr


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "stacks").mkdir()
    shutil.copy(CHECKOUT / "stacks" / "Pulumi.dev-gke.yaml", tmp_path / "stacks")
    (tmp_path / "Pulumi.yaml").write_text("name: own\nruntime: python\nstackConfigDir: stacks\n")
    return Project(tmp_path)


def bomb(indent: str) -> str:
    """Ten lines that hold three billion values."""
    levels = [f"{indent}level0: &level0 [1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    levels += [f"{indent}level{number}: &level{number} [{', '.join([f'*level{number - 1}'] * 9)}]" for number in range(1, 10)]
    return "\n".join(levels) + "\n"


def test_a_stack_file_runs_no_code(project: Project) -> None:
    project.write("    owner:", f'    extra: !!python/object/apply:os.system ["touch {project.touched}"]\n    owner:')

    project.refused("python/object/apply")
    assert not project.touched.exists()


@pytest.mark.parametrize("below", ["    owner:", "    pools:"])
def test_aliases_upon_aliases_end_a_check_at_once(below: str, project: Project) -> None:
    project.write(below, bomb("    ") + below)

    project.refused("holds over 100,000 values")


@pytest.mark.parametrize(
    "number,told",
    [
        ("9" * 5000, "cannot be read"),
        (".inf", "is not a finite number"),
        (".nan", "is not a finite number"),
        ("1e400", "should be a whole number"),
    ],
    ids=["too long to read", "infinite", "no number", "beyond floats"],
)
def test_numbers_without_measure_are_refused_at_their_line(number: str, told: str, project: Project) -> None:
    project.write("max_nodes: 3", f"max_nodes: {number}")

    project.refused(told)


@pytest.mark.parametrize("written", [MARKUP, ESCAPES, "$(touch touched)", "x" * 1_000_000])
def test_a_name_is_a_name_and_nothing_else(written: str, project: Project) -> None:
    project.write("owner: ml-platform", f"owner: {json.dumps(written)}")

    assert not set(project.refused("owner", "is not a valid name")) & {"\x1b", "\x07", "\u202e"}
    assert not project.touched.exists()


@pytest.mark.parametrize("stack", ["/etc/passwd", "../stacks/Pulumi.dev-gke"])
def test_the_name_of_a_stack_is_no_path(stack: str, project: Project) -> None:
    done = project.flexspot("settings", "check", "-s", stack)

    assert done.returncode == 2
    assert "there is no stack" in done.stderr


def test_names_of_a_plan_are_text_in_a_comment_and_command_no_terminal(tmp_path: Path) -> None:
    """A plan whose pool has a name that no stack file may have, as somebody would hand it to a job that comments."""
    path = plan_file(tmp_path, "dev-gke")
    path.write_text(path.read_text().replace('"l4-spot"', json.dumps(MARKUP + ESCAPES)))
    comment, shown = flexspot("cost", path, "--format", "markdown"), flexspot("cost", path)

    assert (comment.returncode, shown.returncode) == (0, 0)
    assert "alert(1)" in comment.stdout
    commands = ("<script", "[y](", "\n# heading", "@everyone", "\x1b", "\x07", "\u202e", "&#8238;")
    assert [each for each in commands if each in comment.stdout] == []
    assert "\\x1b[2J" in shown.stdout, "everybody sees it"
    assert not set(shown.stdout) & {"\x1b", "\x07", "\u202e"}


POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: job}\nspec:\n  containers:\n  - name: main\n    image: acme/train:1\n"


@pytest.mark.parametrize(
    "more,told",
    [
        ("  deep: " + "[" * 20_000 + "]" * 20_000 + "\n", "nested over 100 deep"),
        (f"    resources: {{limits: {{nvidia.com/gpu: {'9' * 5000}}}}}\n", "has a limit of 1.0"),
    ],
    ids=["deep", "a number of 5,000 digits"],
)
def test_lint_ends_over_a_manifest_that_has_no_end(more: str, told: str, project: Project) -> None:
    (project.folder / "pod.yaml").write_text(POD + more)

    done = project.flexspot("lint", "pod.yaml")

    assert told in done.stdout
    assert "Traceback" not in done.stderr


def test_a_manifest_runs_no_code(project: Project) -> None:
    (project.folder / "pod.yaml").write_text(f'{POD}  extra: !!python/object/apply:os.system ["touch {project.touched}"]\n')

    assert project.flexspot("lint", "pod.yaml").returncode in {0, 1}
    assert not project.touched.exists()


def test_lint_shows_what_a_link_leads_to_to_nobody(project: Project, tmp_path_factory: pytest.TempPathFactory) -> None:
    secret = tmp_path_factory.mktemp("outside") / "secret"
    secret.write_text("token: do-not-show\nkind: Secret\n")
    manifests = project.folder / "manifests"
    manifests.mkdir()
    (manifests / "pod.yaml").symlink_to(secret)
    (manifests / "circle").symlink_to(manifests)

    done = project.flexspot("lint", "manifests", "--details")

    assert done.returncode == 0
    assert "do-not-show" not in done.stdout + done.stderr


@pytest.mark.parametrize("shown", ["text", "sarif", "github"])
def test_names_in_manifests_command_no_terminal_and_no_workflow(shown: str, project: Project) -> None:
    name = json.dumps("x\x1b[2J\n::set-output name=a::b")
    (project.folder / "pod.yaml").write_text(POD.replace("name: main", f"name: {name}") + "    resources: {limits: {nvidia.com/gpu: 99}}\n")

    done = project.flexspot("lint", "pod.yaml", "--format", shown)

    assert "nvidia.com/gpu" in done.stdout
    assert "\x1b" not in done.stdout
    assert [line for line in done.stdout.splitlines() if line.startswith("::set-output")] == []
    if shown == "sarif":
        # Who reads it shows the text itself.
        [result, *_] = json.loads(done.stdout)["runs"][0]["results"]
        assert "\\x1b[2J" in result["message"]["text"]
        assert "\x1b" not in result["message"]["text"]
