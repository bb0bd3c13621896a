"""A person's answers about what an interrupted run may have created, and what a stack is told to fix its state with."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from pulumi.automation import Deployment

from capacity.values.errors import ExitCode, ExplainedError
from infra.deployment.interrupted import Begun, NotIdentified, Settling

VPC = "urn:pulumi:dev-eks::flexspot::aws:ec2/vpc:Vpc::network-vpc"
OTHER = "urn:pulumi:dev-eks::flexspot::aws:ec2/vpc:Vpc::another-vpc"


class StackStub:
    """A stack whose state is exported and imported, as the Automation API has it."""

    name = "dev-eks"

    def __init__(self, *begun: str) -> None:
        steps = [{"type": "creating", "resource": {"urn": urn, "type": urn.split("::")[2], "custom": True}} for urn in begun]
        self.state: dict[str, Any] = {"resources": [], "pending_operations": steps}
        self.imported: list[dict[str, Any]] = []

    def export_stack(self) -> Deployment:
        return Deployment(version=3, deployment=deepcopy(self.state))

    def import_stack(self, state: Deployment) -> None:
        self.state = dict(state.deployment or {})
        self.imported.append(self.state)


def settle(stack: Any, answers: dict[str, str | None]) -> None:
    def nobody_knows(_begun: Begun, _taken: frozenset[str]) -> NotIdentified:
        return NotIdentified()

    Settling(stack, refresh=lambda: None, tell=lambda _line: None).settle(nobody_knows, answers)


def test_what_a_person_says_was_made_is_looked_at_under_that_id() -> None:
    stack = StackStub(VPC)

    settle(stack, {VPC: "vpc-1"})

    assert [(each["urn"], each["id"]) for each in stack.state["resources"]] == [(VPC, "vpc-1")]
    assert stack.state["pending_operations"] == []


def test_what_a_person_says_was_not_made_is_forgotten() -> None:
    stack = StackStub(VPC)

    settle(stack, {VPC: None})

    assert stack.state == {"resources": [], "pending_operations": []}


def test_what_nobody_can_say_is_asked_with_the_options_that_answer_and_the_state_stays() -> None:
    stack = StackStub(VPC, OTHER)

    with pytest.raises(ExplainedError) as asked:
        settle(stack, {VPC: "vpc-1"})

    assert asked.value.evidence == (f"aws:ec2/vpc:Vpc another-vpc: --made '{OTHER}=ID' or --not-made '{OTHER}'",)
    assert stack.imported == []


def test_an_answer_about_what_was_not_begun_is_refused_with_what_was() -> None:
    stack = StackStub(VPC)

    with pytest.raises(ExplainedError, match=rf"had begun to create: {OTHER}\.") as refused:
        settle(stack, {VPC: "vpc-1", OTHER: "vpc-2"})

    assert refused.value.exit_code is ExitCode.BAD_USAGE
    assert refused.value.evidence == (VPC,)
    assert stack.imported == []


def test_an_answer_that_nobody_asked_for_is_refused() -> None:
    with pytest.raises(ExplainedError, match="nothing is open"):
        settle(StackStub(), {VPC: None})
