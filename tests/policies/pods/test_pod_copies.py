"""How many pods of one template run at once, by what the object itself says."""

from __future__ import annotations

from typing import Any

from policies.inventory.reading import views_of
from policies.inventory.reading.source import from_manifest
from policies.inventory.views import PodSet
from policies.pods.selection import copies_of
from policies.values.field import UNKNOWN

POD: dict[str, Any] = {"template": {"spec": {"containers": [{"name": "work"}]}}}
SENTINEL = "3eeb2bf0-c639-47a8-9e75-3b44932eb421"


def copies(api_version: str, kind: str, spec: dict[str, Any]) -> list[object]:
    source = from_manifest({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "spec": spec})
    return [copies_of(view) for view in views_of(source) if isinstance(view, PodSet)]


def test_a_leader_leads_the_others_of_its_group() -> None:
    group = {"size": 4, "leaderTemplate": POD["template"], "workerTemplate": POD["template"]}

    assert copies("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", {"replicas": 2, "leaderWorkerTemplate": group}) == [2, 6]
    assert copies("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", {"leaderWorkerTemplate": {**group, "size": SENTINEL}}) == [UNKNOWN] * 2
