"""The shipped machine catalog and price book of GKE: what its figures must agree with."""

from __future__ import annotations

import re

import pytest

from capacity.catalog.capacity_type import CapacityType
from capacity.catalog.machines import Architecture, BootDisk, Cloud, Confidential, Gpu, Machine, machines_of, unserved_family
from capacity.catalog.price_book import prices_of

MODELS = {
    "nvidia-tesla-t4": "t4",
    "nvidia-l4": "l4",
    "nvidia-tesla-a100": "a100-40gb",
    "nvidia-a100-80gb": "a100-80gb",
    "nvidia-h100-80gb": "h100-80gb",
    "nvidia-h100-mega-80gb": "h100-80gb",
    "nvidia-h200-141gb": "h200-141gb",
    "nvidia-b200": "b200",
    "nvidia-gb200": "gb200",
    "nvidia-rtx-pro-6000": "rtx-pro-6000",
    "tpu-v5-lite-podslice": "tpu-v5e",
    "tpu-v5p-slice": "tpu-v5p",
    "tpu-v6e-slice": "tpu-v6e",
}
"""GKE's accelerator names, and the GPU model of each."""

T4_MAX_VCPU = {1: 48, 2: 48, 4: 96}
"""How many vCPUs an N1 machine may have, for each number of T4s that Google attaches."""

MACHINES = machines_of(Cloud.GCP)
PRICES = prices_of(Cloud.GCP).prices


def gpu_of(name: str) -> Gpu:
    gpu = MACHINES[name].gpu
    assert gpu is not None
    return gpu


@pytest.mark.parametrize("vcpu,count", [(4, 1), (8, 1), (12, 1), (16, 1), (24, 2), (32, 1), (48, 4), (96, 8)])
def test_a_g2_machine_has_the_l4s_that_belong_to_its_size_and_no_choice(vcpu: int, count: int) -> None:
    machine = MACHINES[f"g2-standard-{vcpu}"]

    assert machine.vcpu == vcpu
    assert gpu_of(machine.name).name == "nvidia-l4"
    assert gpu_of(machine.name).counts == (count,)


@pytest.mark.parametrize("vcpu,count", [(48, 1), (96, 2), (192, 4), (384, 8)])
def test_a_g4_machine_has_one_rtx_pro_6000_for_48_vcpus(vcpu: int, count: int) -> None:
    assert MACHINES[f"g4-standard-{vcpu}"].vcpu == vcpu
    assert gpu_of(f"g4-standard-{vcpu}").counts == (count,)


@pytest.mark.parametrize("machine", [each for each in MACHINES.values() if each.name.startswith("a")], ids=lambda machine: machine.name)
def test_the_name_of_an_a_machine_says_how_many_gpus_it_has(machine: Machine) -> None:
    in_name = re.fullmatch(r"a(?:[234]|4x)-[a-z]+-(\d+)g(?:-nolssd)?", machine.name)

    assert in_name
    assert gpu_of(machine.name).counts == (int(in_name[1]),)


@pytest.mark.parametrize(
    "family,accelerator",
    [
        ("a2-highgpu-", "nvidia-tesla-a100"),
        ("a2-megagpu-", "nvidia-tesla-a100"),
        ("a2-ultragpu-", "nvidia-a100-80gb"),
        ("a3-highgpu-", "nvidia-h100-80gb"),
        ("a3-edgegpu-", "nvidia-h100-80gb"),
        ("a3-megagpu-", "nvidia-h100-mega-80gb"),
        ("a3-ultragpu-", "nvidia-h200-141gb"),
        ("a4-highgpu-", "nvidia-b200"),
        ("a4x-highgpu-", "nvidia-gb200"),
        ("g2-standard-", "nvidia-l4"),
        ("g4-standard-", "nvidia-rtx-pro-6000"),
        ("n1-standard-", "nvidia-tesla-t4"),
    ],
)
def test_every_machine_of_a_family_has_the_familys_accelerator(family: str, accelerator: str) -> None:
    assert {gpu_of(name).name for name in MACHINES if name.startswith(family)} == {accelerator}


def test_accelerators_have_the_names_of_gke_and_the_models_of_every_cloud() -> None:
    gpus = [machine.gpu for machine in MACHINES.values() if machine.gpu]

    assert {gpu.name: gpu.model for gpu in gpus} == MODELS
    assert {gpu.manufacturer: gpu.name.partition("-")[0] for gpu in gpus} == {"nvidia": "nvidia", "google": "tpu"}


def test_the_same_accelerator_has_the_same_memory_on_every_machine() -> None:
    memory = {(machine.gpu.name, machine.gpu.memory_mib) for machine in MACHINES.values() if machine.gpu}

    assert len(memory) == len(MODELS)


@pytest.mark.parametrize("vcpu,counts", [(4, (1, 2, 4)), (8, (1, 2, 4)), (16, (1, 2, 4)), (32, (1, 2, 4)), (64, (4,))])
def test_an_n1_machine_takes_the_t4s_that_google_allows_for_its_vcpus(vcpu: int, counts: tuple[int, ...]) -> None:
    assert gpu_of(f"n1-standard-{vcpu}").counts == counts
    assert counts == tuple(count for count, most in T4_MAX_VCPU.items() if vcpu <= most)


def test_dws_provisions_every_gpu_machine_but_a3_edge_and_no_cpu_machine() -> None:
    with_gpu = {name for name, machine in MACHINES.items() if machine.gpu}

    assert {name for name, machine in MACHINES.items() if machine.flex_start} == with_gpu - {"a3-edgegpu-8g", "a3-edgegpu-8g-nolssd"}


def test_machines_with_a_gpu_network_need_the_virtual_nic_and_can_be_placed_compactly() -> None:
    networked = {name for name in MACHINES if name.startswith(("a3-", "a4-", "a4x-"))}

    assert {name for name, machine in MACHINES.items() if machine.gvnic} == networked
    # The NVLink domain of an A4X takes a placement policy of another kind, which the platform does not make.
    assert {name for name in networked if not MACHINES[name].compact_placement} == {"a4x-highgpu-4g", "a4x-highgpu-4g-nolssd"}


def test_a_machine_without_local_disks_is_the_other_one_in_all_else() -> None:
    pairs = [(machine, MACHINES[name.removesuffix("-nolssd")]) for name, machine in MACHINES.items() if name.endswith("-nolssd")]

    assert len(pairs) == 13
    for bare, whole in pairs:
        assert whole.bundled_local_ssd_disks > 0
        told = {"name": whole.name, "local_ssd_gb": whole.local_ssd_gb, "local_ssd_disk_gb": whole.local_ssd_disk_gb}
        assert bare.model_copy(update={**told, "zones": whole.zones, "source": whole.source}) == whole


def test_what_boots_from_hyperdisk_alone_and_what_can_be_confidential() -> None:
    hyperdisk = {name.rsplit("-", 1)[0] for name, machine in MACHINES.items() if machine.boot_disk is BootDisk.HYPERDISK_BALANCED}
    families = {"a3-ultragpu", "a4-highgpu", "a4x-highgpu", "g4-standard", "h4d-standard", "h4d-highmem", "ct6e-standard"}

    assert {name.removesuffix("-8g").removesuffix("-4g").removesuffix("-192") for name in hyperdisk} == families
    with_gpu = {name: machine.confidential for name, machine in MACHINES.items() if machine.gpu and machine.confidential}
    tdx = (Confidential.TDX,)
    assert with_gpu == {"a3-highgpu-1g": tdx, "a3-highgpu-1g-nolssd": tdx, "g4-standard-48": (Confidential.SEV,)}


def test_an_a4x_is_of_arm_processors_and_has_four_large_disks() -> None:
    machine = MACHINES["a4x-highgpu-4g"]

    assert (machine.architecture, machine.bundled_local_ssd_disks) == (Architecture.ARM64, 4)
    assert {name for name, each in MACHINES.items() if each.architecture is Architecture.ARM64} == {machine.name, f"{machine.name}-nolssd"}


@pytest.mark.parametrize("name,word", [("g4-standard-12", "part of a GPU"), ("ct4p-hightpu-4t", "TPUs"), ("tpu7x-standard-4t", "TPUs")])
def test_parts_of_gpus_and_tpus_of_other_generations_are_refused_with_the_reason(name: str, word: str) -> None:
    unserved = unserved_family(Cloud.GCP, name)

    assert unserved is not None
    assert word in unserved.problem
    assert unserved_family(Cloud.GCP, "g4-standard-96") is None


@pytest.mark.parametrize("machine", MACHINES.values(), ids=lambda machine: machine.name)
def test_local_ssd_comes_in_disks_of_375_gb_either_with_the_machine_or_on_top(machine: Machine) -> None:
    assert machine.local_ssd_gb % 375 == 0
    assert not (machine.local_ssd_gb and machine.max_local_ssd_disks)
    assert sorted(set(machine.local_ssd_disks)) == list(machine.local_ssd_disks)
    # Two sources, one for the most and one for the numbers, that agree.
    assert not machine.local_ssd_disks or machine.local_ssd_disks[-1] == machine.max_local_ssd_disks


@pytest.mark.parametrize("machine", MACHINES.values(), ids=lambda machine: machine.name)
def test_zones_are_of_their_region(machine: Machine) -> None:
    for region, zones in machine.zones.items():
        assert zones
        assert all(re.fullmatch(f"{region}-[a-z]", zone) for zone in zones)


def test_every_price_is_of_a_machine_in_the_catalog() -> None:
    assert {name for name, _, _ in PRICES} <= set(MACHINES)


def test_every_price_is_in_a_region_that_has_the_machine_where_zones_are_known() -> None:
    priced = {(name, region) for name, region, _ in PRICES}

    known = {region for machine in MACHINES.values() for region in machine.zones}
    elsewhere = {(name, region) for name, region in priced if MACHINES[name].zones and region not in MACHINES[name].zones}

    assert {(name, region) for name, region in elsewhere if region in known} == set()


def test_spot_is_cheaper_than_on_demand_where_both_are_known() -> None:
    usd = {key: price.usd_per_hour for key, price in PRICES.items()}
    both = {(name, region) for name, region, kind in usd if kind is CapacityType.SPOT} & {
        (name, region) for name, region, kind in usd if kind is CapacityType.ON_DEMAND
    }

    assert len(both) > 100
    assert {each for each in both if usd[*each, CapacityType.SPOT] >= usd[*each, CapacityType.ON_DEMAND]} == set()


def test_only_prices_of_one_machine_whatever_is_attached_are_kept() -> None:
    assert {name for name, _, _ in PRICES if name.startswith("n1-")} == set()


def test_small_a3_machines_have_no_on_demand_price_as_google_does_not_sell_them_so() -> None:
    kinds = {kind for name, _, kind in PRICES if name in {"a3-highgpu-1g", "a3-highgpu-2g", "a3-highgpu-4g"}}

    assert kinds == {CapacityType.SPOT, CapacityType.FLEX_START}


def test_a_machine_that_is_not_sold_on_demand_has_no_such_price() -> None:
    unsold = {name for name, each in machines_of(Cloud.GCP).items() if not each.on_demand}

    assert unsold == {f"a3-highgpu-{gpus}g{disks}" for gpus in (1, 2, 4) for disks in ("", "-nolssd")}
    assert not [key for key in PRICES if key[0] in unsold and key[2] is CapacityType.ON_DEMAND]
