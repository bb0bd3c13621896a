"""The repository's cloud stacks, previewed and read back as a state: the result has the pools and teams of the stack file."""

from __future__ import annotations

from typing import Any

import pytest
from program_declarations import as_shipped, declared, shipped
from state_like import state_of

from flexspot.capacity.adopting.found import Found
from flexspot.capacity.adopting.proposal import ImportOptions, Proposal, adoption, propose
from flexspot.capacity.adopting.reading import from_state
from flexspot.capacity.adopting.terraform_state import read_state
from flexspot.capacity.plan.build import build_plan
from flexspot.capacity.settings.stack_file import parse_settings

NIGHTLY = pytest.mark.nightly(tested_by="test_adopted_resources_are_declared_by_the_proposals_program")
CLOUD_STACKS = ("dev-gke", "prod-gke", "dev-eks", "prod-eks")


def again(stack: str) -> tuple[Proposal, Found]:
    found = Found()
    from_state(read_state(state_of(as_shipped(stack)), stack), found)
    file = shipped(stack)
    asked = ImportOptions(owner=file["owner"], environment=file["environment"])
    return propose(found, asked), found


def without(each: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in each.items() if key not in keys}


def facts_of(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the plan's facts of a stack's pools, in whatever form the file has them. Classes that share a pool are not compared."""
    plan = build_plan(parse_settings(settings, "x"))
    return {
        each.name: (each.machines[0], set(each.machines), each.capacity_type, each.max_nodes, each.ceiling.gpus, each.min_nodes, each.zones)
        for each in plan.pools
    }


@pytest.mark.parametrize("stack", CLOUD_STACKS)
def test_imported_pools_are_those_of_the_stack_file(stack: str) -> None:
    proposal, _ = again(stack)

    assert facts_of(proposal.settings) == facts_of(shipped(stack))


@pytest.mark.parametrize("stack", CLOUD_STACKS)
def test_imported_pool_options_are_those_of_the_stack_file(stack: str) -> None:
    """Compares only options that the file has. A state has more, such as the size of a disk for which the file uses the default."""
    proposal, _ = again(stack)
    found = {each["name"]: each for each in proposal.settings["pools"]}
    options = ("reservation", "shutdown_grace_seconds", "efa", "max_run_hours", "gpus_per_node", "compact_placement")

    for each in shipped(stack)["pools"]:
        assert {key: found[each["name"]].get(key) for key in options if key in each} == {key: each[key] for key in options if key in each}
        if len(each["serves"]) == 1:
            assert found[each["name"]]["serves"] == each["serves"]


@pytest.mark.parametrize("stack", CLOUD_STACKS)
def test_imported_teams_and_cohorts_are_those_of_the_stack_file(stack: str) -> None:
    proposal, _ = again(stack)
    file = shipped(stack)
    # A quota of services counts them on all pools together.
    teams = {each["name"]: without(each, "unqueued") for each in file["teams"]}
    unqueued = {each["name"]: sum(each.get("unqueued", {}).values()) for each in file["teams"]}

    assert {each["name"]: without(each, "unqueued") for each in proposal.settings["teams"]} == teams
    assert {each["name"]: sum(each.get("unqueued", {}).values()) for each in proposal.settings["teams"]} == unqueued
    assert {each["name"]: each for each in proposal.settings.get("cohorts", [])} == {each["name"]: each for each in file.get("cohorts", [])}
    assert proposal.settings["cohort"] == file.get("cohort", "platform")


@pytest.mark.slow
@pytest.mark.parametrize("stack", [*(pytest.param(each, marks=NIGHTLY) for each in ("dev-gke", "dev-eks")), "prod-gke", "prod-eks"])
def test_adopted_resources_are_declared_by_the_proposals_program(stack: str) -> None:
    """Each entry has the type, name and parent of a resource of the program. With any other, the next `up` would delete it."""
    proposal, found = again(stack)
    adopted = adoption(found, proposal.settings, "flexspot", stack)
    entries = [*adopted.cloud.get("resources", []), *adopted.cluster["resources"]]
    program = declared(stack, proposal.settings)
    names = {each["name"]: f"{each['type']} {each['logicalName']}" for each in entries}

    assert len(names) == len(entries) > len(proposal.settings["pools"])
    for each in entries:
        made = program.made[names[each["name"]]]
        assert made.parent == (names[each["parent"]] if "parent" in each else "the stack")
        assert ("pulumi:providers:kubernetes::cluster::" in made.provider) is ("provider" in each)
        if "id" in each and made.type.startswith("kubernetes:"):
            assert each["id"] == made.inputs["metadata"]["name"]
        elif "id" in each:
            assert each["id"] == "/".join(made.inputs[key] for key in ("project", "location", "cluster", "name"))
