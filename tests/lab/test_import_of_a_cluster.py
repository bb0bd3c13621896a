"""`flexspot import` of the lab's cluster with the local stack in it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from checkout_fixtures import OwnCheckout

pytestmark = [
    pytest.mark.lab,
    pytest.mark.engine,
    pytest.mark.nightly(
        tested_by="test_a_cluster_is_read_in_addition_to_a_state_and_has_the_teams, "
        "test_imported_teams_and_cohorts_are_those_of_the_stack_file, "
        "test_ids_have_the_forms_that_the_providers_document"
    ),
]


def test_pulumi_itself_imports_the_objects_by_their_ids_and_creates_none(checkout_with_lab: OwnCheckout) -> None:
    """Into the state of another stack, by the real engine and from the real API server. A preview then creates none of them."""
    checkout = checkout_with_lab
    deployed = checkout.flexspot("up", "-s", "local", "--yes")
    assert deployed.returncode == 0, deployed.stdout + deployed.stderr
    stacks = checkout.folder / "stacks"
    options = ("--kubeconfig", str(checkout.folder / ".lab" / "default" / "kubeconfig"), "--owner", "platform", "--environment", "local")
    ran = checkout.flexspot("import", *options, "--stack", "again", "--out", str(stacks / "Pulumi.again.yaml"), "--ids", str(stacks))
    assert ran.returncode == 0, ran.stderr
    file = stacks / "import-cluster.json"
    [urn] = json.loads(file.read_text())["nameTable"].values()

    def pulumi(*arguments: str) -> str:
        ran = checkout.flexspot("lab", "pulumi", *arguments)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    pulumi("stack", "init", "again")
    pulumi("up", "-s", "again", "--target", urn, "--yes", "--skip-preview", "--non-interactive")
    pulumi("import", "-s", "again", "--file", str(file), "--yes", "--skip-preview", "--generate-code=false", "--non-interactive")

    state = json.loads(pulumi("stack", "export", "-s", "again"))["deployment"]["resources"]
    wanted = {each["logicalName"]: each["id"] for each in json.loads(file.read_text())["resources"] if "id" in each}
    there = {each["urn"].rpartition("::")[2]: each["id"] for each in state if each["type"].startswith("kubernetes:")}
    assert there == wanted
    shown = json.loads(pulumi("preview", "-s", "again", "--json", "--non-interactive"))["steps"]
    operations = {each["urn"].rpartition("::")[2]: each["op"] for each in shown if each["urn"] in {one["urn"] for one in state}}
    assert set(wanted) <= set(operations)
    assert {operations[name] for name in wanted} <= {"same", "update"}
