"""Every capacity type with every family of GPU and TPU machines of the catalog."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

import pytest
from gke_pool_args import NODE_POOL, pool_args

from flexspot.capacity.catalog.capacity_type import CapacityType, facts_of
from flexspot.capacity.catalog.machines import Machine, Vendor, machines_of
from flexspot.components.gke.gpu_node_pool import GkeGpuNodePool

if TYPE_CHECKING:
    from component_types import Register


def family(machine: Machine) -> str:
    return "-".join(machine.name.split("-")[:2])


# One machine of each family: the last by name.
FAMILIES: dict[str, Machine] = {family(each): each for each in machines_of(Vendor.GCP).values() if each.gpu}

MATRIX = [
    pytest.param(capacity_type, machine, id=f"{capacity_type}-{name}")
    for capacity_type in facts_of("gke")
    for name, machine in FAMILIES.items()
    if machine.flex_start or capacity_type not in {CapacityType.FLEX_START, CapacityType.QUEUED}
    # DWS requests do not support TPUs.
    if not machine.tpu_topology or capacity_type is not CapacityType.QUEUED
]


REQUESTED: dict[CapacityType, dict[str, Any]] = {
    CapacityType.SPOT: {"spot": True},
    CapacityType.FLEX_START: {"flex_start": True, "run": "604800s", "repair": False, "upgrade": None},
    CapacityType.QUEUED: {"flex_start": True, "queued": True, "repair": False, "upgrade": None},
    CapacityType.RESERVED: {},
    CapacityType.ON_DEMAND: {},
}


def option(inputs: dict[str, Any], path: str) -> Any:
    """Return the value of an option, named as in the SDK, in a resource's inputs, or None if it is not set."""
    found: Any = inputs
    for part in path.split("."):
        if not isinstance(found, dict):
            return None
        found = cast("dict[str, Any]", found).get(re.sub(r"_([a-z])", lambda match: match[1].upper(), part))
    return found


def pool(register: Register, capacity_type: CapacityType, machine: Machine, **changes: Any) -> dict[str, Any]:
    assert machine.gpu is not None
    arguments = pool_args(
        capacity_type=str(capacity_type),
        machine=machine.name,
        accelerator=machine.gpu.name,
        gpus_per_node=machine.gpu.count,
        taints=[{"key": machine.gpu.accelerator.resource, "value": "present", "effect": "NoSchedule"}],
        reservation={"use": "specific", "name": "block"} if capacity_type is CapacityType.RESERVED else None,
        **changes,
    )
    [made] = register(lambda: GkeGpuNodePool("gpus", arguments)).of(NODE_POOL)
    return made


def test_the_matrix_has_each_family_that_the_platform_offers() -> None:
    assert {"a2-highgpu", "a3-highgpu", "a3-ultragpu", "a4-highgpu", "g2-standard", "n1-standard", "ct6e-standard"} <= set(FAMILIES)
    assert {each.values[0] for each in MATRIX} == set(CapacityType)


@pytest.mark.parametrize("capacity_type,machine", MATRIX)
def test_a_pool_is_limited_and_tainted_and_has_its_machines_gpus_and_only_its_capacity_type(
    capacity_type: CapacityType, machine: Machine, register: Register
) -> None:
    assert machine.gpu is not None
    made = pool(register, capacity_type, machine)

    scarce = capacity_type not in {CapacityType.RESERVED, CapacityType.ON_DEMAND}
    location_policy = "ANY" if scarce else "BALANCED"
    assert made["autoscaling"] == {"totalMinNodeCount": 0, "totalMaxNodeCount": 4, "locationPolicy": location_policy}
    node = made["nodeConfig"]
    assert node["taints"] == [{"key": machine.gpu.accelerator.resource, "value": "present", "effect": "NO_SCHEDULE"}]
    # TPU chips are part of the machine.
    attached = [] if machine.tpu_topology else [(machine.gpu.name, machine.gpu.count)]
    assert [(gpu["type"], gpu["count"]) for gpu in node.get("guestAccelerators", [])] == attached
    assert node["gvnic"] == {"enabled": True}
    assert option(made, "node_config.ephemeral_storage_local_ssd_config.local_ssd_count") == (machine.local_ssd_gb // 375 or None)
    requested = {
        "spot": option(made, "node_config.spot"),
        "flex_start": option(made, "node_config.flex_start"),
        "queued": option(made, "queued_provisioning.enabled"),
        "run": option(made, "node_config.max_run_duration"),
        "upgrade": made.get("upgradeSettings"),
        "repair": option(made, "management.auto_repair"),
    }
    # A full reservation and a sold-out zone have no room for an additional node, so an old one is removed first.
    one_less = {"strategy": "SURGE", "maxSurge": 0, "maxUnavailable": 1}
    assert requested == dict.fromkeys(requested) | {"repair": True, "upgrade": one_less} | REQUESTED[capacity_type]


@pytest.mark.parametrize("capacity_type", [CapacityType.FLEX_START, CapacityType.QUEUED])
def test_a_family_that_dws_does_not_offer_is_refused(capacity_type: CapacityType, register: Register) -> None:
    def declare() -> None:
        for machine in (each for each in FAMILIES.values() if not each.flex_start):
            assert machine.gpu is not None
            arguments = pool_args(
                capacity_type=str(capacity_type), machine=machine.name, accelerator=machine.gpu.name, gpus_per_node=machine.gpu.count
            )
            with pytest.raises(ValueError, match=f"is not offered by DWS, which {capacity_type} needs"):
                GkeGpuNodePool("gpus", arguments)

    assert register(declare).resources == []


def test_two_families_are_placed_compactly_with_flex_start_and_no_other_is(register: Register) -> None:
    placed: list[str] = []
    for name, machine in FAMILIES.items():
        try:
            made = pool(register, CapacityType.FLEX_START, machine, zones=["us-central1-a"], compact_placement=True)
        except ValueError:
            continue
        assert made["placementPolicy"] == {"type": "COMPACT"}
        placed.append(name)

    assert placed == ["a3-ultragpu", "a4-highgpu"]
