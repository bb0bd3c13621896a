"""Which pods a selector selects, as the API server has it."""

from __future__ import annotations

from typing import Any

from policies.inventory.objects import PodDisruptionBudget
from policies.inventory.reading import views_of
from policies.inventory.reading.source import from_manifest
from policies.inventory.views import Inventory, PodSet
from policies.pods.selection import selected, selects
from policies.values.field import UNKNOWN, Field

SENTINEL = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"


def pods(kind: str = "Deployment", api_version: str = "apps/v1", namespace: str = "team-a", **labels: str) -> PodSet:
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "work"}]}}
    metadata = {"name": "train", "namespace": namespace}
    manifest: dict[str, Any] = {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": {"template": template}}
    return next(view for view in views_of(from_manifest(manifest)) if isinstance(view, PodSet))


def test_what_another_controller_writes_is_not_known() -> None:
    selector = Field({"matchLabels": {"ray.io/cluster": "train"}})

    assert selects(selector, pods()) is UNKNOWN
    assert selects(selector, pods(**{"ray.io/cluster": "train"})) is True


def budget(**metadata: str) -> PodDisruptionBudget:
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "work"}}}
    source = from_manifest({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b", **metadata}, "spec": spec})
    return next(view for view in views_of(source) if isinstance(view, PodDisruptionBudget))


def test_a_budget_selects_in_its_own_namespace_alone() -> None:
    inventory = Inventory((pods(app="work"), pods(namespace="team-b", app="work"), pods(namespace=SENTINEL, app="work")))

    found = [(each.identity.namespace, answer) for each, answer in selected(budget(namespace="team-a"), inventory)]

    assert found == [("team-a", True), ("", UNKNOWN)]
