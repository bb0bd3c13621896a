"""Costs of a plan in addition to its pools, for new and existing parts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from plan_settings import local, plan_of, pool, team

from flexspot.capacity.catalog.machines import Vendor, machines_of
from flexspot.capacity.catalog.price_book import ServiceItem
from flexspot.capacity.plan.build import build_plan
from flexspot.capacity.settings.pools import IMAGES_AND_SCRATCH, SYSTEM_ALONE, default_volume
from flexspot.capacity.settings.stack_file import parse_settings

if TYPE_CHECKING:
    from flexspot.capacity.plan.billed import SpendingPlan

STACKS = Path(__file__).resolve().parents[3] / "stacks"


def spending(stack: str, **changes: Any) -> SpendingPlan:
    """Return the spending of a shipped stack with changes. A change that is a mapping is merged into the settings."""
    settings = yaml.safe_load((STACKS / f"Pulumi.{stack}.yaml").read_text())["config"]["flexspot:platform"]
    for key, value in changes.items():
        settings[key] = {**settings.get(key, {}), **value} if isinstance(value, dict) else value
    return build_plan(parse_settings(settings, stack)).spending


def items(found: SpendingPlan) -> dict[str, tuple[int, int]]:
    return {each.item.value: (each.least, each.most) for each in found.services}


def charges(found: Any) -> dict[str, int]:
    return {each.item.value: each.amount for each in found.charges}


def test_the_local_platform_costs_nothing_but_has_shares() -> None:
    found = plan_of(local(pool("l4", "g6.xlarge", "spot", 4, "training"), teams=[team("red", shares={"l4": 3})])).spending

    assert (found.services, found.disks, found.system_nodes, found.other_work, found.budget_usd) == ((), (), None, None, None)
    assert [(each.team, each.pool, each.gpus) for each in found.shares] == [("red", "l4", 3)]


def test_existing_parts_are_not_billed() -> None:
    eks = spending("dev-eks", cluster={"existing": "theirs", "system_pool": {"machine": "m6i.large"}})
    gke = spending("dev-gke", cluster={"existing": "theirs"})

    assert items(eks) == items(gke) == {}
    assert (eks.system_nodes, gke.system_nodes) == (None, None)
    # On an existing cluster the stack manages Karpenter, but not node auto-provisioning.
    assert eks.other_work is not None
    assert gke.other_work is None


def test_an_existing_network_needs_no_nat() -> None:
    vpc = {"existing_vpc": "vpc-0a1b2c3d", "existing_private_subnets": ["subnet-0a1b2c3d", "subnet-0b1b2c3d"]}
    eks = spending("dev-eks", network=vpc)
    gke = spending("dev-gke", network={"existing_network": "theirs", "existing_subnetwork": "theirs-nodes"})

    assert items(eks) == {"cluster": (1, 1), "kms-key": (1, 1)}
    assert items(gke) == {"cluster": (1, 1)}


def test_gateways_in_each_zone_and_extended_support_are_billed_if_requested() -> None:
    found = items(spending("dev-eks", network={"nat": "per-zone"}, cluster={"support": "extended"}))

    assert found["nat-gateway"] == found["public-address"] == (2, 2)
    assert found["extended-support"] == (0, 1), "once standard support has ended"


def test_cloud_nat_is_billed_by_the_node_up_to_thirty_two() -> None:
    # Twelve nodes of pools, three of controllers and one for their upgrade, and as many of other work as it has vCPU.
    assert items(spending("dev-gke"))["nat-node"] == (1, 32)
    assert items(spending("prod-gke"))["nat-node"] == (3, 32)


@pytest.mark.parametrize(
    "machine,ssds,disk",
    [
        ("g2-standard-8", 0, {"pd-balanced": 200}),
        ("g2-standard-8", 1, {"pd-balanced": 200, "local-ssd": 375}),
        ("g4-standard-48", 0, {"hyperdisk-balanced": 200}),
    ],
)
def test_a_gke_node_boots_from_the_disk_of_its_machine(machine: str, ssds: int, disk: dict[str, int]) -> None:
    made = pool("made", machine, "spot", 2, "training", "interactive", local_ssd_disks=ssds)
    found = spending("dev-gke", pools=[made], teams=[team("red", shares={"made": 1})])

    assert [charges(each) for each in found.disks] == [disk]


def test_included_gp3_performance_is_not_billed_and_bottlerocket_has_a_second_volume() -> None:
    made = pool("made", "g6.xlarge", "spot", 2, "training", "interactive", boot_disk_iops=3000, boot_disk_throughput_mib=125)
    plain = spending("dev-eks", pools=[made], teams=[team("red", shares={"made": 1})])
    bottlerocket = spending("dev-eks", pools=[made], teams=[team("red", shares={"made": 1})], cluster={"ami": "bottlerocket@1.65.0"})

    assert [charges(each) for each in plain.disks] == [{"gp3-storage": 30}]
    assert [charges(each) for each in bottlerocket.disks] == [{"gp3-storage": 34}]
    assert charges(bottlerocket.system_nodes) == {"gp3-storage": 54}


def test_images_are_on_the_volume_if_a_machine_of_the_pool_has_no_nvme() -> None:
    with_nvme = machines_of(Vendor.AWS)["g6.xlarge"]
    without = with_nvme.model_copy(update={"name": "g6.plain", "local_ssd_gb": 0})

    assert default_volume([with_nvme]) == SYSTEM_ALONE
    assert default_volume([with_nvme, without]) == IMAGES_AND_SCRATCH


def test_nodes_for_other_work_have_the_requested_volume() -> None:
    changed = spending("dev-eks", cluster={"other_work": {"boot_disk_gib": 300, "boot_disk_iops": 4000}})

    assert charges(spending("dev-eks").other_work) == {"gp3-storage": 100}
    assert charges(changed.other_work) == {"gp3-storage": 300, "gp3-iops": 1000}


@pytest.mark.parametrize("environment,wanted,bought", [("dev", None, 0), ("dev", True, 16), ("prod", None, 16), ("prod", False, 0)])
def test_interface_endpoints_default_to_production_only(environment: str, wanted: object, bought: int) -> None:
    network = {"nat": "single", "interface_endpoints": wanted}
    found = spending("dev-eks", environment=environment, network=network)

    assert [each.least for each in found.services if each.item is ServiceItem.INTERFACE_ENDPOINT] == ([bought] if bought else [])


@pytest.mark.parametrize(
    "lustre,item,gib",
    [
        ({}, "lustre-125", 1200),
        ({"capacity_gib": 4800, "throughput_mbps_per_tib": 1000}, "lustre-1000", 4800),
        ({"capacity_gib": 2400, "deployment": "SCRATCH_2"}, "lustre-scratch", 2400),
    ],
)
def test_a_lustre_file_system_is_billed_by_size_and_throughput(lustre: dict[str, Any], item: str, gib: int) -> None:
    found = items(spending("dev-eks", storage={"datasets": "lustre", "lustre": lustre}))

    assert {key: amount for key, amount in found.items() if key.startswith("lustre")} == {item: (gib, gib)}
    assert not [key for key in items(spending("dev-eks")) if key.startswith("lustre")]


def test_provisioned_throughput_is_billed_only_for_efs_file_systems() -> None:
    storage = {"checkpoints": "efs", "datasets": "lustre", "efs": {"provisioned_mibps": 64}}

    assert items(spending("dev-eks", storage=storage))["efs-mibps"] == (64, 64)
