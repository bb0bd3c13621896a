"""`flexspot import` of the lab's cluster with the local stack in it: pools, teams and cohort are those of its stack file again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from checkout_fixtures import OwnCheckout

pytestmark = [pytest.mark.lab, pytest.mark.engine]

DEPARTMENTS: dict[str, Any] = {
    "cohorts": [{"name": "science", "weight": 3}, {"name": "products", "lending_limits": {"l4-spot": 1}, "shares": {"l4-spot": 1}}],
    "teams": [
        {"name": "team-alpha", "cohort": "science", "weight": 2, "shares": {"l4-spot": 2}, "borrowing_limits": {"l4-spot": 1}},
        {"name": "team-beta", "cohort": "products", "shares": {"l4-spot": 1}, "unqueued": {"l4-on-demand": 1}, "max_jobs": 77},
        {"name": "guests", "shares": {"l4-spot": 0}, "stop": "hold"},
    ],
}
OF_CLUSTERS = ("name", "machine", "capacity_type", "max_nodes")
"""What a NodePool says of a pool; which classes share one it says only where there is one class."""


def settings_of(checkout: OwnCheckout, stack: str) -> dict[str, Any]:
    return yaml.safe_load((checkout.folder / "stacks" / f"Pulumi.{stack}.yaml").read_text())["config"]["flexspot:platform"]


def imported(checkout: OwnCheckout, *more: str) -> dict[str, Any]:
    kubeconfig = checkout.folder / ".lab" / "default" / "kubeconfig"
    ran = checkout.flexspot("import", "--kubeconfig", str(kubeconfig), "--format", "json", "--owner", "platform", *more)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_what_the_local_stack_has_made_is_proposed_as_that_stack(checkout_with_lab: OwnCheckout) -> None:
    checkout = checkout_with_lab
    deployed = checkout.flexspot("up", "-s", "local", "--yes")
    assert deployed.returncode == 0, deployed.stdout + deployed.stderr

    _compare(settings_of(checkout, "local"), imported(checkout, "--environment", "local"))

    checkout.change("local", **DEPARTMENTS)
    deployed = checkout.flexspot("up", "-s", "local", "--yes")
    assert deployed.returncode == 0, deployed.stdout + deployed.stderr
    told = imported(checkout, "--environment", "local", "--stack", "again", "--out", str(checkout.folder / "stacks" / "Pulumi.again.yaml"))
    _compare(settings_of(checkout, "local"), told)

    checked = checkout.flexspot("settings", "check", "-s", "again", "--format", "json")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_pulumi_itself_takes_the_objects_over_by_their_ids_and_makes_none_of_them_anew(checkout_with_lab: OwnCheckout) -> None:
    """Into the state of another stack, by the real engine and from the real API server; a preview has nothing of them to create."""
    checkout = checkout_with_lab
    deployed = checkout.flexspot("up", "-s", "local", "--yes")
    assert deployed.returncode == 0, deployed.stdout + deployed.stderr
    stacks = checkout.folder / "stacks"
    imported(checkout, "--environment", "local", "--stack", "again", "--out", str(stacks / "Pulumi.again.yaml"), "--ids", str(stacks))
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


def _compare(file: dict[str, Any], told: dict[str, Any]) -> None:
    proposed = told["settings"]
    pools = {each["name"]: {key: each.get(key) for key in OF_CLUSTERS} for each in file["pools"]}
    assert {each["name"]: {key: each.get(key) for key in OF_CLUSTERS} for each in proposed["pools"]} == pools
    # Submitters are subjects of role bindings, which are not listed.
    teams = {each["name"]: {key: value for key, value in each.items() if key != "submitters"} for each in file["teams"]}
    assert {each["name"]: each for each in proposed["teams"]} == teams
    assert {each["name"]: each for each in proposed.get("cohorts", [])} == {each["name"]: each for each in file.get("cohorts", [])}
    assert proposed["cohort"] == file["cohort"]
    # Of its own objects each that has an id is adopted under the name that the program gives it.
    names = {each.get("logicalName") for each in told["import_files"]["import-cluster.json"]["resources"]}
    assert {f"{name}-node-pool" for name in pools} | {f"{name}-namespace" for name in teams} <= names
