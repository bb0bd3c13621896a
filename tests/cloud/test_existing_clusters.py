"""`up` refuses an existing cluster that lacks what a platform needs, with every reason, and creates nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from cloud_folder import Held

if TYPE_CHECKING:
    from cloud_world import CloudWorld

pytestmark = pytest.mark.engine

CLUSTER = "gcp:container/cluster:Cluster"
WHERE = "theirs --location us-central1-b --project acme-ai-dev"
UPDATE = f"gcloud container clusters update {WHERE}"
REPORTED = (
    f"Workload Identity of theirs is off, so pods cannot act as their team's service account; ask its owner to run `{UPDATE}",
    f"the Cloud Storage FUSE driver of theirs is off, so pods that mount a bucket would not start; ask its owner to run `{UPDATE}",
    "theirs has GKE 1.34.9-gke.1, but 1.35.0-gke.1171000 or newer is required by pools.0.shutdown_grace_seconds (l4-spot: 120); ask",
    "node auto-provisioning of theirs has a limit of 8 for cpu, above which no pool grows, but the pools alone may use ",
)


def put(world: CloudWorld, **outputs: Any) -> None:
    """Put a zonal cluster into the cloud, as the provider reads it. Disabled features are left out."""
    identity = "projects/acme-ai-dev/locations/us-central1-b/clusters/theirs"
    known = {"name": "theirs", "endpoint": "172.16.0.2", "masterAuth": {"clusterCaCertificate": "Y2E="}, "addonsConfig": {}}
    world.cloud.put(Held(CLUSTER, identity, f"urn:pulumi:theirs::theirs::{CLUSTER}::theirs", {}, known | outputs))
    world.change("dev-gke", cluster={"existing": "theirs", "zone": "us-central1-b"})


def test_a_cluster_without_required_features_is_refused_before_anything_is_created(bare_world: CloudWorld) -> None:
    limits = [{"resourceType": "cpu", "maximum": 8}, {"resourceType": "memory", "maximum": 64000}]
    put(bare_world, masterVersion="1.34.9-gke.1", clusterAutoscaling={"enabled": True, "resourceLimits": limits})

    done = bare_world.flexspot("up", "-s", "dev-gke", "--yes")

    assert done.returncode == 1, done.stdout + done.stderr
    assert [each for each in REPORTED if f"ExistingGkeCluster cluster: {each}" not in done.stdout] == []
    assert "Traceback" not in done.stdout + done.stderr
    assert {event.operation for event in bare_world.cloud.events()} == {"read"}
