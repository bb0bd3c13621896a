"""Operations that an interrupted run left open in the state: reading them back by id, and a person's answers about them."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from pulumi.automation import Deployment

from flexspot.capacity.values.errors import ExitCode, ExplainedError
from flexspot.infra.deployment.interrupted import (
    NotIdentified,
    PendingCreate,
    Settling,
    foreign,
    is_open,
    pending_creates,
    read_back,
    with_resources,
    without,
)

STACK = "urn:pulumi:local::flexspot::pulumi:pulumi:Stack::flexspot-local"
POOL = "urn:pulumi:local::flexspot::kubernetes:karpenter.sh/v1:NodePool::l4-spot-node-pool"
VPC = "urn:pulumi:dev-eks::flexspot::aws:ec2/vpc:Vpc::network-vpc"
INPUTS = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "l4-spot", "labels": {"flexspot.dev/owner": "ml-platform"}},
    "spec": {"limits": {"nvidia.com/gpu": "4"}},
}


def state(*resources: dict[str, Any], open_steps: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    return {
        "resources": [{"urn": STACK, "type": "pulumi:pulumi:Stack", "custom": False}, *resources],
        "pending_operations": open_steps or [],
    }


def step(kind: str, urn: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "resource": {"urn": urn, "type": urn.split("::")[2], "custom": True, "inputs": INPUTS, **more}}


def by_name(pending: PendingCreate, _taken: frozenset[str]) -> str:
    return str(pending.inputs["metadata"]["name"])


def test_a_completed_run_left_no_open_operation() -> None:
    assert not is_open(state())
    assert not is_open({})


def test_a_pending_create_is_read_back_by_its_id() -> None:
    found = read_back(state(open_steps=[step("creating", POOL, parent=STACK, provider="p::1")]), by_name)

    [_, made] = found.deployment["resources"]
    assert made["urn"] == POOL
    assert (made["id"], made["parent"], made["provider"]) == ("l4-spot", STACK, "p::1")
    assert made["outputs"]["__inputs"] == INPUTS, "so that the provider reads it as one that it knows, and not as an import"
    assert found.deployment["pending_operations"] == []
    assert [each.urn for each in found.looked_at] == [POOL]


def test_the_given_state_is_not_modified() -> None:
    given = state(open_steps=[step("creating", POOL)])

    read_back(given, by_name)

    assert given == state(open_steps=[step("creating", POOL)])


def test_components_and_providers_exist_only_in_the_state() -> None:
    component = step("creating", "urn:pulumi:local::flexspot::flexspot:index:Team::alpha", custom=False)
    provider = step("creating", "urn:pulumi:local::flexspot::pulumi:providers:kubernetes::lab")
    given = state(open_steps=[component, provider])

    assert pending_creates(given) == []
    assert read_back(given, by_name).deployment == state()


def test_an_open_update_or_deletion_is_left_to_the_refresh() -> None:
    resource = {"urn": POOL, "type": POOL.split("::")[2], "custom": True, "id": "l4-spot"}

    for kind in ("updating", "deleting", "reading"):
        assert read_back(state(resource, open_steps=[step(kind, POOL)]), by_name).deployment == state(resource)


def test_the_second_half_of_a_replacement_follows_the_first() -> None:
    old = {"urn": POOL, "type": POOL.split("::")[2], "custom": True, "id": "old", "pendingReplacement": True}

    found = read_back(state(old, open_steps=[step("creating", POOL)]), by_name)

    assert [each.get("id") for each in found.deployment["resources"]] == [None, "l4-spot"]


def test_a_replacement_with_the_same_id_is_the_old_resource() -> None:
    old = {"urn": POOL, "type": POOL.split("::")[2], "custom": True, "id": "l4-spot"}

    found = read_back(state(old, open_steps=[step("creating", POOL)]), by_name)

    assert found.deployment == state(old)


def test_resources_that_were_not_created_are_forgotten_and_unclear_ones_reported() -> None:
    def unclear(_pending: PendingCreate, _taken: frozenset[str]) -> NotIdentified:
        return NotIdentified()

    given = state(open_steps=[step("creating", VPC)])

    assert read_back(given, lambda _pending, _taken: None).deployment == state()
    assert [each.urn for each in read_back(given, unclear).unclear] == [VPC]


def test_the_identifier_gets_the_ids_of_other_resources() -> None:
    seen: list[frozenset[str]] = []
    other = {"urn": VPC, "type": VPC.split("::")[2], "custom": True, "id": "vpc-1"}

    def look(_pending: PendingCreate, taken: frozenset[str]) -> None:
        seen.append(taken)

    read_back(state(other, open_steps=[step("creating", VPC + "-2")]), look)

    assert "vpc-1" in seen[0]


def live(**metadata: Any) -> dict[str, Any]:
    written = [{"manager": "pulumi-kubernetes", "operation": "Update"}]
    return {"urn": POOL, "type": POOL.split("::")[2], "custom": True, "outputs": {"metadata": {"managedFields": written, **metadata}}}


def test_an_object_with_the_labels_and_manager_of_the_stack_is_its_own() -> None:
    wanted = [PendingCreate(step("creating", POOL)["resource"])]

    assert foreign(state(live(labels={"flexspot.dev/owner": "ml-platform", "more": "x"})), wanted) == []
    assert foreign(state(live(labels={"flexspot.dev/owner": "other-team"})), wanted) == [POOL]
    assert foreign(state(live()), wanted) == [POOL]
    by_hand = live(labels={"flexspot.dev/owner": "ml-platform"}, managedFields=[{"manager": "kubectl-create"}])
    assert foreign(state(by_hand), wanted) == [POOL]
    assert foreign(state(), wanted) == [], "an object that does not exist belongs to no one"


def test_lost_resources_are_added_once_and_can_be_removed() -> None:
    pending = PendingCreate(step("creating", POOL)["resource"])

    once = with_resources(state(), [(pending, "l4-spot")])
    assert [each.get("id") for each in once["resources"]] == [None, "l4-spot"]
    assert with_resources(once, [(pending, "l4-spot")]) == once
    assert without(once, [POOL]) == state()


OTHER = "urn:pulumi:dev-eks::flexspot::aws:ec2/vpc:Vpc::another-vpc"


class StackStub:
    """A stack whose state can be exported and imported, like the Automation API's."""

    name = "dev-eks"

    def __init__(self, *pending: str) -> None:
        steps = [{"type": "creating", "resource": {"urn": urn, "type": urn.split("::")[2], "custom": True}} for urn in pending]
        self.state: dict[str, Any] = {"resources": [], "pending_operations": steps}
        self.imported: list[dict[str, Any]] = []

    def export_stack(self) -> Deployment:
        return Deployment(version=3, deployment=deepcopy(self.state))

    def import_stack(self, state: Deployment) -> None:
        self.state = dict(state.deployment or {})
        self.imported.append(self.state)


def settle(stack: Any, answers: dict[str, str | None]) -> None:
    def unidentified(_pending: PendingCreate, _taken: frozenset[str]) -> NotIdentified:
        return NotIdentified()

    Settling(stack, refresh=lambda: None, tell=lambda _line: None).settle(unidentified, answers)


def test_an_answer_with_an_id_reads_the_resource_back() -> None:
    stack = StackStub(VPC)

    settle(stack, {VPC: "vpc-1"})

    assert [(each["urn"], each["id"]) for each in stack.state["resources"]] == [(VPC, "vpc-1")]
    assert stack.state["pending_operations"] == []


def test_an_answer_without_an_id_forgets_the_resource() -> None:
    stack = StackStub(VPC)

    settle(stack, {VPC: None})

    assert stack.state == {"resources": [], "pending_operations": []}


def test_unclear_resources_are_asked_about_and_the_state_stays() -> None:
    stack = StackStub(VPC, OTHER)

    with pytest.raises(ExplainedError) as asked:
        settle(stack, {VPC: "vpc-1"})

    assert asked.value.evidence == (f"aws:ec2/vpc:Vpc another-vpc: --made '{OTHER}=ID' or --not-made '{OTHER}'",)
    assert stack.imported == []


def test_an_answer_about_another_resource_is_refused_with_the_pending_ones() -> None:
    stack = StackStub(VPC)

    with pytest.raises(ExplainedError, match=rf"was creating {OTHER}\.") as refused:
        settle(stack, {VPC: "vpc-1", OTHER: "vpc-2"})

    assert refused.value.exit_code is ExitCode.BAD_USAGE
    assert refused.value.evidence == (VPC,)
    assert stack.imported == []


def test_an_answer_without_a_pending_create_is_refused() -> None:
    with pytest.raises(ExplainedError, match="no interrupted creation waits"):
        settle(StackStub(), {VPC: None})
