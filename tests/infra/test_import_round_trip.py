"""The repository's cloud stacks as they are previewed, read back as a state: the pools and teams are those of the stack file again."""

from __future__ import annotations

from typing import Any

import pytest
from program_declarations import as_shipped, declared, shipped
from state_like import state_of

from flexspot.capacity.adopting.found import Found
from flexspot.capacity.adopting.proposal import Asked, Proposal, adoption, propose
from flexspot.capacity.adopting.reading import from_state
from flexspot.capacity.adopting.terraform_state import read_state
from flexspot.capacity.plan.build import build_plan
from flexspot.capacity.settings.stack_file import parse_settings

NIGHTLY = pytest.mark.nightly(held_by="test_what_is_adopted_is_what_the_program_of_the_proposal_declares")
CLOUD_STACKS = ("dev-gke", "prod-gke", "dev-eks", "prod-eks")


def again(stack: str) -> tuple[Proposal, Found]:
    found = Found()
    from_state(read_state(state_of(as_shipped(stack)), stack), found)
    file = shipped(stack)
    asked = Asked(owner=file["owner"], environment=file["environment"])
    return propose(found, asked), found


def without(each: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in each.items() if key not in keys}


def facts_of(settings: dict[str, Any]) -> dict[str, Any]:
    """What the pools of a stack are, whichever way its file says it: as the plan has them, but for the classes that share one."""
    plan = build_plan(parse_settings(settings, "x"))
    return {
        each.name: (each.machines[0], set(each.machines), each.capacity_type, each.max_nodes, each.ceiling.gpus, each.min_nodes, each.zones)
        for each in plan.pools
    }


@pytest.mark.parametrize("stack", CLOUD_STACKS)
def test_pools_are_those_of_the_stack_file(stack: str) -> None:
    proposal, _ = again(stack)

    assert facts_of(proposal.settings) == facts_of(shipped(stack))


@pytest.mark.parametrize("stack", CLOUD_STACKS)
def test_options_of_pools_are_those_of_the_stack_file(stack: str) -> None:
    """Those that the file says; a state says more, such as the size of a disk that the file leaves to its default."""
    proposal, _ = again(stack)
    found = {each["name"]: each for each in proposal.settings["pools"]}
    options = ("reservation", "shutdown_grace_seconds", "efa", "max_run_hours", "gpus_per_node", "compact_placement")

    for each in shipped(stack)["pools"]:
        assert {key: found[each["name"]].get(key) for key in options if key in each} == {key: each[key] for key in options if key in each}
        if len(each["serves"]) == 1:
            assert found[each["name"]]["serves"] == each["serves"]


@pytest.mark.parametrize("stack", CLOUD_STACKS)
def test_teams_and_cohorts_are_those_of_the_stack_file(stack: str) -> None:
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
def test_what_is_adopted_is_what_the_program_of_the_proposal_declares(stack: str) -> None:
    """Type, name and parent of each entry are those of a resource of the program: with another the next `up` would delete it."""
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
