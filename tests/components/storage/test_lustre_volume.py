"""LustreVolume: a volume over a file system of Lustre and the claim that is bound to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pulumi
import pytest
from storage_parentage import parentage

from components.storage.lustre_volume import LustreVolume, LustreVolumeArgs

VOLUME = "kubernetes:core/v1:PersistentVolume"
CLAIM = "kubernetes:core/v1:PersistentVolumeClaim"

Register = Callable[[Callable[[], object]], Any]


def args(**changes: Any) -> LustreVolumeArgs:
    arguments: LustreVolumeArgs = {
        "team": "red",
        "namespace": "team-red",
        "file_system_id": pulumi.Output.from_input("fs-1"),
        "dns_name": pulumi.Output.from_input("fs-1.fsx.us-east-1.amazonaws.com"),
        "mount_name": pulumi.Output.from_input("abcdefgh"),
        "labels": {"flexspot.dev/owner": "ann"},
    }
    arguments.update(changes)  # pyrefly: ignore[no-matching-overload] -- what is wrong on purpose, too
    return arguments


def test_datasets_are_mounted_read_only_by_an_option_in_the_one_mode_that_the_driver_takes(register: Register) -> None:
    registered = register(lambda: LustreVolume("red", args()))

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


def test_a_claim_has_another_name_where_one_is_given(register: Register) -> None:
    registered = register(lambda: LustreVolume("red", args(claim="images")))

    assert [each["metadata"]["name"] for each in registered.of(CLAIM)] == ["images"]


def test_both_objects_are_the_components_own(register: Register) -> None:
    everything, own = parentage(register, lambda: LustreVolume("red", args()))

    assert everything == own
    assert len(own) == 2


@pytest.mark.parametrize("changes,told", [({"namespace": "Team"}, "namespace"), ({"claim": "My_data"}, "claim")])
def test_what_kubernetes_would_refuse_is_refused_before(changes: dict[str, Any], told: str, register: Register) -> None:
    with pytest.raises(ValueError, match=told):
        register(lambda: LustreVolume("red", args(**changes)))
