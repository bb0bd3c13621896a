"""What a priority does to pods: facts that stand in capacity as well, and who makes the nodes."""

from __future__ import annotations

from typing import Any

import pytest

from capacity.catalog.workload_classes import SCALE_UP_CUTOFF
from policies.inventory.objects import PriorityClass
from policies.inventory.reading import views_of
from policies.inventory.reading.source import from_manifest, from_pulumi
from policies.inventory.views import Inventory
from policies.pods.placement import SCALE_UP_CUT_OFF, below_scale_up, defaults, is_of_pods, users_of
from policies.values.field import UNKNOWN, Tri

KARPENTER: dict[str, Any] = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "p"}, "spec": {}}
GKE = from_pulumi("gcp:container/nodePool:NodePool", "cpu", {"nodeConfig": {"machineType": "e2-standard-4"}})


def priority(value: object, name: str = "low", group: str = "scheduling.k8s.io/v1", **more: Any) -> PriorityClass:
    kind = "PriorityClass" if group.startswith("scheduling") else "WorkloadPriorityClass"
    source = from_manifest({"apiVersion": group, "kind": kind, "metadata": {"name": name}, "value": value, **more})
    return next(view for view in views_of(source) if isinstance(view, PriorityClass))


def inventory(*others: Any) -> Inventory:
    return Inventory(tuple(view for each in others for view in views_of(from_manifest(each) if isinstance(each, dict) else each)))


def test_the_line_is_the_one_that_settings_keep_to() -> None:
    assert SCALE_UP_CUT_OFF == SCALE_UP_CUTOFF


@pytest.mark.parametrize(
    "value,others,answer",
    [(-11, [], UNKNOWN), (-10, [], False), (-100, [KARPENTER], False), (-100, [KARPENTER, GKE], True), (-100, [GKE], True)],
)
def test_karpenter_alone_makes_nodes_for_any_pod(value: int, others: list[Any], answer: Tri) -> None:
    assert below_scale_up(priority(value), inventory(*others)) is answer


def test_a_value_that_is_not_known_yet_is_on_neither_side() -> None:
    assert below_scale_up(priority("3eeb2bf0-c639-47a8-9e75-3b44932eb421"), inventory()) is UNKNOWN


def test_only_kubernetes_own_classes_of_users_are_meant() -> None:
    assert is_of_pods(priority(0))
    assert not is_of_pods(priority(0, group="kueue.x-k8s.io/v1beta2"))
    assert not is_of_pods(priority(2_000_000_000, "system-node-critical"))


def test_the_default_and_the_users_of_a_class_are_found() -> None:
    low, default = priority(-5), priority(10, "everything", globalDefault=True)
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a"},
        "spec": {"priorityClassName": "low", "containers": []},
    }
    views = tuple(views_of(from_manifest(pod)))
    everything = Inventory((low, default, *views))

    assert [each.identity.name for each in defaults(everything)] == ["everything"]
    assert [each.identity.name for each in users_of(low, everything)] == ["a"]
    assert users_of(default, everything) == []
