"""`flexspot init`: what it writes can work at once, and what it cannot use it says so that a person can mend it."""

from __future__ import annotations

import functools
import json
import re
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
import yaml
from command_line import flexspot
from github_files import actionlint
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from capacity.catalog.machines import Cloud, machines_of
from capacity.catalog.platform import Platform
from capacity.values.errors import ExitCode, ExplainedError
from infra.cli import init_commands
from infra.cli.app import app
from infra.cli.init_commands import Questions
from infra.new_project.answers import GPUS_AT_MOST, MACHINES, Answers
from infra.new_project.files import project_files
from infra.new_project.stack_files import shares

if TYPE_CHECKING:
    from pathlib import Path

GKE = ("--cloud", "gke", "--owner", "ml-platform", "--team", "research", "--account", "acme-ai-dev", "--prod-account", "acme-ai-prod")
EKS = ("--cloud", "eks", "--owner", "ml-platform", "--team", "research", "--account", "111122223333")
LOCAL = ("--cloud", "local", "--owner", "ml-platform", "--team", "research")
COMMANDS = {"gke": GKE, "eks": EKS, "local": LOCAL}


def init(folder: Path, *arguments: str, **changed: str | None) -> str:
    """What the command prints. `changed` replaces the value of an option, or leaves it out."""
    options: list[str] = []
    for name, value in zip(arguments[::2], arguments[1::2], strict=True):
        kept = changed.pop(name.removeprefix("--").replace("-", "_"), value)
        options += [] if kept is None else [name, kept]
    for name, value in changed.items():
        options += [] if value is None else [f"--{name.replace('_', '-')}", value]
    result = CliRunner().invoke(app, ["init", str(folder), *options], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def stacks_of(folder: Path) -> dict[str, dict[str, Any]]:
    return {path.stem.removeprefix("Pulumi."): yaml.safe_load(path.read_text()) for path in sorted((folder / "stacks").glob("*.yaml"))}


@pytest.mark.parametrize(
    "cloud,stacks,needed",
    [
        ("gke", ["dev", "local", "prod"], "gcloud auth application-default login"),
        ("eks", ["dev", "local", "prod"], "aws sso login"),
        ("local", ["local"], "flexspot lab start"),
    ],
)
def test_a_new_project_passes_its_own_checks_without_a_warning_and_says_what_up_needs(
    cloud: str, stacks: list[str], needed: str, tmp_path: Path
) -> None:
    told = init(tmp_path / "acme", *COMMANDS[cloud])

    written = stacks_of(tmp_path / "acme")
    assert list(written) == stacks
    schema = json.loads((tmp_path / "acme" / "stacks" / "platform.schema.json").read_text())
    for stack, content in written.items():
        jsonschema.validate(content, schema)
        checked = flexspot("settings", "check", "-s", stack, folder=tmp_path / "acme")
        assert checked.returncode == 0, checked.stderr
        assert "; 0 warning(s)" in checked.stdout
    linted = flexspot("lint", ".", folder=tmp_path / "acme")
    assert (linted.returncode, "no findings" in linted.stdout) == (0, True)
    assert needed in told
    assert needed in (tmp_path / "acme" / "README.md").read_text()


@pytest.mark.thorough
@pytest.mark.parametrize(
    "platform,region",
    [
        (Platform.EKS if cloud is Cloud.AWS else Platform.GKE, region)
        for cloud in Cloud
        for region in sorted(machines_of(cloud)[MACHINES[Platform.EKS if cloud is Cloud.AWS else Platform.GKE]].zones)
    ],
)
def test_every_region_that_is_known_to_have_the_usual_machine_gives_stacks_that_can_work(platform: Platform, region: str) -> None:
    cloud = Cloud.AWS if platform is Platform.EKS else Cloud.GCP
    machine = MACHINES[platform]
    account = "111122223333" if platform is Platform.EKS else "acme-ai-dev"
    zones = machines_of(cloud)[machine].zones[region][:3]

    files = project_files(Answers(platform, "acme", "ml", ("a", "b"), account, f"{account[:-1]}4", region, zones, machine))

    for name in ("dev", "prod"):
        content = yaml.safe_load(files[f"stacks/Pulumi.{name}.yaml"])["config"]["flexspot:platform"]
        assert content["region"] == region
        said = "# No budget yet: not every price" in files[f"stacks/Pulumi.{name}.yaml"]
        assert said != ("budget" in content), "a budget, or why there is none and what to do"


NAMES = st.from_regex(r"\A[a-z]([a-z0-9-]{0,18}[a-z0-9])?\Z")


@pytest.mark.thorough
@settings(max_examples=20)
@given(teams=st.lists(NAMES, min_size=1, max_size=6, unique=True), owner=NAMES, dev=st.integers(1, 9), prod=st.integers(1, 40))
def test_what_is_answered_is_what_the_stacks_say_and_no_gpu_is_left_over(teams: list[str], owner: str, dev: int, prod: int) -> None:
    """Names like yes, null or no are texts, and not what YAML makes of them."""
    place = ("acme-dev", "acme-prod", "us-central1", ("us-central1-a",), "g2-standard-8")
    answers = Answers(Platform.GKE, "acme", owner, tuple(teams), *place, dev, prod)
    try:
        files = project_files(answers)
    except ExplainedError as refused:
        # Names that clouds or Kubernetes keep for themselves, such as default.
        assert re.search("teams|owner", " ".join(refused.evidence)), refused  # noqa: PT017
        return

    for name, gpus in (("dev", dev), ("prod", prod)):
        content = yaml.safe_load(files[f"stacks/Pulumi.{name}.yaml"])["config"]["flexspot:platform"]
        assert [team["name"] for team in content["teams"]] == teams
        assert content["owner"] == owner
        assert sum(team["shares"]["l4-spot"] for team in content["teams"]) == gpus
        assert content["pools"][0]["max_nodes"] == gpus


@given(gpus=st.integers(0, 600), teams=st.lists(NAMES, min_size=1, max_size=30, unique=True))
def test_shares_differ_by_one_gpu_at_most_and_are_all_of_them(gpus: int, teams: list[str]) -> None:
    parts = shares(gpus, teams)

    assert list(parts) == teams
    assert sum(parts.values()) == gpus
    assert max(parts.values()) - min(parts.values()) <= 1


@pytest.mark.engine
def test_a_budget_holds_what_the_ceilings_cost_and_not_twice_the_nodes(tmp_path: Path) -> None:
    init(tmp_path, *GKE)
    path = tmp_path / "stacks" / "Pulumi.dev.yaml"
    content = path.read_text()

    assert content.count("max_nodes: 4") == 1
    worst = flexspot("preview", "-s", "dev", "--offline", folder=tmp_path)
    path.write_text(content.replace("max_nodes: 4", "max_nodes: 8"))
    beyond = flexspot("preview", "-s", "dev", "--offline", folder=tmp_path)

    assert (worst.returncode, "budget-exceeded" in worst.stdout) == (0, False)
    assert (beyond.returncode, "budget-exceeded" in beyond.stderr) == (1, True)


@pytest.mark.parametrize(
    "cloud,changes,told",
    [
        pytest.param("gke", {"account": "Acme"}, "--account 'Acme' cannot be used", id="no project id"),
        pytest.param("gke", {"prod_account": "acme-ai-dev"}, "--prod-account 'acme-ai-dev' is the project of", id="one project"),
        pytest.param("gke", {"prod_account": None}, "--prod-account is not given", id="no project of production"),
        pytest.param("eks", {"account": "1111-2222-3333"}, "--account '1111-2222-3333' cannot be used", id="hyphens in a number"),
        pytest.param("eks", {"account": None}, "--account is not given", id="no account"),
        pytest.param("eks", {"region": "us_east"}, "--region 'us_east' cannot be used", id="no region"),
        pytest.param("eks", {"region": "eu-west-1"}, "--region 'eu-west-1' is not known to offer g6.xlarge", id="without the machine"),
        pytest.param("eks", {"machine": "g6.xlrge"}, "--machine 'g6.xlrge' is not in the catalog", id="typing error"),
        pytest.param("eks", {"machine": "m6i.large"}, "--machine 'm6i.large'", id="without GPUs"),
        pytest.param("gke", {"machine": "n1-standard-8"}, "--machine 'n1-standard-8' has no GPUs, or none of a fixed number", id="n1"),
        pytest.param("eks", {"dev_gpus": "0"}, "--dev-gpus 0 cannot be had", id="none"),
        pytest.param("eks", {"prod_gpus": "-4"}, "--prod-gpus -4 cannot be had", id="less than none"),
        pytest.param("eks", {"prod_gpus": str(GPUS_AT_MOST + 1)}, f"--prod-gpus {GPUS_AT_MOST + 1} cannot be had", id="too many"),
        pytest.param("eks", {"machine": "p5.48xlarge", "dev_gpus": "12"}, "--dev-gpus 12 cannot be had", id="half a node"),
        pytest.param("eks", {"cidr": "anywhere"}, "these answers make no stack dev that can work", id="no range"),
        pytest.param("eks", {"zone": "us-west-2a"}, "these answers make no stack dev that can work", id="another region's zone"),
        pytest.param("eks", {"zone": "a: b"}, "--zone 'a: b' cannot be used", id="no zone"),
        pytest.param("eks", {"team": "Red Team"}, "--team 'Red Team' cannot be used", id="no name"),
        pytest.param("eks", {"team": "a}, {name: b"}, "--team 'a}' cannot be used", id="YAML in a name"),
        pytest.param("eks", {"team": "a,b,a"}, "--team 'a' is named more than once", id="twice"),
        pytest.param("eks", {"team": ""}, "--team '' cannot be used", id="empty"),
        pytest.param("eks", {"owner": "x\nconfig: 1"}, "--owner 'x\\nconfig: 1' cannot be used", id="a line more"),
        pytest.param("eks", {"name": "a/b"}, "--name 'a/b' cannot be used", id="a path as name"),
        pytest.param("local", {"owner": None}, "--owner is not given, and nobody is asked here", id="nobody answers"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_option_and_what_is_allowed_and_nothing_is_written(
    cloud: str, changes: dict[str, str | None], told: str, tmp_path: Path
) -> None:
    with pytest.raises(ExplainedError) as refused:
        init(tmp_path / "acme", *COMMANDS[cloud], **changes)

    assert told in refused.value.problem
    assert refused.value.exit_code is ExitCode.BAD_USAGE
    [option] = re.findall(r"^--[a-z-]+", refused.value.problem) or ["--"]
    assert option in refused.value.remedy
    assert not (tmp_path / "acme").exists()


@pytest.mark.parametrize("there", ["Pulumi.yaml", "stacks/Pulumi.dev.yaml", "__main__.py", ".github/workflows/flexspot.yaml"])
def test_nothing_is_written_where_a_file_of_the_project_is_already(there: str, tmp_path: Path) -> None:
    (tmp_path / there).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / there).write_text("mine\n")

    with pytest.raises(ExplainedError, match=f"has {re.escape(there)} already; nothing was written"):
        init(tmp_path, *GKE)

    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / there]
    assert (tmp_path / there).read_text() == "mine\n"


def test_a_link_that_leads_elsewhere_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "acme").mkdir()
    (tmp_path / "acme" / "__main__.py").symlink_to(tmp_path / "elsewhere.py")

    with pytest.raises(ExplainedError, match=r"has __main__\.py already"):
        init(tmp_path / "acme", *GKE)

    assert not (tmp_path / "elsewhere.py").exists()


def test_a_readme_and_what_git_ignores_stay_as_they_were_and_that_is_said(tmp_path: Path) -> None:
    for name in ("README.md", ".gitignore"):
        (tmp_path / name).write_text("mine\n")

    told = init(tmp_path, *GKE)

    assert "README.md was there and is as it was." in told
    assert ".gitignore was there and is as it was." in told
    assert {(tmp_path / name).read_text() for name in ("README.md", ".gitignore")} == {"mine\n"}
    assert (tmp_path / "stacks" / "Pulumi.prod.yaml").is_file()


def test_a_folder_that_may_not_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "acme").write_text("a file\n")

    with pytest.raises(ExplainedError, match="cannot be written"):
        init(tmp_path / "acme", *GKE)


def _asking(made: type[Questions], *, asks: bool) -> Questions:
    return made(asks=not asks)


def test_on_a_terminal_it_asks_for_what_no_option_says_and_again_until_it_can_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    answers = iter(["gks", "gke", "acme", "ml-platform", "Research", "research, product", "acme-ai-dev", "acme-ai-dev", "acme-ai-prod"])

    def prompt(question: str, default: str | None = None) -> str:
        asked.append(question)
        return next(answers, default or "")

    monkeypatch.setattr(init_commands.typer, "prompt", prompt)
    # There is no terminal in a test.
    monkeypatch.setattr(init_commands, "Questions", functools.partial(_asking, Questions))
    told = init(tmp_path)

    assert len(asked) == len(set(asked)) + 3, "three answers could not be used"
    assert "give --cloud: gke, eks or local" in told
    assert "which" in asked[0].lower()
    assert list(stacks_of(tmp_path)) == ["dev", "local", "prod"]
    assert yaml.safe_load((tmp_path / "Pulumi.yaml").read_text())["name"] == "acme"


def test_the_name_of_the_folder_is_the_projects_as_far_as_pulumi_takes_it(tmp_path: Path) -> None:
    init(tmp_path / "Our new platform!", *LOCAL)

    assert yaml.safe_load((tmp_path / "Our new platform!" / "Pulumi.yaml").read_text())["name"] == "Our-new-platform"


@pytest.mark.engine
def test_actionlint_has_nothing_to_say_of_the_workflow_and_it_may_write_nothing(tmp_path: Path) -> None:
    init(tmp_path, *GKE)
    path = tmp_path / ".github" / "workflows" / "flexspot.yaml"

    checked = actionlint(tmp_path)

    assert checked.stdout == ""
    assert checked.returncode == 0
    content = yaml.safe_load(path.read_text())
    assert content["permissions"] == {}
    assert [job["permissions"] for job in content["jobs"].values()] == [{"contents": "read"}]
    assert "secrets." not in path.read_text()
    used = re.findall(r"uses: (\S+ # \S+)", path.read_text())
    assert used
    assert [each for each in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each)] == []


@pytest.mark.parametrize("machine,kinds", [("a3-highgpu-1g", ["spot"]), ("a3-highgpu-8g", ["spot", "on-demand"])])
def test_production_has_a_pool_on_demand_only_of_a_machine_that_is_sold_so(machine: str, kinds: list[str], tmp_path: Path) -> None:
    init(tmp_path, *GKE, machine=machine)

    platform = stacks_of(tmp_path)["prod"]["config"]["flexspot:platform"]
    assert [pool["capacity_type"] for pool in platform["pools"]] == kinds
    assert ("on demand one machine a team" in (tmp_path / "README.md").read_text()) == ("on-demand" in kinds)
