"""The shipped machines and prices of GKE, compared with other sources; MIG partitions and slices of TPUs."""

from __future__ import annotations

import re

import pytest

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.gke_accelerators import hosts_of, is_slice_of, partitions_of
from flexspot.capacity.catalog.machines import Gpu, Vendor, machines_of, unserved_families
from flexspot.capacity.catalog.price_book import prices_of
from flexspot.capacity.plan.resolve import unserved_family

MACHINES = machines_of(Vendor.GCP)
PRICES = prices_of(Vendor.GCP).prices


def test_a_machine_without_local_disks_is_the_other_one_in_all_else() -> None:
    pairs = [(machine, MACHINES[name.removesuffix("-nolssd")]) for name, machine in MACHINES.items() if name.endswith("-nolssd")]

    assert len(pairs) == 13
    for bare, whole in pairs:
        assert whole.bundled_local_ssd_disks > 0
        disks = {"name": whole.name, "local_ssd_gb": whole.local_ssd_gb, "local_ssd_disk_gb": whole.local_ssd_disk_gb}
        assert bare.model_copy(update={**disks, "zones": whole.zones, "source": whole.source}) == whole


@pytest.mark.parametrize("name,word", [("g4-standard-12", "part of a GPU"), ("ct4p-hightpu-4t", "TPUs"), ("tpu7x-standard-4t", "TPUs")])
def test_parts_of_gpus_and_tpus_of_other_generations_are_refused_with_the_reason(name: str, word: str) -> None:
    unserved = unserved_family(unserved_families(Vendor.GCP), name)

    assert unserved is not None
    assert word in unserved.problem
    assert unserved_family(unserved_families(Vendor.GCP), "g4-standard-96") is None


def test_a_machine_that_is_not_sold_on_demand_has_no_such_price() -> None:
    unsold = {name for name, each in machines_of(Vendor.GCP).items() if not each.on_demand}

    assert unsold == {f"a3-highgpu-{gpus}g{disks}" for gpus in (1, 2, 4) for disks in ("", "-nolssd")}
    assert not [key for key in PRICES if key[0] in unsold and key[2] is CapacityType.ON_DEMAND]


GPUS: dict[str, Gpu] = {each.gpu.name: each.gpu for each in machines_of(Vendor.GCP).values() if each.gpu and not each.tpu_topology}
SLICES = 7
"""Compute slices of a GPU that can be partitioned."""


@pytest.mark.parametrize("name", sorted(GPUS))
def test_the_partitions_of_a_gpu_fit_into_it(name: str) -> None:
    gigabytes = GPUS[name].memory_mib / 1024

    for size, count in partitions_of(name).items():
        compute, memory = map(int, re.findall(r"\d+", size))
        assert count * compute <= SLICES, size
        # Names round a part of the memory up.
        assert count * (memory - 1) <= gigabytes, size


# "TPU types" of github.com/GoogleCloudPlatform/applied-ai-engineering-samples, ai-infrastructure/saxml-on-gke/README.md (read 2026-11-26):
# type, topology, machine, machines in a slice, chips of a machine.
_OF_GOOGLE = [
    ("v5litepod-1", "1x1", "ct5lp-hightpu-1t", 1, 1),
    ("v5litepod-4", "2x2", "ct5lp-hightpu-4t", 1, 4),
    ("v5litepod-8", "2x4", "ct5lp-hightpu-8t", 1, 8),
    ("v5litepod-16", "4x4", "ct5lp-hightpu-4t", 4, 4),
    ("v5litepod-32", "4x8", "ct5lp-hightpu-4t", 8, 4),
    ("v5litepod-64", "8x8", "ct5lp-hightpu-4t", 16, 4),
    ("v5litepod-128", "8x16", "ct5lp-hightpu-4t", 32, 4),
    ("v5litepod-256", "16x16", "ct5lp-hightpu-4t", 64, 4),
]
# GoogleCloudPlatform/cluster-autoscaler, deprecated_tpu_config.go at b37dc8a6: singleHostTopologyMap and fixedTpuCount.
_SINGLE_HOSTS = {
    "ct5lp-hightpu-1t": ("1x1", 1),
    "ct5lp-hightpu-4t": ("2x2", 4),
    "ct5lp-hightpu-8t": ("2x4", 8),
    "ct5p-hightpu-4t": ("2x2x1", 4),
    "ct6e-standard-1t": ("1x1", 1),
    "ct6e-standard-4t": ("2x2", 4),
    "ct6e-standard-8t": ("2x4", 8),
}
# AI-Hypercomputer/xpk, system_characteristics.py at 02b0c092: topologies of v5p, some of a long list.
_OF_XPK = ["4x4x124", "8x16x16", "4x12x44", "12x12x16", "8x12x28", "16x16x24", "12x24x24", "16x20x28"]


@pytest.mark.parametrize("type_name,topology,machine,hosts,chips", _OF_GOOGLE)
def test_a_slice_has_as_many_machines_and_chips_as_google_says(type_name: str, topology: str, machine: str, hosts: int, chips: int) -> None:
    found = machines_of(Vendor.GCP)[machine]

    assert found.gpu is not None, type_name
    assert (hosts_of(found, topology), found.gpu.count) == (hosts, chips)
    assert is_slice_of(found, topology) is (hosts > 1)


def test_single_hosts_have_the_chips_and_topologies_of_gkes_own_autoscaler() -> None:
    machines = machines_of(Vendor.GCP).values()

    found = {each.name: (each.tpu_topology, each.gpu.count) for each in machines if each.tpu_topology and each.gpu}
    assert found == _SINGLE_HOSTS


@pytest.mark.parametrize("topology", _OF_XPK)
def test_the_long_slices_of_v5p_are_known_by_their_rule(topology: str) -> None:
    assert is_slice_of(machines_of(Vendor.GCP)["ct5p-hightpu-4t"], topology)
    assert not is_slice_of(machines_of(Vendor.GCP)["ct6e-standard-4t"], topology)


@pytest.mark.parametrize("topology", ["16x20x32", "4x4x6", "8x4x8", "2x2x1", "4x4", "2x4x8"])
def test_other_topologies_are_rejected(topology: str) -> None:
    assert not is_slice_of(machines_of(Vendor.GCP)["ct5p-hightpu-4t"], topology)
