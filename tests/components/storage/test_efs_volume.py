"""EfsVolume: a volume over an access point and the claim that is bound to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pulumi
import pytest
from storage_parentage import parentage

from components.storage.efs_volume import EfsVolume, EfsVolumeArgs

VOLUME = "kubernetes:core/v1:PersistentVolume"
CLAIM = "kubernetes:core/v1:PersistentVolumeClaim"

Register = Callable[[Callable[[], object]], Any]


def args(**changes: Any) -> EfsVolumeArgs:
    arguments: EfsVolumeArgs = {
        "team": "red",
        "namespace": "team-red",
        "purpose": "checkpoints",
        "volume_handle": pulumi.Output.from_input("fs-1::fsap-2"),
        "labels": {"flexspot.dev/owner": "ann"},
    }
    arguments.update(changes)  # pyrefly: ignore[no-matching-overload] -- what is wrong on purpose, too
    return arguments


def test_checkpoints_are_an_access_point_that_many_nodes_write_bound_to_one_claim(register: Register) -> None:
    registered = register(lambda: EfsVolume("red", args()))

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


def test_datasets_are_mounted_read_only_as_the_driver_refuses_read_only_many(register: Register) -> None:
    registered = register(lambda: EfsVolume("red", args(purpose="datasets")))

    [volume], [claim] = registered.of(VOLUME), registered.of(CLAIM)
    assert (volume["spec"]["accessModes"], claim["spec"]["accessModes"]) == (["ReadWriteMany"], ["ReadWriteMany"])
    assert volume["spec"]["mountOptions"] == ["ro"]
    assert volume["spec"]["csi"]["readOnly"] is True


def test_both_objects_are_the_components_own(register: Register) -> None:
    everything, own = parentage(register, lambda: EfsVolume("red", args()))

    assert everything == own
    assert len(own) == 2


@pytest.mark.parametrize("changes,told", [({"purpose": "models"}, "purpose"), ({"namespace": "Team"}, "namespace")])
def test_what_kubernetes_would_refuse_is_refused_before(changes: dict[str, Any], told: str, register: Register) -> None:
    with pytest.raises(ValueError, match=told):
        register(lambda: EfsVolume("red", args(**changes)))
