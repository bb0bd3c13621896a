"""Rules that need other objects: of the run, of a closed input, and of the stack that the engine passes at the end."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from manifests import Manifest, found, manifest
from policy_server import PolicyServer, urn_of
from rule_fixtures import cases

from flexspot.capacity.values.verdict import Verdict
from flexspot.policies.engine import Gate
from flexspot.policies.rules import all_rules

if TYPE_CHECKING:
    from flexspot.policies.judging import Rule

ACROSS = [rule for rule in all_rules() if rule.among]

NODE_POOL = "kubernetes:karpenter.sh/v1:NodePool"
NODE_CLASS = "kubernetes:karpenter.k8s.aws/v1:EC2NodeClass"
NAMED = {"nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"}}
POOL = manifest("karpenter.sh/v1", "NodePool", {"template": {"spec": NAMED}}, name="gpu")
CLASS = manifest("karpenter.k8s.aws/v1", "EC2NodeClass", {}, name="other")

[MISSING_CLASS] = [rule for rule in all_rules() if rule.name == "nodepool-references-missing-class"]


def test_a_missing_object_fails_only_if_its_kind_exists_or_the_input_is_closed() -> None:
    def verdicts(*manifests: Manifest, closed: bool = False) -> list[Verdict]:
        return [each.verdict for each in found(*manifests, closed=closed, rule=MISSING_CLASS.name)]

    assert verdicts(POOL) == [Verdict.UNKNOWN]
    assert verdicts(POOL, CLASS) == [Verdict.FAIL]
    assert verdicts(POOL, closed=True) == [Verdict.FAIL]


UNLESS = "unless their pool gives more"
"""Clause of messages that compare an object with a documented default, which other objects may raise."""


@pytest.mark.parametrize("rule", ACROSS, ids=lambda rule: rule.name)
def test_no_cross_object_rule_fails_a_lone_object_that_passes_among_others(rule: Rule) -> None:
    """A passing object is at worst undecided without the other objects."""
    for case in cases():
        if case.rule == rule.name and case.verdict in {Verdict.PASS, Verdict.NOT_APPLICABLE}:
            failing = [each.message for each in found((case.type_token, case.inputs), rule=rule.name) if each.verdict is Verdict.FAIL]
            assert [each for each in failing if UNLESS not in each] == [], case


def server_with_pool(rule: Rule = MISSING_CLASS) -> PolicyServer:
    server = PolicyServer(Gate([rule]))
    server.analyze(NODE_POOL, "gpu", POOL)
    return server


def test_the_engine_judges_the_inputs_that_it_declared_and_not_the_empty_outputs() -> None:
    server = server_with_pool()
    server.analyze(NODE_CLASS, "other", CLASS)

    [(level, urn, message)] = server.analyze_stack([(NODE_POOL, "gpu", {}), (NODE_CLASS, "other", {})])

    assert (level, urn) == ("mandatory", urn_of(NODE_POOL, "gpu"))
    assert message.startswith("nodepool-references-missing-class: NodePool gpu: spec.template.spec.nodeClassRef names EC2NodeClass gpu")


def test_a_resource_that_the_program_no_longer_declares_is_not_judged() -> None:
    """With --refresh the engine also passes resources of the state that the same run is going to delete."""
    server = PolicyServer(Gate([MISSING_CLASS]))
    server.analyze(NODE_CLASS, "other", CLASS)

    assert server.analyze_stack([(NODE_POOL, "gpu", POOL), (NODE_CLASS, "other", CLASS)]) == []


def test_a_resource_that_is_gone_from_the_stack_is_not_judged() -> None:
    server = server_with_pool()
    server.analyze(NODE_CLASS, "other", CLASS)

    assert server.analyze_stack([(NODE_CLASS, "other", {})]) == []


def test_a_verdict_that_depends_on_missing_objects_is_advice() -> None:
    assert [level for level, _, _ in server_with_pool().analyze_stack([(NODE_POOL, "gpu", {})])] == ["advisory"]


def test_a_rule_over_the_stack_that_raises_is_advice_that_names_it() -> None:
    def raises(*_: object) -> Any:
        raise ValueError("hunter2")

    [(level, _, message)] = server_with_pool(replace(MISSING_CLASS, judge=raises)).analyze_stack([(NODE_POOL, "gpu", {})])

    assert level == "advisory"
    assert "the rule itself is broken: ValueError in test_cross_object.py" in message
    assert "hunter2" not in message


def test_a_read_resource_of_an_unexpected_shape_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    server = server_with_pool()

    def raises(*_: object) -> Any:
        raise TypeError("hunter2")

    monkeypatch.setattr("flexspot.policies.engine.from_pulumi", raises)

    assert [level for level, _, _ in server.analyze_stack([(NODE_POOL, "gpu", {}), (NODE_CLASS, "read", CLASS)])] == ["advisory"]
