"""`flexspot init`: working projects, and errors that a person can fix."""

from __future__ import annotations

import functools
import json
import re
from typing import TYPE_CHECKING

import jsonschema
import pytest
import yaml
from command_line import flexspot
from hypothesis import given
from hypothesis import strategies as st
from new_projects import COMMANDS, EKS, GKE, LOCAL, init, stacks_of

from flexspot.capacity.catalog.machines import ZONES_WITHOUT_EKS, Vendor, machines_of
from flexspot.capacity.catalog.platform import Platform
from flexspot.capacity.cost.costed_plan import BudgetStanding, costed, shipped_use
from flexspot.capacity.cost.figures import Scenario
from flexspot.capacity.cost.plan_comparison import budget_checks
from flexspot.capacity.cost.plan_cost import plan_cost
from flexspot.capacity.plan.build import plan_of_stack_file
from flexspot.capacity.values.errors import ExitCode, ExplainedError
from flexspot.infra.cli.stacks import init as init_commands
from flexspot.infra.cli.stacks.init import Questions
from flexspot.infra.new_project.answers import GPUS_AT_MOST, Answers
from flexspot.infra.new_project.files import project_files
from flexspot.infra.new_project.stack_files import shares

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
@pytest.mark.parametrize(
    "cloud,stacks,needed",
    [
        ("gke", ["dev", "local", "prod"], "gcloud auth application-default login"),
        ("eks", ["dev", "local", "prod"], "aws sso login"),
        ("local", ["local"], "flexspot lab start"),
    ],
)
def test_a_new_project_passes_its_own_checks_and_prints_what_up_needs(cloud: str, stacks: list[str], needed: str, tmp_path: Path) -> None:
    output = init(tmp_path / "acme", *COMMANDS[cloud])

    written = stacks_of(tmp_path / "acme")
    assert list(written) == stacks
    schema = json.loads((tmp_path / "acme" / "stacks" / "platform.schema.json").read_text())
    for stack, content in written.items():
        jsonschema.validate(content, schema)
        checked = flexspot("settings", "check", "-s", stack, folder=tmp_path / "acme")
        assert checked.returncode == 0, checked.stderr
        # Without an address range, EKS can be reached only from its own network.
        warned = ["nobody-in-the-network"] if (cloud, stack) in {("eks", "dev"), ("eks", "prod")} else []
        assert re.findall(r"^warning ([\w-]+):", checked.stdout, re.MULTILINE) == warned
    linted = flexspot("lint", ".", folder=tmp_path / "acme")
    assert (linted.returncode, "no findings" in linted.stdout) == (0, True)
    assert needed in output
    assert needed in (tmp_path / "acme" / "README.md").read_text()
    extra = {"gke": "[gke]", "eks": "[eks]", "local": "[platform]"}[cloud]
    assert f"\nflexspot{extra}==" in (tmp_path / "acme" / "requirements.txt").read_text()
    assert "pip install" not in output, "the requirements have all of it"


NAMES = st.from_regex(r"\A[a-z]([a-z0-9-]{0,18}[a-z0-9])?\Z")


@pytest.mark.slow
@given(teams=st.lists(NAMES, min_size=1, max_size=6, unique=True), owner=NAMES, dev=st.integers(1, 9), prod=st.integers(1, 40))
def test_stacks_have_the_given_answers_and_allocate_every_gpu(teams: list[str], owner: str, dev: int, prod: int) -> None:
    """Names like yes, null or no stay texts, although YAML would read them otherwise."""
    place = ("acme-dev", "acme-prod", "us-central1", ("us-central1-a",), "g2-standard-8")
    answers = Answers(Platform.GKE, "acme", owner, tuple(teams), *place, dev, prod)
    try:
        files = project_files(answers).files
    except ExplainedError as refused:
        # Names that clouds or Kubernetes reserve, such as default.
        assert re.search("teams|owner", " ".join(refused.evidence)), refused  # noqa: PT017
        return

    for name, gpus in (("dev", dev), ("prod", prod)):
        content = yaml.safe_load(files[f"stacks/Pulumi.{name}.yaml"])["config"]["flexspot:platform"]
        assert [team["name"] for team in content["teams"]] == teams
        assert content["owner"] == owner
        assert sum(team["shares"]["l4-spot"] for team in content["teams"]) == gpus
        assert content["pools"][0]["max_nodes"] == gpus


@given(gpus=st.integers(0, 600), teams=st.lists(NAMES, min_size=1, max_size=30, unique=True))
def test_shares_differ_by_at_most_one_gpu_and_sum_to_all(gpus: int, teams: list[str]) -> None:
    parts = shares(gpus, teams)

    assert list(parts) == teams
    assert sum(parts.values()) == gpus
    assert max(parts.values()) - min(parts.values()) <= 1


def test_a_budget_covers_the_ceilings_and_not_twice_the_nodes(tmp_path: Path) -> None:
    init(tmp_path, *GKE)
    path = tmp_path / "stacks" / "Pulumi.dev.yaml"
    content = path.read_text()

    def standing() -> BudgetStanding:
        found = plan_of_stack_file(path)
        [check] = budget_checks(plan_cost(costed(found.plan), found.prices, shipped_use()), Scenario.WORST)
        return check.standing

    assert content.count("max_nodes: 4") == 1
    assert standing() is not BudgetStanding.EXCEEDED
    path.write_text(content.replace("max_nodes: 4", "max_nodes: 8"))
    assert standing() is BudgetStanding.EXCEEDED


@pytest.mark.slow
@pytest.mark.parametrize(
    "cloud,changes,message",
    [
        pytest.param("gke", {"account": "Acme"}, "--account: 'Acme' is not valid", id="no project id"),
        pytest.param("gke", {"prod_account": "acme-ai-dev"}, "--prod-account: 'acme-ai-dev' is also the project of", id="one project"),
        pytest.param("gke", {"prod_account": None}, "--prod-account is required", id="no project of production"),
        pytest.param("eks", {"account": "1111-2222-3333"}, "--account: '1111-2222-3333' is not valid", id="hyphens in a number"),
        pytest.param("eks", {"region": "us_east"}, "--region: 'us_east' is not valid", id="no region"),
        pytest.param("eks", {"region": "eu-west-1"}, "--machine: 'g6.xlarge' is not known to be offered in eu-west-1", id="elsewhere"),
        pytest.param("eks", {"machine": "g6.xlrge"}, "--machine: 'g6.xlrge' is not in the catalog", id="typing error"),
        pytest.param("eks", {"machine": "m6i.large"}, "--machine: 'm6i.large'", id="without GPUs"),
        pytest.param("gke", {"machine": "n1-standard-8"}, "--machine: 'n1-standard-8' has no GPUs, or no fixed number of them", id="n1"),
        pytest.param("eks", {"dev_gpus": "0"}, "--dev-gpus: 0 is not possible", id="none"),
        pytest.param("eks", {"prod_gpus": str(GPUS_AT_MOST + 1)}, f"--prod-gpus: {GPUS_AT_MOST + 1} is not possible", id="too many"),
        pytest.param("eks", {"machine": "p5.48xlarge", "dev_gpus": "12"}, "--dev-gpus: 12 is not possible", id="half a node"),
        pytest.param("eks", {"cidr": "anywhere"}, "stack dev cannot work with these answers", id="no range"),
        pytest.param("eks", {"zone": "us-west-2a"}, "--zone: 'us-west-2a' is not in region us-east-1", id="another region's zone"),
        pytest.param("eks", {"zone": "us-east-1a"}, "--zone: 'us-east-1a' is the only zone", id="one zone for EKS"),
        pytest.param("gke", {"zone": "us-central1-f"}, "--machine: 'g2-standard-8' is not offered in us-central1-f", id="zone without it"),
        pytest.param(
            "gke",
            {"machine": "g4-standard-48"},
            "--machine: 'g4-standard-48' is in the catalog, but its zones are not known",
            id="nowhere known",
        ),
        pytest.param("eks", {"zone": "a: b"}, "--zone: 'a: b' is not valid", id="no zone"),
        pytest.param("eks", {"team": "Red Team"}, "--team: 'Red Team' is not valid", id="no name"),
        pytest.param("eks", {"team": "a}, {name: b"}, "--team: 'a}' is not valid", id="YAML in a name"),
        pytest.param("eks", {"team": "a,b,a"}, "--team: 'a' is listed more than once", id="twice"),
        pytest.param(
            "eks", {"team": "kube-system"}, "--team: 'kube-system' is reserved for a namespace of the cluster", id="a taken namespace"
        ),
        pytest.param("gke", {"cidr": "10.0.0.0/8"}, "--cidr: not used in a project on gke", id="an option of EKS on GKE"),
        pytest.param("local", {"region": "us-east-1"}, "--region: not used in a project on local", id="a region of the lab"),
        pytest.param("eks", {"owner": "x\nconfig: 1"}, "--owner: 'x\\nconfig: 1' is not valid", id="a line more"),
        pytest.param("eks", {"name": "a/b"}, "--name: 'a/b' is not valid", id="a path as name"),
        pytest.param("local", {"owner": None}, "--owner is required, as this run asks no questions", id="nobody answers"),
    ],
)
def test_an_unusable_option_is_reported_with_allowed_values_and_nothing_is_written(
    cloud: str, changes: dict[str, str | None], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ExplainedError) as refused:
        init(tmp_path / "acme", *COMMANDS[cloud], **changes)

    assert message in refused.value.problem
    assert refused.value.exit_code is ExitCode.BAD_USAGE
    [option] = re.findall(r"^--[a-z-]+", refused.value.problem) or ["--"]
    assert option in refused.value.remedy
    assert not (tmp_path / "acme").exists()


def _asking(made: type[Questions], *, asks: bool) -> Questions:
    return made(asks=not asks)


@pytest.mark.slow
def test_on_a_terminal_missing_answers_are_asked_for_until_usable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    answers = iter(
        [
            *("gks", "gke", "acme", "ml-platform"),
            *("Research", "kube-system", "research, product"),
            *("acme-ai-dev", "acme-ai-dev", "acme-ai-prod"),
            *("us-west1", "a4-highgpu-8g", "g2-standard-8"),
        ]
    )

    def prompt(question: str, default: str | None = None) -> str:
        asked.append(question)
        return next(answers, default or "")

    monkeypatch.setattr(init_commands.typer, "prompt", prompt)
    # A test has no terminal.
    monkeypatch.setattr(init_commands, "Questions", functools.partial(_asking, Questions))
    output = init(tmp_path)

    assert len(asked) == len(set(asked)) + 5, "five answers could not be used"
    assert "--machine: 'a4-highgpu-8g' is not known to be offered in us-west1" in output
    assert "set --cloud to gke, eks or local" in output
    assert "which" in asked[0].lower()
    assert list(stacks_of(tmp_path)) == ["dev", "local", "prod"]
    assert yaml.safe_load((tmp_path / "Pulumi.yaml").read_text())["name"] == "acme"


@pytest.mark.parametrize("there", ["Pulumi.yaml", "stacks/platform.schema.json", "stacks/Pulumi.local.yaml"])
def test_nothing_is_asked_for_a_folder_that_has_a_project(there: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / there).parent.mkdir(exist_ok=True)
    (tmp_path / there).touch()
    monkeypatch.setattr(init_commands, "Questions", functools.partial(_asking, Questions))

    with pytest.raises(ExplainedError, match="already contains "):
        init(tmp_path)


@pytest.mark.slow
def test_warnings_of_the_new_stacks_are_printed(tmp_path: Path) -> None:
    output = init(tmp_path, *GKE, machine="g4-standard-48", zone="us-central1-b")

    assert "warning: stack dev: region-not-known: pools.0.machine: the catalog does not know where g4-standard-48 is offered" in output
    assert "warning: stack prod: region-not-known" in output


@pytest.mark.slow
@pytest.mark.parametrize(
    "machine,region,offered",
    [
        ("p4d.24xlarge", "eu-west-1", "eu-west-1c"),
        ("trn1.32xlarge", "us-east-2", "us-east-2c"),
    ],
)
def test_a_machine_of_one_zone_gets_a_cluster_in_two_zones_that_eks_supports(
    machine: str, region: str, offered: str, tmp_path: Path
) -> None:
    output = init(tmp_path, *EKS, machine=machine, region=region)

    zones = stacks_of(tmp_path)["dev"]["config"]["flexspot:platform"]["zones"]
    assert (len(set(zones)), zones[0]) == (2, offered)
    ids = {
        zone: name
        for each in machines_of(Vendor.AWS).values()
        for zone, name in zip(each.zones.get(region, ()), each.zone_ids.get(region, ()), strict=False)
    }
    assert {ids[zone] for zone in zones if zone in ids} & ZONES_WITHOUT_EKS == set()
    assert "zone-without-eks" not in output


@pytest.mark.slow
def test_the_folder_is_quoted_for_the_shell(tmp_path: Path) -> None:
    output = init(tmp_path / "our platform", *LOCAL)

    assert f"  cd '{tmp_path / 'our platform'}'\n" in output


@pytest.mark.slow
def test_the_projects_name_is_the_folders_without_invalid_characters(tmp_path: Path) -> None:
    init(tmp_path / "Our new platform!", *LOCAL)

    init(tmp_path / ("a" * 120), *LOCAL)

    assert yaml.safe_load((tmp_path / "Our new platform!" / "Pulumi.yaml").read_text())["name"] == "Our-new-platform"
    assert yaml.safe_load((tmp_path / ("a" * 120) / "Pulumi.yaml").read_text())["name"] == "a" * 100


@pytest.mark.slow
@pytest.mark.parametrize("machine,kinds", [("a3-highgpu-1g", ["spot"]), ("a3-highgpu-8g", ["spot", "on-demand"])])
def test_production_has_an_on_demand_pool_only_if_the_machine_is_sold_on_demand(machine: str, kinds: list[str], tmp_path: Path) -> None:
    init(tmp_path, *GKE, machine=machine)

    platform = stacks_of(tmp_path)["prod"]["config"]["flexspot:platform"]
    assert [pool["capacity_type"] for pool in platform["pools"]] == kinds
    assert ("on demand one machine a team" in (tmp_path / "README.md").read_text()) == ("on-demand" in kinds)
