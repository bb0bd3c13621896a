"""Pods that a selector selects, and the number of pods of one template that run at the same time."""

from __future__ import annotations

from typing import Any

from manifests import manifest, views

from flexspot.policies.inventory.objects import PodDisruptionBudget
from flexspot.policies.inventory.views import Inventory, PodSet
from flexspot.policies.pods.selection import copies_of, selected, selects
from flexspot.policies.values.field import UNKNOWN, Field

POD = {"containers": [{"name": "work"}]}
SENTINEL = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"


def pods(namespace: str = "team-a", **labels: str) -> PodSet:
    [found] = views(
        PodSet, manifest("apps/v1", "Deployment", {"template": {"metadata": {"labels": labels}, "spec": POD}}, namespace=namespace)
    )
    return found


def test_labels_that_another_controller_writes_are_unknown() -> None:
    selector = Field({"matchLabels": {"ray.io/cluster": "train"}})

    assert selects(selector, pods()) is UNKNOWN
    assert selects(selector, pods(**{"ray.io/cluster": "train"})) is True


def test_a_budget_selects_only_in_its_own_namespace() -> None:
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "work"}}}
    [budget] = views(PodDisruptionBudget, manifest("policy/v1", "PodDisruptionBudget", spec, namespace="team-a"))
    inventory = Inventory((pods(app="work"), pods(namespace="team-b", app="work"), pods(namespace=SENTINEL, app="work")))

    assert [(each.identity.namespace, answer) for each, answer in selected(budget, inventory)] == [("team-a", True), ("", UNKNOWN)]


def test_a_group_has_one_leader_and_the_rest_of_its_size_as_workers() -> None:
    def copies(spec: dict[str, Any]) -> list[object]:
        return [copies_of(each) for each in views(PodSet, manifest("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", spec))]

    group = {"size": 4, "leaderTemplate": {"spec": POD}, "workerTemplate": {"spec": POD}}

    assert copies({"replicas": 2, "leaderWorkerTemplate": group}) == [2, 6]
    assert copies({"leaderWorkerTemplate": {**group, "size": SENTINEL}}) == [UNKNOWN] * 2
