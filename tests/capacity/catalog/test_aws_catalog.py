"""The shipped machines and zones of EKS, compared with EC2's answers as recorded by moto."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import moto
import pytest
from moto.ec2.models.instance_types import INSTANCE_TYPES

from flexspot.capacity.catalog.machines import Gpu, Machine, Vendor, is_zone_id, machines_of, unserved_families, zone_id_prefix
from flexspot.capacity.catalog.node_labels import karpenter_aws_labels
from flexspot.capacity.catalog.price_book import vcpu_of
from flexspot.capacity.plan.resolve import unserved_family

MACHINES = machines_of(Vendor.AWS)
NEURON_MACHINES = [machine for machine in MACHINES.values() if machine.gpu is not None and machine.gpu.manufacturer == "aws"]


def gpu(name: str) -> Gpu:
    found = MACHINES[name].gpu
    assert found is not None
    return found


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


def recorded() -> dict[str, Any]:
    """Return EC2's own answer to DescribeInstanceTypes, as recorded by moto."""
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


def test_a_family_with_accelerators_that_is_not_counted_is_distinguished() -> None:
    others = set[str]()
    for name, ec2 in recorded().items():
        gpus = ec2.get("GpuInfo", {}).get("Gpus", [])
        other = any(each["Manufacturer"] != "NVIDIA" or each["Count"] < 1 for each in gpus)
        neuron = ec2.get("NeuronInfo") and name not in MACHINES
        if other or neuron or (ec2.get("InferenceAcceleratorInfo") and not ec2.get("NeuronInfo")):
            others.add(name)

    assert {"g6f.large", "gr6f.4xlarge", "inf1.xlarge"} < others
    assert unserved_family(unserved_families(Vendor.AWS), "trn2u.48xlarge") is not None, "the record has no devices"
    assert [name for name in sorted(others) if unserved_family(unserved_families(Vendor.AWS), name) is None] == []
    assert unserved_family(unserved_families(Vendor.AWS), "g4ad.xlarge") is not None, "AMD's, which the record lacks"
    assert [name for name in MACHINES if unserved_family(unserved_families(Vendor.AWS), name)] == []


OFFERINGS = Path(moto.__file__).parent / "ec2/resources/instance_type_offerings/availability-zone-id"
REGIONS = sorted({region for machine in MACHINES.values() for region in machine.zones})


@pytest.mark.parametrize("region", REGIONS)
def test_the_zones_of_each_machine_by_id_are_those_that_ec2_offers_it_in(region: str) -> None:
    recorded = json.loads(gzip.decompress((OFFERINGS / f"{region}.json.gz").read_bytes()))
    offered: dict[str, set[str]] = {}
    for each in recorded:
        offered.setdefault(each["InstanceType"], set()).add(each["Location"])

    known = {name: set(machine.zone_ids[region]) for name, machine in MACHINES.items() if region in machine.zones}

    assert known == {name: {zone for zone in offered[name] if is_zone_id(zone)} for name in known}


@pytest.mark.parametrize("file", sorted(OFFERINGS.iterdir()), ids=lambda file: file.name.partition(".")[0])
def test_the_ids_of_every_regions_zones_begin_as_its_name_says(file: Path) -> None:
    region = file.name.partition(".")[0]
    zones = {each["Location"] for each in json.loads(gzip.decompress(file.read_bytes()))}

    # A Local Zone's id names its city: use1-bos1-az1.
    assert {zone for zone in zones if is_zone_id(zone)} == {zone for zone in zones if zone.startswith(zone_id_prefix(region))} != set()


def test_the_rule_by_size_agrees_with_ec2() -> None:
    recorded = {name: each["VCpuInfo"]["DefaultVCpus"] for name, each in INSTANCE_TYPES.items()}
    said = {name: vcpu for name in recorded if (vcpu := vcpu_of(Vendor.AWS, name)) is not None}

    assert len(said) > 500
    assert {name: (vcpu, recorded[name]) for name, vcpu in said.items() if vcpu != recorded[name]} == {}
