"""Kueue's objects of every shipped stack: the real API server and Kueue's webhooks accept them unchanged, and Kueue activates them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from program_declarations import shipped
from queue_fixtures import GKE, queues_of

from flexspot.lab.cluster import condition

if TYPE_CHECKING:
    from queue_objects import Register

    from flexspot.lab.cluster import Cluster, KubeObject

pytestmark = pytest.mark.lab

V1BETA2 = "kueue.x-k8s.io/v1beta2"

PLACED: dict[str, Any] = {
    **GKE,
    "cohorts": [{"name": "department", "weight": 1000}],
    "pools": [
        {"name": "h100", "machine": "a3-highgpu-8g", "capacity_type": "queued", "max_nodes": 200, "topology": True, "serves": ["training"]},
        {"name": "l4", "machine": "g2-standard-8", "capacity_type": "spot", "max_nodes": 4, "serves": ["interactive"]},
    ],
    "teams": [{"name": "placed", "cohort": "department", "weight": 3, "shares": {"h100": 1000, "l4": 0}, "lending_limits": {"h100": 0}}],
}
"""Features that no shipped stack has: a topology, and amounts with a shorter spelling."""

WIDE = pytest.mark.nightly(tested_by="test_every_object_is_accepted_unchanged_and_becomes_active")


def written_part(written: object, kept: Any) -> Any:
    """Return the part of the server's object that was written."""
    if isinstance(written, dict):
        fields: KubeObject = {**written}
        return {field: written_part(value, kept.get(field)) for field, value in fields.items()}
    if isinstance(written, list):
        items: list[object] = [*written]
        return [written_part(value, other) for value, other in zip(items, kept, strict=True)]
    return kept


def is_active(name: str, found: list[KubeObject]) -> bool:
    return any(each["metadata"]["name"] == name and condition(each, "Active") for each in found)


@pytest.mark.parametrize(
    "stack", ["prod-gke", "placed", *(pytest.param(each, marks=WIDE) for each in ("local", "dev-gke", "dev-eks", "prod-eks"))]
)
def test_every_object_is_accepted_unchanged_and_becomes_active(stack: str, cluster: Cluster, register: Register) -> None:
    # Returns once the ClusterQueues are active.
    with queues_of(cluster, register, {}, **(PLACED if stack == "placed" else shipped(stack))) as platform:
        kueues = [each for each in platform.objects if each["apiVersion"] == V1BETA2 and "spec" in each]
        assert ("Topology" in {each["kind"] for each in kueues}) == (stack == "placed")
        for each in kueues:
            kind, name, namespace = f"{V1BETA2}/{each['kind']}", each["metadata"]["name"], each["metadata"].get("namespace")
            kept = cluster.get(kind, name, namespace)
            assert kept is not None
            # A default that the server adds is no change. A rewritten value would be a change in every later preview.
            assert written_part(each["spec"], kept["spec"]) == each["spec"], f"{kind} {name}"
            if each["kind"] in {"AdmissionCheck", "LocalQueue"}:
                cluster.wait_for(kind, partial(is_active, name), f"{kind} {name} to be active", namespace=namespace)
            warnings = [event for event in cluster.list("v1/Event", namespace or "default") if event["type"] == "Warning"]
            assert [event["message"] for event in warnings if event["involvedObject"].get("name") == name] == []
