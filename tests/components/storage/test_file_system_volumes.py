"""EfsVolume and LustreVolume: a volume over an access point or a file system, and the claim that is bound to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pulumi
import pytest

from flexspot.components.storage.efs import EfsVolume, EfsVolumeArgs
from flexspot.components.storage.lustre import LustreVolume, LustreVolumeArgs

if TYPE_CHECKING:
    from component_types import Refusal, Register

VOLUME = "kubernetes:core/v1:PersistentVolume"
CLAIM = "kubernetes:core/v1:PersistentVolumeClaim"


def efs_args(**changes: Any) -> EfsVolumeArgs:
    # pyrefly: ignore[bad-return] -- some arguments are invalid on purpose
    return {
        "team": "red",
        "namespace": "team-red",
        "purpose": "checkpoints",
        "volume_handle": pulumi.Output.from_input("fs-1::fsap-2"),
        "labels": {"flexspot.dev/owner": "ann"},
    } | changes


def test_checkpoints_are_an_access_point_that_many_nodes_write_bound_to_one_claim(register: Register) -> None:
    registered = register(lambda: EfsVolume("red", efs_args()))

    [volume], [claim] = registered.of(VOLUME), registered.of(CLAIM)
    assert volume["metadata"] == {"name": "team-red.checkpoints.efs", "labels": {"flexspot.dev/owner": "ann"}}
    assert volume["spec"] == {
        "accessModes": ["ReadWriteMany"],
        "capacity": {"storage": "1Gi"},
        "claimRef": {"namespace": "team-red", "name": "checkpoints"},
        "persistentVolumeReclaimPolicy": "Retain",
        "csi": {"driver": "efs.csi.aws.com", "volumeHandle": "fs-1::fsap-2"},
    }
    assert claim["metadata"] == {"name": "checkpoints", "namespace": "team-red", "labels": {"flexspot.dev/owner": "ann"}}
    assert claim["spec"]["volumeName"] == "team-red.checkpoints.efs"


def test_datasets_are_mounted_read_only_because_the_driver_rejects_read_only_many(register: Register) -> None:
    registered = register(lambda: EfsVolume("red", efs_args(purpose="datasets")))

    [volume], [claim] = registered.of(VOLUME), registered.of(CLAIM)
    assert (volume["spec"]["accessModes"], claim["spec"]["accessModes"]) == (["ReadWriteMany"], ["ReadWriteMany"])
    assert volume["spec"]["mountOptions"] == ["ro"]
    assert volume["spec"]["csi"]["readOnly"] is True


def lustre_args(**changes: Any) -> LustreVolumeArgs:
    # pyrefly: ignore[bad-return] -- some arguments are invalid on purpose
    return {
        "team": "red",
        "namespace": "team-red",
        "file_system_id": pulumi.Output.from_input("fs-1"),
        "dns_name": pulumi.Output.from_input("fs-1.fsx.us-east-1.amazonaws.com"),
        "mount_name": pulumi.Output.from_input("abcdefgh"),
        "labels": {"flexspot.dev/owner": "ann"},
    } | changes


def test_datasets_are_mounted_read_only_by_an_option_in_the_only_mode_that_the_driver_accepts(register: Register) -> None:
    registered = register(lambda: LustreVolume("red", lustre_args()))

    [volume], [claim] = registered.of(VOLUME), registered.of(CLAIM)
    assert volume["metadata"] == {"name": "team-red.datasets.lustre", "labels": {"flexspot.dev/owner": "ann"}}
    assert volume["spec"] == {
        "accessModes": ["ReadWriteMany"],
        "capacity": {"storage": "1Gi"},
        "claimRef": {"namespace": "team-red", "name": "datasets"},
        "persistentVolumeReclaimPolicy": "Retain",
        "mountOptions": ["ro", "flock"],
        "csi": {
            "driver": "fsx.csi.aws.com",
            "volumeHandle": "fs-1::team-red",
            "volumeAttributes": {"dnsname": "fs-1.fsx.us-east-1.amazonaws.com", "mountname": "abcdefgh"},
        },
    }
    assert claim["metadata"] == {"name": "datasets", "namespace": "team-red", "labels": {"flexspot.dev/owner": "ann"}}
    assert (claim["spec"]["volumeName"], claim["spec"]["accessModes"]) == ("team-red.datasets.lustre", ["ReadWriteMany"])


def test_a_claims_name_can_be_set(register: Register) -> None:
    registered = register(lambda: LustreVolume("red", lustre_args(claim="images")))

    assert [each["metadata"]["name"] for each in registered.of(CLAIM)] == ["images"]


@pytest.mark.parametrize(
    "component,args,changes,problem",
    [
        (EfsVolume, efs_args, {"purpose": "models"}, "purpose (is 'models')"),
        (EfsVolume, efs_args, {"namespace": "Team"}, "namespace (is 'Team')"),
        (LustreVolume, lustre_args, {"namespace": "Team"}, "namespace (is 'Team')"),
        (LustreVolume, lustre_args, {"claim": "My_data"}, "claim (is 'My_data')"),
    ],
)
def test_arguments_that_kubernetes_would_reject_are_refused_before_anything_is_registered(
    component: Any, args: Any, changes: dict[str, str], problem: str, refusal: Refusal
) -> None:
    assert problem in refusal(component, "red", args(**changes))
