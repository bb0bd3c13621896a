"""Manual changes that a refresh finds, read from the engine's events."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from flexspot.infra.deployment.drift import Drifts

URN = "urn:pulumi:local::flexspot::flexspot:index:GpuNodePool$kubernetes:karpenter.sh/v1:NodePool::l4-spot-node-pool"


def events(op: str, old: dict[str, Any] | None, new: dict[str, Any] | None, *, refreshed: bool = True) -> list[Any]:
    def side(inputs: dict[str, Any] | None) -> Any:
        return None if inputs is None else SimpleNamespace(custom=True, inputs=inputs)

    before = SimpleNamespace(urn=URN, op="refresh" if refreshed else op)
    after = SimpleNamespace(urn=URN, op=op, old=side(old), new=side(new))
    return [
        SimpleNamespace(resource_pre_event=SimpleNamespace(metadata=before), res_outputs_event=None),
        SimpleNamespace(resource_pre_event=None, res_outputs_event=SimpleNamespace(metadata=after)),
    ]


def heard(*found_events: Any) -> list[tuple[str, str, str, str]]:
    drifts = Drifts()
    for event in found_events:
        drifts.hear(event)
    return [(each.resource, each.path, each.deployed, each.found) for each in drifts.found]


def test_a_raised_ceiling_is_reported_with_both_values() -> None:
    found = heard(*events("update", {"spec": {"limits": {"nvidia.com/gpu": "4"}}}, {"spec": {"limits": {"nvidia.com/gpu": "400"}}}))

    assert found == [("NodePool l4-spot-node-pool", 'spec.limits["nvidia.com/gpu"]', "4", "400")]


def test_a_deleted_object_is_reported() -> None:
    assert heard(*events("delete", {"spec": {}}, None)) == [("NodePool l4-spot-node-pool", "", "there", "gone")]


def test_unchanged_inputs_are_not_reported() -> None:
    assert heard(*events("same", {"spec": {"a": [1, 2]}}, {"spec": {"a": [1, 2]}})) == []


def test_an_update_by_the_program_is_not_drift() -> None:
    assert heard(*events("update", {"spec": {"a": 1}}, {"spec": {"a": 2}}, refreshed=False)) == []


def test_a_refresh_and_the_update_after_it_are_distinguished() -> None:
    changed = events("update", {"a": "400"}, {"a": "4"}, refreshed=False)

    assert heard(*events("update", {"a": "4"}, {"a": "400"}), *changed) == [("NodePool l4-spot-node-pool", "a", "4", "400")]


def test_added_and_removed_values_and_keys_with_dots_are_reported() -> None:
    old: dict[str, Any] = {"metadata": {"labels": {"flexspot.dev/owner": "ml-platform"}}, "taints": [{"key": "a"}, {"key": "b"}]}
    new: dict[str, Any] = {"metadata": {"labels": {}}, "taints": [{"key": "a"}], "weight": 3}

    assert [each[1:] for each in heard(*events("update", old, new))] == [
        ('metadata.labels["flexspot.dev/owner"]', "ml-platform", "not set"),
        ("taints[1]", "{'key': 'b'}", "not set"),
        ("weight", "not set", "3"),
    ]
