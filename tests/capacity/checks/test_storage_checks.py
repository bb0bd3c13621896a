"""Buckets and work queues against where the nodes are and how long their work may take to end."""

from __future__ import annotations

import pytest
from resolved_fixtures import told

from capacity.plan.checks.places import (
    buckets_are_in_the_region,
    keys_are_in_the_region,
    leases_are_longer_than_the_grace,
    names_are_not_googles_own,
)


@pytest.mark.parametrize("cloud,region,other", [("gke", "us-central1", "EU"), ("eks", "us-east-1", "us-west-2")])
def test_buckets_are_where_the_nodes_are(cloud: str, region: str, other: str) -> None:
    assert told(buckets_are_in_the_region, cloud, {"storage.location": other}) == ["refused: bucket-outside-region at storage.location"]
    assert told(buckets_are_in_the_region, cloud, {"storage.location": region}) == []
    assert told(buckets_are_in_the_region, cloud) == []


def test_a_lease_outlasts_the_longest_grace_of_a_class_and_the_last_write() -> None:
    # Training, which the pool serves, has 90 seconds of grace; 30 more are for the last write.
    assert told(leases_are_longer_than_the_grace, "gke", {"teams.0.work_queue": {"lease_seconds": 119}}) == [
        "refused: lease-within-grace at teams.0.work_queue.lease_seconds"
    ]
    assert told(leases_are_longer_than_the_grace, "gke", {"teams.0.work_queue": {"lease_seconds": 120}}) == []
    assert told(leases_are_longer_than_the_grace, "gke", {"teams.0.work_queue": {}}) == []


@pytest.mark.parametrize(
    "cloud,key",
    [
        ("gke", "projects/acme-ai-test/locations/{}/keyRings/ai/cryptoKeys/buckets"),
        ("eks", "arn:aws:kms:{}:111122223333:key/0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"),
    ],
)
def test_a_key_is_of_the_region_of_what_it_encrypts(cloud: str, key: str) -> None:
    here = {"gke": "us-central1", "eks": "us-east-1"}[cloud]

    assert told(keys_are_in_the_region, cloud, {"storage.encryption_key": key.format("us-west-2")}) == [
        "refused: key-outside-region at storage.encryption_key"
    ]
    assert told(keys_are_in_the_region, cloud, {"storage.encryption_key": key.format(here)}) == []
    assert told(keys_are_in_the_region, cloud) == []


def test_a_key_of_no_one_region_is_warned_of_for_secrets_and_disks() -> None:
    wide = "projects/acme-ai-test/locations/global/keyRings/ai/cryptoKeys/all"
    keys = {"cluster.security": {"secrets_kms_key": wide}, "pools.0.boot_disk_kms_key": wide}

    assert told(keys_are_in_the_region, "gke", keys) == [
        "warned: key-outside-region at cluster.security.secrets_kms_key",
        "warned: key-outside-region at pools.0.boot_disk_kms_key",
    ]
    assert told(keys_are_in_the_region, "gke", {"storage.encryption_key": wide}) == [
        "refused: key-outside-region at storage.encryption_key"
    ]


@pytest.mark.parametrize(
    "path,name", [("environment", "google-test"), ("environment", "my-google"), ("project", "google-ai-test"), ("project", "googol-ai")]
)
def test_a_name_that_cloud_storage_would_refuse_in_a_bucket_is_told_with_the_setting_that_has_it(path: str, name: str) -> None:
    assert told(names_are_not_googles_own, "gke", {path: name}) == [f"refused: name-with-google at {path}"]


def test_an_environment_that_begins_like_google_is_refused_where_work_queues_begin_with_it() -> None:
    queue: dict[str, object] = {"teams.0.work_queue": {}}

    assert told(names_are_not_googles_own, "gke", {"environment": "good"} | queue) == []
    assert told(names_are_not_googles_own, "gke", {"environment": "googol"}) == [], "a bucket begins with the project"
    assert told(names_are_not_googles_own, "gke", {"environment": "googol"} | queue) == ["refused: name-with-google at environment"]
    assert told(names_are_not_googles_own, "eks", {"environment": "google-test"}) == []
