"""The executable pack under the real engine: `pulumi policy analyze` on hand-written states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from engine_analysis import analyzed, written_state
from rule_fixtures import UNKNOWN_STRING, Case, cases, cases_of

from flexspot.capacity.values.verdict import Verdict
from flexspot.policies.rules import all_rules

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.engine

RULE_LEVELS = {rule.name: str(rule.level) for rule in all_rules()}


def level_of(case: Case) -> str | None:
    """Return the expected level of a case: the rule's own for a violation, advice if it depends on an unknown value, else None."""
    return {Verdict.FAIL: RULE_LEVELS[case.rule], Verdict.UNKNOWN: "advisory"}.get(case.verdict)


def rules_of(event: dict[str, Any]) -> list[str]:
    """Return the rule of an event, or all rules that it reports as undecided."""
    _, waits, rules = event["message"].partition("These rules judge again once the values are known: ")
    return rules.split(", ") if waits else [event["policyName"]]


ACROSS = {rule.name for rule in all_rules() if rule.among}


def of_one_resource() -> list[Case]:
    return [case for case in cases() if case.rule not in ACROSS]


def across_resources() -> list[Case]:
    """Return a case that breaks a rule and one that keeps it. Each needs a separate state, which contains the case's other objects."""
    of_rule = cases_of("nodepool-references-missing-class")
    return [next(case for case in of_rule if case.verdict is verdict) for verdict in (Verdict.FAIL, Verdict.PASS)]


def test_the_engine_gives_every_fixture_the_same_verdict_on_a_state_with_empty_outputs(tmp_path: Path) -> None:
    state = written_state(tmp_path, ((case.urn, case.type_token, case.inputs) for case in of_one_resource()))

    code, events, printed = analyzed(tmp_path, state)

    levels = {(event["resourceUrn"], rule): event["enforcementLevel"] for event in events for rule in rules_of(event)}
    expected = {(case.urn, case.rule): level_of(case) for case in of_one_resource()}
    assert code == 1, printed
    assert {key: level for key, level in expected.items() if levels.get(key) != level} == {}, printed


@pytest.mark.parametrize("case", across_resources(), ids=str)
def test_the_engine_compares_resources_by_their_inputs_although_their_outputs_are_empty(case: Case, tmp_path: Path) -> None:
    state = written_state(tmp_path, ((each.urn, each.type_token, each.inputs) for each in (case, *case.among)))

    _, events, printed = analyzed(tmp_path, state)

    levels = {event["enforcementLevel"] for event in events if event["resourceUrn"] == case.urn and event["policyName"] == case.rule}
    assert levels == {level for level in [level_of(case)] if level}, printed


def test_a_state_that_keeps_the_rules_passes(tmp_path: Path) -> None:
    def wanted(case: Case) -> bool:
        # An object that passes one rule may break another. Those of these three rules keep all rules.
        return (
            case.rule in {"quota-key-never-enforced", "gpu-key-in-limit-range", "queue-admits-no-namespace"}
            and case.verdict is Verdict.PASS
        )

    known = [case for case in cases() if wanted(case) and "v1beta1" not in case.type_token and UNKNOWN_STRING not in str(case.inputs)]
    state = written_state(tmp_path, ((case.urn, case.type_token, case.inputs) for case in known))

    code, events, printed = analyzed(tmp_path, state)

    assert (code, events) == (0, []), printed
    assert known


POOL = {"nodeConfig": {"machineType": "g2-standard-8"}, "autoscaling": {"maxNodeCount": 8}}
POOL_TYPE = "gcp:container/nodePool:NodePool"


def analyzed_pool(folder: Path, configuration: dict[str, Any]) -> tuple[int, set[tuple[str, str]], str]:
    state = written_state(folder, [(f"urn:pulumi:dev::flexspot::{POOL_TYPE}::l4", POOL_TYPE, POOL)])
    code, events, printed = analyzed(folder, state, configuration)
    return code, {(event["policyName"], event["enforcementLevel"]) for event in events}, printed


TAINT, LIMIT, OWNER = "gpu-pool-without-taint", "gpu-pool-without-limit", "missing-owner-labels"


def test_levels_and_parameters_are_configured_for_the_pack_and_for_each_rule(tmp_path: Path) -> None:
    of_the_pack = {TAINT: "advisory", LIMIT: {"most": 4, "level": "mandatory"}}
    code, reported, printed = analyzed_pool(tmp_path, {"flexspot": of_the_pack, TAINT: "mandatory", OWNER: "disabled"})

    assert (code, reported) == (1, {(TAINT, "advisory"), (LIMIT, "mandatory")}), printed


@pytest.mark.parametrize(
    "configuration,problem",
    [
        ({LIMIT: {"most": "four"}}, "gpu-pool-without-limit: most: Invalid type. Expected: integer, given: string"),
        ({"flexspot": {TAINT: "loud"}}, 'must be one of the following: "mandatory", "advisory", "disabled"'),
    ],
    ids=["a parameter", "a setting of the pack"],
)
def test_the_engine_refuses_a_value_of_the_wrong_type_before_it_judges_anything(
    configuration: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    code, reported, printed = analyzed_pool(tmp_path, configuration)

    assert (code, reported) == (1, set()), printed
    assert problem in printed
