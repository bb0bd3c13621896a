"""Which admission policies the program declares for a stack, by what its settings and its cluster's version say."""

from __future__ import annotations

from typing import Any

import pytest
from program_declarations import as_shipped, declared, plan_of, shipped

from policies.admission.guarantee import guarantee_of, guarantee_policies
from policies.admission.policy import admission_policies
from policies.admission.scheduling_options import QUEUE, facts_of

pytestmark = pytest.mark.thorough

API = "kubernetes:admissionregistration.k8s.io/v1"
POLICY, BINDING = f"{API}:ValidatingAdmissionPolicy", f"{API}:ValidatingAdmissionPolicyBinding"
MUTATING = f"{API}:MutatingAdmissionPolicy"

STACKS = ("local", "dev-gke", "prod-gke", "dev-eks", "prod-eks")

LONGEST_EXPRESSION = 100_000
"""Code points that the API server's parser of CEL takes of one expression (cel-go, parser options)."""

LONGEST_NAME = 40
"""Letters of a team's name."""


def actions(declarations: Any) -> set[str]:
    return {action for each in declarations.inputs_of(BINDING) for action in each["spec"]["validationActions"]}


@pytest.mark.parametrize("stack", STACKS)
def test_every_stack_holds_every_rule_that_has_a_form_and_enforces_it(stack: str) -> None:
    policies = {each["metadata"]["name"]: each["spec"] for each in as_shipped(stack).inputs_of(POLICY)}

    wanted = (*admission_policies(facts_of(plan_of(stack))), *guarantee_policies(guarantee_of(plan_of(stack))))
    assert {name: len(spec["validations"]) for name, spec in policies.items()} == {each.name: len(each.validations) for each in wanted}
    assert "Deny" in actions(as_shipped(stack))


def test_with_warn_nothing_is_refused_and_with_none_nothing_is_declared() -> None:
    warned = declared("local", shipped("local", admission={"mode": "warn"}))
    none = declared("local", shipped("local", admission={"mode": "none", "default_owner_labels": True}))

    assert actions(warned) == {"Warn", "Audit"}
    assert warned.of(POLICY)
    assert not [each for each in none.made.values() if each.type.startswith(API)]


@pytest.mark.parametrize(
    "stack,changes,filled_in",
    [
        ("local", {}, True),
        ("local", {"admission": {"default_owner_labels": False}}, False),
        ("dev-eks", {}, False),
        ("dev-eks", {"cluster": {"version": "1.36"}}, True),
        ("dev-eks", {"admission": {"default_owner_labels": True}}, True),
        ("dev-gke", {}, False),
        ("dev-gke", {"cluster": {"min_version": "1.36.0-gke.1000000"}}, True),
        ("dev-gke", {"cluster": {"min_version": None}}, False),
    ],
)
def test_owner_labels_are_filled_in_where_the_cluster_certainly_can(stack: str, changes: dict[str, Any], filled_in: bool) -> None:  # noqa: FBT001 -- a column of the table
    settings = shipped(stack)
    for key, value in changes.items():
        settings[key] = {**settings.get(key, {}), **value}

    assert bool(declared(stack, settings).of(MUTATING)) == filled_in


def test_an_expression_has_room_for_the_facts_of_two_hundred_teams() -> None:
    specs = [each["spec"] for each in as_shipped("prod-eks").inputs_of(POLICY)]
    longest = max(len(each["expression"]) for spec in specs for each in spec["variables"])
    of_a_team = max(len(key) + len(value) for key, value in facts_of(plan_of("prod-eks")).items() if key.startswith(QUEUE))

    assert longest + 200 * (of_a_team + LONGEST_NAME) < LONGEST_EXPRESSION
