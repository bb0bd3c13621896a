"""S3MountpointVolume: a volume and the claim that is bound to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pulumi
import pytest

from flexspot.components.storage.s3_bucket import S3MountpointVolume, S3MountpointVolumeArgs

if TYPE_CHECKING:
    from component_types import Outputs, Refusal, Register

VOLUME = "kubernetes:core/v1:PersistentVolume"
CLAIM = "kubernetes:core/v1:PersistentVolumeClaim"

BUCKET = "111122223333-dev-checkpoints-us-east-1"


def args(**changes: Any) -> S3MountpointVolumeArgs:
    # pyrefly: ignore[bad-return] -- some arguments are invalid on purpose
    return {
        "team": "red",
        "namespace": "team-red",
        "bucket": BUCKET,
        "region": "us-east-1",
        "purpose": "checkpoints",
        "labels": {"flexspot.dev/owner": "ann"},
    } | changes


def test_checkpoints_are_a_volume_that_many_nodes_write_bound_to_one_claim(register: Register) -> None:
    registered = register(lambda: S3MountpointVolume("red", args(bucket=pulumi.Output.from_input(BUCKET))))

    [volume], [claim] = registered.of(VOLUME), registered.of(CLAIM)
    assert volume["metadata"] == {"name": "team-red.checkpoints", "labels": {"flexspot.dev/owner": "ann"}}
    assert volume["spec"] | {"mountOptions": None} == {
        "accessModes": ["ReadWriteMany"],
        "capacity": {"storage": "1Gi"},
        "claimRef": {"namespace": "team-red", "name": "checkpoints"},
        "persistentVolumeReclaimPolicy": "Retain",
        "mountOptions": None,
        "csi": {
            "driver": "s3.csi.aws.com",
            "volumeHandle": "team-red.checkpoints",
            "volumeAttributes": {"bucketName": BUCKET, "authenticationSource": "pod"},
        },
    }
    assert claim["metadata"] == {"name": "checkpoints", "namespace": "team-red", "labels": {"flexspot.dev/owner": "ann"}}
    assert claim["spec"]["volumeName"] == "team-red.checkpoints"


def test_checkpoints_show_the_teams_folder_owned_by_the_pods_user_to_write_and_delete(register: Register) -> None:
    [volume] = register(lambda: S3MountpointVolume("red", args(run_as_user=1234, run_as_group=5678))).of(VOLUME)

    assert volume["spec"]["mountOptions"] == [
        "region=us-east-1",
        "prefix=red/",
        "uid=1234",
        "gid=5678",
        "file-mode=664",
        "dir-mode=775",
        "allow-other",
        "allow-delete",
        "allow-overwrite",
    ]


def test_datasets_are_read_only_shared_and_looked_up_once(register: Register) -> None:
    registered = register(lambda: S3MountpointVolume("red", args(purpose="datasets")))

    [volume], [claim] = registered.of(VOLUME), registered.of(CLAIM)
    options = set(volume["spec"]["mountOptions"])
    assert volume["spec"]["accessModes"] == claim["spec"]["accessModes"] == ["ReadOnlyMany"]
    assert volume["spec"]["csi"]["readOnly"] is True
    assert {"prefix=shared/", "read-only", "metadata-ttl=indefinite", "negative-metadata-ttl=minimal"} < options
    assert not options & {"allow-delete", "allow-overwrite"}
    assert claim["metadata"]["name"] == "datasets"


def test_a_folder_a_claim_and_a_bounded_cache_can_be_set(register: Register) -> None:
    changes = {"purpose": "datasets", "folder": "vision/imagenet", "claim": "imagenet", "file_cache_gib": 2}

    registered = register(lambda: S3MountpointVolume("red", args(**changes)))

    [volume], [claim] = registered.of(VOLUME), registered.of(CLAIM)
    attributes = volume["spec"]["csi"]["volumeAttributes"]
    assert "prefix=vision/imagenet/" in volume["spec"]["mountOptions"]
    assert (attributes["cache"], attributes["cacheEmptyDirSizeLimit"]) == ("emptyDir", "2Gi")
    assert volume["metadata"]["name"] == claim["spec"]["volumeName"] == "team-red.imagenet"


def test_two_volumes_of_one_bucket_have_two_handles_so_that_a_pod_gets_both(register: Register) -> None:
    def declare() -> None:
        S3MountpointVolume("own", args())
        S3MountpointVolume("old", args(claim="old", folder="red/2024"))
        S3MountpointVolume("other", args(namespace="team-blue", team="blue"))

    handles = [volume["spec"]["csi"]["volumeHandle"] for volume in register(declare).of(VOLUME)]

    assert sorted(handles) == ["team-blue.checkpoints", "team-red.checkpoints", "team-red.old"]


def test_its_outputs_are_the_names_of_claim_and_volume(outputs: Outputs) -> None:
    assert outputs(lambda: S3MountpointVolume("red", args())) == {"claim": "checkpoints", "volume": "team-red.checkpoints"}


@pytest.mark.parametrize(
    "change,problem",
    [
        ({"region": "us-east-1a"}, "region (is 'us-east-1a'): must be a region such as us-east-1"),
        (
            {"folder": "red --prefix blue"},
            "folder (is 'red --prefix blue'): must be a path such as vision/imagenet, of a-z, 0-9, ., - and _, without a slash at",
        ),
        (
            {"run_as_user": 0},
            "run_as_user (is 0): must be at least 1, because restricted Pod Security rejects root; give the id that the pods run as",
        ),
        ({"file_cache_gib": -1, "purpose": "datasets"}, "file_cache_gib (is -1): must be 0 or more; give 0 for no cache, or a size in GiB"),
        (
            {"file_cache_gib": 2},
            "file_cache_gib (is 2): is only for datasets: with purpose checkpoints a node would keep reading an overwritten",
        ),
    ],
)
def test_volumes_that_could_not_be_mounted_are_refused_before_anything_is_registered(
    change: dict[str, Any], problem: str, refusal: Refusal
) -> None:
    assert problem in refusal(S3MountpointVolume, "red", args(**change))
