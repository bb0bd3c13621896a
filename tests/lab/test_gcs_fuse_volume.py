"""GcsFuseVolume's objects on a real API server, where the claim is bound though no driver is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from components.storage.gcs_bucket import GcsFuseVolume

if TYPE_CHECKING:
    from lab.cluster import Cluster, KubeObject

pytestmark = pytest.mark.lab

VOLUME = "v1/PersistentVolume"
CLAIM = "v1/PersistentVolumeClaim"

Register = Callable[[Callable[[], object]], Any]


@pytest.mark.parametrize("purpose,mode", [("checkpoints", "ReadWriteMany"), ("datasets", "ReadOnlyMany")])
def test_the_volume_is_accepted_and_its_claim_bound_to_it_alone(
    purpose: str, mode: str, cluster: Cluster, namespace: str, register: Register
) -> None:
    registered = register(
        lambda: GcsFuseVolume(
            "red",
            {
                "team": "red",
                "namespace": namespace,
                "bucket": "acme-ai-dev",
                "purpose": purpose,
                "labels": {"flexspot.dev/owner": "ann"},
                "file_cache_gib": 4,
            },
        )
    )
    [volume] = registered.of(f"kubernetes:core/{VOLUME.replace('/', ':')}")
    [claim] = registered.of(f"kubernetes:core/{CLAIM.replace('/', ':')}")

    try:
        applied = cluster.apply(
            {"apiVersion": "v1", "kind": "PersistentVolume", **volume},
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **claim},
        )
        bound = cluster.wait_for(CLAIM, the_bound, f"the claim of {namespace}", namespace=namespace)
    finally:
        cluster.delete(CLAIM, purpose, namespace)
        cluster.delete(VOLUME, f"{namespace}.{purpose}")

    assert bound["spec"]["volumeName"] == f"{namespace}.{purpose}"
    assert bound["spec"]["storageClassName"] == "", "no default class made a disk of its own"
    assert bound["status"]["accessModes"] == [mode]
    assert applied[0]["spec"]["csi"] == volume["spec"]["csi"]
    assert applied[0]["spec"]["mountOptions"] == volume["spec"]["mountOptions"]


def the_bound(claims: list[KubeObject]) -> KubeObject | None:
    return next((claim for claim in claims if claim["status"].get("phase") == "Bound"), None)
