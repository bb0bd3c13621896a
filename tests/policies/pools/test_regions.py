"""Where buckets and clusters are."""

from __future__ import annotations

from typing import Any

import pytest

from policies.inventory.cloud_resources import Bucket, Cluster
from policies.inventory.reading import views_of
from policies.inventory.reading.source import from_pulumi
from policies.inventory.views import Inventory
from policies.pools import is_near, region_of_cluster

GKE, GCS = "gcp:container/cluster:Cluster", "gcp:storage/bucket:Bucket"


def among(*resources: tuple[str, dict[str, Any]]) -> Inventory:
    return Inventory(tuple(view for kind, inputs in resources for view in views_of(from_pulumi(kind, "it", inputs))))


@pytest.mark.parametrize(
    "location,region,near",
    [
        ("us-central1", "us-central1", True),
        ("US-CENTRAL1", "us-central1-c", True),
        ("us-east1", "us-central1", False),
        ("US", "us-west4", True),
        ("US", "northamerica-northeast1", False),
        ("NAM4", "northamerica-northeast1", True),
        ("EU", "europe-west4", True),
        ("EUR4", "us-central1", False),
        ("ASIA1", "asia-northeast1", True),
        ("ASIA", "australia-southeast1", False),
    ],
)
def test_a_location_of_cloud_storage_covers_a_region(location: str, region: str, near: object) -> None:
    inventory = among((GCS, {"location": location}), (GKE, {"location": region}))

    assert is_near(inventory.of(Bucket)[0], inventory.of(Cluster)[0], inventory) is near


def test_the_region_of_a_zone_and_of_a_provider() -> None:
    zonal = among((GKE, {"location": "me-central2-a"}))
    provided = among(("aws:eks/cluster:Cluster", {}), ("pulumi:providers:aws", {"region": "eu-north-1"}))

    assert region_of_cluster(zonal.of(Cluster)[0], zonal) == "me-central2"
    assert region_of_cluster(provided.of(Cluster)[0], provided) == "eu-north-1"
