"""GcsFuseVolume: a volume and the claim that is bound to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from flexspot.components.storage.gcs_bucket import GcsFuseVolume, GcsFuseVolumeArgs

if TYPE_CHECKING:
    from component_types import Outputs, Refusal, Register

VOLUME = "kubernetes:core/v1:PersistentVolume"
CLAIM = "kubernetes:core/v1:PersistentVolumeClaim"


def args(**changes: Any) -> GcsFuseVolumeArgs:
    # pyrefly: ignore[bad-return] -- some arguments are invalid on purpose
    return {
        "team": "red",
        "namespace": "team-red",
        "bucket": "acme-ai-dev-checkpoints",
        "purpose": "checkpoints",
        "labels": {"flexspot.dev/owner": "ann"},
    } | changes


def test_checkpoints_are_a_volume_that_many_nodes_write_bound_to_one_claim(register: Register) -> None:
    registered = register(lambda: GcsFuseVolume("red", args()))

    [volume], [claim] = registered.of(VOLUME), registered.of(CLAIM)
    assert volume["metadata"] == {"name": "team-red.checkpoints", "labels": {"flexspot.dev/owner": "ann"}}
    assert volume["spec"] | {"mountOptions": None} == {
        "accessModes": ["ReadWriteMany"],
        "capacity": {"storage": "1Gi"},
        "claimRef": {"namespace": "team-red", "name": "checkpoints"},
        "persistentVolumeReclaimPolicy": "Retain",
        "mountOptions": None,
        "csi": {
            "driver": "gcsfuse.csi.storage.gke.io",
            "volumeHandle": "acme-ai-dev-checkpoints",
            "volumeAttributes": {"skipCSIBucketAccessCheck": "true"},
        },
    }
    assert claim["metadata"] == {"name": "checkpoints", "namespace": "team-red", "labels": {"flexspot.dev/owner": "ann"}}
    assert claim["spec"] == {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "",
        "volumeName": "team-red.checkpoints",
        "resources": {"requests": {"storage": "1Gi"}},
    }


def test_checkpoints_show_the_teams_folder_as_it_is_now_and_owned_by_the_pods_user(register: Register) -> None:
    [volume] = register(lambda: GcsFuseVolume("red", args(run_as_user=1234, run_as_group=5678))).of(VOLUME)

    assert volume["spec"]["mountOptions"] == [
        "implicit-dirs",
        "only-dir=red",
        "uid=1234",
        "gid=5678",
        "file-mode=664",
        "dir-mode=775",
        "enable-hns:false",
        "metadata-cache:negative-ttl-secs:0",
        "metadata-cache:ttl-secs:0",
        "write:enable-streaming-writes:true",
        "file-system:rename-dir-limit:200000",
    ]


def test_datasets_are_read_only_shared_and_looked_up_once(register: Register) -> None:
    registered = register(lambda: GcsFuseVolume("red", args(purpose="datasets")))

    [volume], [claim] = registered.of(VOLUME), registered.of(CLAIM)
    assert volume["spec"]["accessModes"] == claim["spec"]["accessModes"] == ["ReadOnlyMany"]
    assert volume["spec"]["csi"]["readOnly"] is True
    assert {"only-dir=shared", "metadata-cache:ttl-secs:-1"} < set(volume["spec"]["mountOptions"])
    assert not [option for option in volume["spec"]["mountOptions"] if option.startswith("write:")]
    assert claim["metadata"]["name"] == "datasets"


def test_a_folder_a_claim_and_a_bounded_cache_can_be_set(register: Register) -> None:
    changes = {"purpose": "datasets", "folder": "vision/imagenet", "claim": "imagenet", "file_cache_gib": 2}

    registered = register(lambda: GcsFuseVolume("red", args(**changes)))

    [volume], [claim] = registered.of(VOLUME), registered.of(CLAIM)
    assert "only-dir=vision/imagenet" in volume["spec"]["mountOptions"]
    assert "file-cache:max-size-mb:2048" in volume["spec"]["mountOptions"]
    assert volume["metadata"]["name"] == claim["spec"]["volumeName"] == "team-red.imagenet"


def test_a_volumes_name_fits_a_socket_and_is_unique(register: Register) -> None:
    names = [
        register(lambda claim=claim: GcsFuseVolume("red", args(namespace="n" * 63, claim=claim))).of(VOLUME)[0]["metadata"]["name"]
        for claim in ("a", "b")
    ]

    assert [len(name) for name in names] == [63, 63]
    assert names[0] != names[1]


def test_its_outputs_are_the_names_of_claim_and_volume(outputs: Outputs) -> None:
    assert outputs(lambda: GcsFuseVolume("red", args())) == {"claim": "checkpoints", "volume": "team-red.checkpoints"}


@pytest.mark.parametrize(
    "change,problem",
    [
        ({"purpose": "scratch"}, "purpose (is 'scratch'): is not a purpose; use checkpoints or datasets"),
        ({"team": "Red"}, "team (is 'Red'): must have 1 to 63 characters of a-z, 0-9 and inner -; respell it"),
        ({"namespace": "n" * 64}, "namespace (is 'nnn"),
        ({"claim": "check.points"}, "claim (is 'check.points')"),
        ({"folder": "/red"}, "folder (is '/red'): must be a path"),
        ({"folder": "red,only-dir=blue"}, "folder (is 'red,only-dir=blue')"),
        ({"run_as_user": 0}, "run_as_user (is 0): must be at least 1, because restricted Pod Security rejects root; give the id"),
        ({"run_as_group": -1}, "run_as_group (is -1)"),
        ({"file_cache_gib": -1}, "file_cache_gib (is -1): must be 0 or more; give 0 for no cache, or a size in GiB"),
    ],
)
def test_volumes_that_could_not_be_mounted_are_refused_before_anything_is_registered(
    change: dict[str, Any], problem: str, refusal: Refusal
) -> None:
    assert problem in refusal(GcsFuseVolume, "red", args(**change))
