"""Checks of buckets, file systems, keys, work queues and names."""

from __future__ import annotations

import pytest
from resolved_fixtures import reports

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
    names_are_not_reserved_by_google,
)


@pytest.mark.parametrize("cloud,region,other", [("gke", "us-central1", "EU"), ("eks", "us-east-1", "us-west-2")])
def test_buckets_outside_the_region_are_refused(cloud: str, region: str, other: str) -> None:
    assert reports(buckets_are_in_the_region, cloud, {"storage.location": other}) == ["refused: bucket-outside-region at storage.location"]
    assert reports(buckets_are_in_the_region, cloud, {"storage.location": region}) == []
    assert reports(buckets_are_in_the_region, cloud) == []


SUBNETS = {
    "network.existing_vpc": "vpc-0a1b2c3d4e5f60718",
    "network.existing_private_subnets": ["subnet-0a1b2c3d4e5f60718", "subnet-0a1b2c3d4e5f60719"],
}


@pytest.mark.parametrize("purpose", ["checkpoints", "datasets"])
def test_a_file_system_needs_subnets_for_its_mount_targets(purpose: str) -> None:
    efs = {f"storage.{purpose}": "efs"}

    assert reports(file_systems_have_subnets, "eks", efs) == []
    assert reports(file_systems_have_subnets, "eks", {"cluster.existing": "theirs"}) == []
    assert reports(file_systems_have_subnets, "eks", efs | {"cluster.existing": "theirs"}) == [
        f"refused: efs-without-subnets at storage.{purpose}"
    ]
    assert reports(file_systems_have_subnets, "eks", efs | {"cluster.existing": "theirs", "network": {}} | SUBNETS) == []


def test_more_teams_than_the_policy_of_a_file_system_can_name_are_refused() -> None:
    teams = [{"name": f"team-{number}"} for number in range(191)]

    assert reports(file_systems_have_room_for_all_teams, "eks", {"storage.datasets": "efs", "teams": teams[:190]}) == []
    assert reports(file_systems_have_room_for_all_teams, "eks", {"teams": teams}) == []
    assert reports(file_systems_have_room_for_all_teams, "eks", {"storage.datasets": "efs", "teams": teams}) == [
        "refused: efs-teams at storage.datasets"
    ]


def test_checkpoint_days_get_a_warning_with_efs() -> None:
    assert reports(days_are_those_of_buckets, "eks", {"storage.checkpoints": "efs"}) == []
    assert reports(days_are_those_of_buckets, "eks", {"storage.checkpoint_days": 14, "storage.datasets": "efs"}) == []
    assert reports(days_are_those_of_buckets, "eks", {"storage.checkpoint_days": 14, "storage.checkpoints": "efs"}) == [
        "warned: checkpoints-kept-in-efs at storage.checkpoint_days"
    ]


def test_options_of_missing_file_systems_get_a_warning() -> None:
    options = {"storage.efs": {"infrequent_access_days": 7}}

    assert reports(file_systems_are_used, "eks", options) == ["warned: efs-not-used at storage.efs"]
    assert reports(file_systems_are_used, "eks", options | {"storage.datasets": "efs"}) == []
    assert reports(file_systems_are_used, "eks") == []
    assert reports(file_systems_are_used, "gke") == []


def test_a_lease_must_outlast_the_longest_grace_period_and_the_last_write() -> None:
    # Training, which the pool serves, has a grace period of 90 seconds. The margin for the last write is 30.
    assert reports(leases_are_longer_than_the_grace, "gke", {"teams.0.work_queue": {"lease_seconds": 119}}) == [
        "refused: lease-within-grace at teams.0.work_queue.lease_seconds"
    ]
    assert reports(leases_are_longer_than_the_grace, "gke", {"teams.0.work_queue": {"lease_seconds": 120}}) == []
    assert reports(leases_are_longer_than_the_grace, "gke", {"teams.0.work_queue": {}}) == []


@pytest.mark.parametrize(
    "cloud,key",
    [
        ("gke", "projects/acme-ai-test/locations/{}/keyRings/ai/cryptoKeys/buckets"),
        ("eks", "arn:aws:kms:{}:111122223333:key/0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"),
    ],
)
def test_a_key_of_another_region_is_refused(cloud: str, key: str) -> None:
    here = {"gke": "us-central1", "eks": "us-east-1"}[cloud]

    assert reports(keys_are_in_the_region, cloud, {"storage.encryption_key": key.format("us-west-2")}) == [
        "refused: key-outside-region at storage.encryption_key"
    ]
    assert reports(keys_are_in_the_region, cloud, {"storage.encryption_key": key.format(here)}) == []
    assert reports(keys_are_in_the_region, cloud) == []


def test_a_global_key_gets_a_warning_for_secrets_and_disks() -> None:
    wide = "projects/acme-ai-test/locations/global/keyRings/ai/cryptoKeys/all"
    keys = {"cluster.security": {"secrets_kms_key": wide}, "pools.0.boot_disk_kms_key": wide}

    assert reports(keys_are_in_the_region, "gke", keys) == [
        "warned: key-outside-region at cluster.security.secrets_kms_key",
        "warned: key-outside-region at pools.0.boot_disk_kms_key",
    ]
    assert reports(keys_are_in_the_region, "gke", {"storage.encryption_key": wide}) == [
        "refused: key-outside-region at storage.encryption_key"
    ]


@pytest.mark.parametrize(
    "path,name", [("environment", "google-test"), ("environment", "my-google"), ("project", "google-ai-test"), ("project", "googol-ai")]
)
def test_a_name_that_cloud_storage_refuses_in_a_bucket_is_reported_with_its_setting(path: str, name: str) -> None:
    assert reports(names_are_not_reserved_by_google, "gke", {path: name}) == [f"refused: name-with-google at {path}"]


def test_an_environment_that_begins_with_goog_is_refused_with_work_queues() -> None:
    queue: dict[str, object] = {"teams.0.work_queue": {}}

    assert reports(names_are_not_reserved_by_google, "gke", {"environment": "good"} | queue) == []
    assert reports(names_are_not_reserved_by_google, "gke", {"environment": "googol"}) == [], "a bucket begins with the project"
    assert reports(names_are_not_reserved_by_google, "gke", {"environment": "googol"} | queue) == [
        "refused: name-with-google at environment"
    ]
    assert reports(names_are_not_reserved_by_google, "eks", {"environment": "google-test"}) == []
