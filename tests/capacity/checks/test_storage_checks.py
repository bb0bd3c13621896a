"""Buckets and work queues against where the nodes are and how long their work may take to end."""

from __future__ import annotations

import pytest
from resolved_fixtures import told

from flexspot.capacity.plan.checks.existing_parts import (
    days_are_those_of_buckets,
    file_systems_are_used,
    file_systems_have_room_for_all_teams,
    file_systems_have_subnets,
)
from flexspot.capacity.plan.checks.places import (
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


SUBNETS = {
    "network.existing_vpc": "vpc-0a1b2c3d4e5f60718",
    "network.existing_private_subnets": ["subnet-0a1b2c3d4e5f60718", "subnet-0a1b2c3d4e5f60719"],
}


@pytest.mark.parametrize("purpose", ["checkpoints", "datasets"])
def test_a_file_system_has_subnets_for_its_mount_targets(purpose: str) -> None:
    efs = {f"storage.{purpose}": "efs"}

    assert told(file_systems_have_subnets, "eks", efs) == []
    assert told(file_systems_have_subnets, "eks", {"cluster.existing": "theirs"}) == []
    assert told(file_systems_have_subnets, "eks", efs | {"cluster.existing": "theirs"}) == [
        f"refused: efs-without-subnets at storage.{purpose}"
    ]
    assert told(file_systems_have_subnets, "eks", efs | {"cluster.existing": "theirs", "network": {}} | SUBNETS) == []


def test_a_file_system_is_for_as_many_teams_as_its_policy_can_name() -> None:
    teams = [{"name": f"team-{number}"} for number in range(191)]

    assert told(file_systems_have_room_for_all_teams, "eks", {"storage.datasets": "efs", "teams": teams[:190]}) == []
    assert told(file_systems_have_room_for_all_teams, "eks", {"teams": teams}) == []
    assert told(file_systems_have_room_for_all_teams, "eks", {"storage.datasets": "efs", "teams": teams}) == [
        "refused: efs-teams at storage.datasets"
    ]


def test_days_of_checkpoints_that_efs_keeps_are_warned_of() -> None:
    assert told(days_are_those_of_buckets, "eks", {"storage.checkpoints": "efs"}) == []
    assert told(days_are_those_of_buckets, "eks", {"storage.checkpoint_days": 14, "storage.datasets": "efs"}) == []
    assert told(days_are_those_of_buckets, "eks", {"storage.checkpoint_days": 14, "storage.checkpoints": "efs"}) == [
        "warned: checkpoints-kept-in-efs at storage.checkpoint_days"
    ]


def test_options_of_file_systems_that_are_not_there_are_warned_of() -> None:
    options = {"storage.efs": {"infrequent_access_days": 7}}

    assert told(file_systems_are_used, "eks", options) == ["warned: efs-not-used at storage.efs"]
    assert told(file_systems_are_used, "eks", options | {"storage.datasets": "efs"}) == []
    assert told(file_systems_are_used, "eks") == []
    assert told(file_systems_are_used, "gke") == []


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
