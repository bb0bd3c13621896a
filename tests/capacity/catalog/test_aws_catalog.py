"""The shipped machines and prices of EKS."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import moto
import pytest

from capacity.catalog import price_book
from capacity.catalog.capacity_type import CapacityType
from capacity.catalog.machines import Cloud, Gpu, Machine, machines_of, unserved_family
from capacity.catalog.node_labels import karpenter_aws_labels
from capacity.catalog.price_book import prices_of, read_prices

MACHINES = machines_of(Cloud.AWS)
PRICES = prices_of(Cloud.AWS).prices
GPU_MACHINES = [machine for machine in MACHINES.values() if machine.gpu is not None and machine.gpu.manufacturer == "nvidia"]
NEURON_MACHINES = [machine for machine in MACHINES.values() if machine.gpu is not None and machine.gpu.manufacturer == "aws"]
CPU_MACHINES = [machine for machine in MACHINES.values() if machine.gpu is None]

NOT_IN_THE_PRICE_LIST = {"trn2"}
"""Families that are not offered in the region of the price list that was read."""

CAPACITY_BLOCKS_ONLY = {"p5e.48xlarge"}
"""Machines that AWS sells as capacity blocks and Spot; its list has no on-demand price of them."""


def gpu(name: str) -> Gpu:
    found = MACHINES[name].gpu
    assert found is not None
    return found


@pytest.mark.parametrize("name,model", [("g4dn.xlarge", "t4"), ("g5.xlarge", "a10g"), ("g5.2xlarge", "a10g"), ("g6.xlarge", "l4")])
def test_the_small_machines_of_the_course_have_one_gpu(name: str, model: str) -> None:
    assert (gpu(name).model, gpu(name).counts) == (model, (1,))


def test_gpus_that_differ_in_memory_are_different_models() -> None:
    models = {name: (gpu(name).model, gpu(name).memory_mib) for name in ("p4d.24xlarge", "p4de.24xlarge", "p5.48xlarge", "p5en.48xlarge")}

    assert models == {
        "p4d.24xlarge": ("a100-40gb", 40960),
        "p4de.24xlarge": ("a100-80gb", 81920),
        "p5.48xlarge": ("h100-80gb", 81920),
        "p5en.48xlarge": ("h200-141gb", 144384),
    }
    assert gpu("p4d.24xlarge").name == gpu("p4de.24xlarge").name == "a100"


def test_a_model_has_one_name_and_one_memory() -> None:
    described: dict[str, set[tuple[str, int]]] = {}
    for machine in GPU_MACHINES:
        described.setdefault(gpu(machine.name).model, set()).add((gpu(machine.name).name, gpu(machine.name).memory_mib))

    assert {model: len(each) for model, each in described.items()} == dict.fromkeys(described, 1)


def test_the_training_machines_bring_local_disks_and_efa() -> None:
    p5 = MACHINES["p5.48xlarge"]

    assert (p5.vcpu, p5.memory_mib, p5.local_ssd_gb, p5.efa_interfaces) == (192, 2097152, 30400, 32)
    assert MACHINES["p4d.24xlarge"].efa_interfaces == 4
    assert MACHINES["g6.xlarge"].efa_interfaces == 0


@pytest.mark.parametrize("machine", GPU_MACHINES, ids=lambda machine: machine.name)
def test_karpenter_knows_every_gpu_machine_by_its_labels(machine: Machine) -> None:
    found = {key.removeprefix("karpenter.k8s.aws/instance-"): value for key, value in karpenter_aws_labels(machine).items()}

    expected = {"gpu-name": gpu(machine.name).name, "gpu-manufacturer": "nvidia", "gpu-memory": str(gpu(machine.name).memory_mib)}
    assert expected.items() <= found.items()
    assert f"{found['family']}.{found['size']}" == machine.name
    assert found["category"] in {"g", "gr", "p"}
    assert int(found["gpu-count"]) in {1, 2, 4, 8}
    assert int(found["local-nvme"]) > 0


@pytest.mark.parametrize("machine", NEURON_MACHINES, ids=lambda machine: machine.name)
def test_karpenter_knows_every_neuron_machine_by_labels_of_their_own(machine: Machine) -> None:
    # pkg/providers/instancetype/types.go of Karpenter's AWS provider v1.14.1: name, manufacturer and count, and no memory; none of GPUs.
    found = {key.removeprefix("karpenter.k8s.aws/instance-"): value for key, value in karpenter_aws_labels(machine).items()}

    of_devices = {key: value for key, value in found.items() if key.startswith(("accelerator", "gpu"))}
    counted = {
        "accelerator-name": gpu(machine.name).name,
        "accelerator-manufacturer": "aws",
        "accelerator-count": str(gpu(machine.name).count),
    }
    assert of_devices == counted
    assert found["category"] in {"trn", "inf"}


def test_the_neuron_machines_that_aws_sells_are_there() -> None:
    known = {name for name, ec2 in recorded().items() if ec2.get("NeuronInfo") and not name.startswith("inf1.")}

    assert {machine.name for machine in NEURON_MACHINES} == known


@pytest.mark.parametrize("machine", [*GPU_MACHINES, *NEURON_MACHINES], ids=lambda machine: machine.name)
def test_machine_and_gpus_are_a_fixed_pair_of_whole_gpus(machine: Machine) -> None:
    assert len(gpu(machine.name).counts) == 1


def recorded() -> dict[str, Any]:
    """EC2's own answer to DescribeInstanceTypes, as moto has recorded it."""
    return json.loads(gzip.decompress((Path(moto.__file__).parent / "ec2/resources/instance_types.json.gz").read_bytes()))


def test_every_machine_is_as_ec2_describes_it() -> None:
    described = recorded()

    for name, machine in MACHINES.items():
        ec2 = described[name]
        cards = [each["NetworkCardIndex"] for each in ec2["NetworkInfo"]["NetworkCards"] if "efa-only" in each.get("InterfaceTypes", ())]
        first = machine.efa_first_card
        assert (machine.vcpu, machine.memory_mib) == (ec2["VCpuInfo"]["DefaultVCpus"], ec2["MemoryInfo"]["SizeInMiB"]), name
        assert machine.local_ssd_gb == ec2.get("InstanceStorageInfo", {}).get("TotalSizeInGB", 0), name
        assert machine.efa_interfaces == ec2["NetworkInfo"].get("EfaInfo", {}).get("MaximumEfaInterfaces", 0), name
        assert cards == list(range(first, first + machine.efa_interfaces)), name
        assert ec2["ProcessorInfo"]["SupportedArchitectures"] == ["x86_64"], name
        if machine.gpu is None:
            assert not {"GpuInfo", "NeuronInfo"} & ec2.keys(), name
        elif machine in NEURON_MACHINES:
            [device] = ec2["NeuronInfo"]["NeuronDevices"]
            assert (machine.gpu.name, machine.gpu.counts) == (device["Name"].lower(), (device["Count"],)), name
            assert machine.gpu.memory_mib == device["MemoryInfo"]["SizeInMiB"], name
        else:
            [found] = ec2["GpuInfo"]["Gpus"]
            words = [found[each].lower().replace(" ", "-") for each in ("Name", "Manufacturer")]
            assert [machine.gpu.name, machine.gpu.manufacturer] == words, name
            assert (machine.gpu.counts, machine.gpu.memory_mib) == ((found["Count"],), found["MemoryInfo"]["SizeInMiB"]), name


def test_a_family_with_accelerators_that_nothing_counts_is_told_apart() -> None:
    others = set[str]()
    for name, ec2 in recorded().items():
        gpus = ec2.get("GpuInfo", {}).get("Gpus", [])
        other = any(each["Manufacturer"] != "NVIDIA" or each["Count"] < 1 for each in gpus)
        neuron = ec2.get("NeuronInfo") and name not in MACHINES
        if other or neuron or (ec2.get("InferenceAcceleratorInfo") and not ec2.get("NeuronInfo")):
            others.add(name)

    assert {"g6f.large", "gr6f.4xlarge", "inf1.xlarge"} < others
    assert unserved_family(Cloud.AWS, "trn2u.48xlarge") is not None, "the record tells of no devices"
    assert [name for name in sorted(others) if unserved_family(Cloud.AWS, name) is None] == []
    assert unserved_family(Cloud.AWS, "g4ad.xlarge") is not None, "AMD's, which the record lacks"
    assert [name for name in MACHINES if unserved_family(Cloud.AWS, name)] == []


def test_system_pools_have_machines_without_gpus_and_no_arm() -> None:
    assert {machine.name.partition(".")[0] for machine in CPU_MACHINES} == {"m6i", "m7i", "c7i"}
    assert not [name for name in MACHINES if name.startswith(("g5g.", "m6g.", "m7g."))]


@pytest.mark.parametrize("machine", MACHINES.values(), ids=lambda machine: machine.name)
def test_zones_are_zones_of_their_region(machine: Machine) -> None:
    for region, zones in machine.zones.items():
        assert zones, region
        assert list(zones) == sorted(set(zones))
        assert all(zone[:-1] == region and zone[-1].isalpha() for zone in zones)


@pytest.mark.parametrize("machine", MACHINES.values(), ids=lambda machine: machine.name)
def test_every_machine_has_an_on_demand_price_where_it_is_offered(machine: Machine) -> None:
    priced = {region for name, region, capacity_type in PRICES if (name, capacity_type) == (machine.name, "on-demand")}

    if machine.name in CAPACITY_BLOCKS_ONLY or machine.name.partition(".")[0] in NOT_IN_THE_PRICE_LIST:
        assert not priced
    else:
        assert "us-east-1" in priced <= machine.zones.keys()


def test_spot_is_cheaper_than_on_demand_where_both_are_known() -> None:
    both = [
        (price, PRICES[name, region, CapacityType.ON_DEMAND])
        for (name, region, capacity_type), price in PRICES.items()
        if capacity_type is CapacityType.SPOT and (name, region, CapacityType.ON_DEMAND) in PRICES
    ]

    assert both
    assert [spot for spot, on_demand in both if not Decimal(0) < spot.usd_per_hour < on_demand.usd_per_hour] == []


def test_a_price_is_of_a_machine_in_a_region_that_offers_it() -> None:
    elsewhere = [key for key in PRICES if key[1] not in MACHINES[key[0]].zones]

    assert elsewhere == []


def test_reserved_capacity_has_no_price_of_its_own() -> None:
    assert {capacity_type for _, _, capacity_type in PRICES} == {CapacityType.ON_DEMAND, CapacityType.SPOT}


def test_where_the_courses_disagree_with_the_list_the_list_wins() -> None:
    listed = {name: PRICES[name, "us-east-1", CapacityType.ON_DEMAND] for name in ("p4d.24xlarge", "p5.48xlarge")}

    assert {name: price.usd_per_hour for name, price in listed.items()} == {
        "p4d.24xlarge": Decimal("21.957642"),
        "p5.48xlarge": Decimal("55.04"),
    }


@pytest.mark.parametrize("cloud", Cloud)
def test_the_figures_of_the_course_are_kept_apart_and_not_called_verified(cloud: Cloud) -> None:
    book = read_prices(Path(price_book.__file__).parent / "prices" / f"documents-{cloud}.yaml")

    assert {name for name, _, _ in book.prices} <= set(machines_of(cloud))
    assert {source.verified for source in book.sources.values()} == {False}
    assert "gpu-course" not in {price.source for price in prices_of(cloud).prices.values()}


def test_the_courses_spot_prices_are_as_it_has_them() -> None:
    book = read_prices(Path(price_book.__file__).parent / "prices" / "documents-aws.yaml")

    p4d = book.find("p4d.24xlarge", "us-east-1", CapacityType.SPOT)
    assert p4d is not None
    assert p4d.usd_per_hour == Decimal("12.50")
