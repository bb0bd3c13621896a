"""Volumes of buckets on a real API server, where their claims are bound although there is no driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from program_declarations import plan_of

from flexspot.capacity.workloads.kinds import objects_of
from flexspot.components.storage.gcs_bucket import GcsFuseVolume

if TYPE_CHECKING:
    from queue_objects import Register

    from flexspot.lab.cluster import Cluster, KubeObject

pytestmark = pytest.mark.lab

VOLUME, CLAIM = "v1/PersistentVolume", "v1/PersistentVolumeClaim"


def of_component(register: Register, namespace: str, purpose: str) -> list[KubeObject]:
    """Return the volume and the claim of a team's checkpoints or of its data sets."""
    inputs: Any = {
        "team": "red",
        "namespace": namespace,
        "bucket": "acme-ai-dev",
        "purpose": purpose,
        "labels": {"flexspot.dev/owner": "ann"},
    }
    created = register(lambda: GcsFuseVolume("red", inputs | {"file_cache_gib": 4}))
    return [
        {"apiVersion": "v1", "kind": kind, **each}
        for kind in ("PersistentVolume", "PersistentVolumeClaim")
        for each in created.of(f"kubernetes:core/v1:{kind}")
    ]


def of_model_cache(namespace: str, stack: str) -> list[KubeObject]:
    """Return the volume and the claim that `flexspot render model-cache` creates, in the test's own namespace."""
    volume, claim = objects_of(plan_of(stack), "model-cache", {"name": "weights", "team": "search", "bucket": "acme-ai-prod-prod-datasets"})
    claim["metadata"]["namespace"] = volume["spec"]["claimRef"]["namespace"] = namespace
    return [volume, claim]


@pytest.mark.parametrize(
    "made_by,mode",
    [
        ("checkpoints", "ReadWriteMany"),
        ("prod-eks", "ReadOnlyMany"),
    ],
)
def test_a_volume_is_accepted_and_its_claim_bound_to_it_alone(
    made_by: str, mode: str, cluster: Cluster, namespace: str, register: Register
) -> None:
    of_cache = made_by.startswith("prod-")
    volume, claim = of_model_cache(namespace, made_by) if of_cache else of_component(register, namespace, made_by)
    name = volume["metadata"]["name"]

    def bound(claims: list[KubeObject]) -> KubeObject | None:
        return next((each for each in claims if each["status"].get("phase") == "Bound"), None)

    try:
        kept, _ = cluster.apply(volume, claim)
        found = cluster.wait_for(CLAIM, bound, f"the claim of {namespace}", namespace=namespace)
    finally:
        cluster.delete(CLAIM, claim["metadata"]["name"], namespace)
        cluster.delete(VOLUME, name)
        cluster.wait_for(VOLUME, lambda volumes: name not in {each["metadata"]["name"] for each in volumes}, f"the end of {name}")

    assert found["spec"]["volumeName"] == name
    assert found["spec"]["storageClassName"] == "", "no default class made a disk of its own"
    assert found["status"]["accessModes"] == [mode]
    assert (kept["spec"]["csi"], kept["spec"].get("mountOptions")) == (volume["spec"]["csi"], volume["spec"].get("mountOptions"))
