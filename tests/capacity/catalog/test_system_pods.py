"""Room on nodes for controllers, compared with real nodes, and the data that it is derived from."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import moto
import pytest

from flexspot.capacity.catalog.machines import Machine, Vendor, machines_of
from flexspot.capacity.catalog.system_pods import node_room

MIB = 1024

T3_LARGE = Machine(name="t3.large", vcpu=2, memory_mib=8192, max_pods=35, source="EKS 1.34")
G6_XLARGE = Machine(name="g6.xlarge", vcpu=4, memory_mib=16384, max_pods=58, source="EKS 1.36")


@pytest.mark.parametrize(
    "cloud,machine,cpu_milli,memory_kib",
    [
        (Vendor.AWS, machines_of(Vendor.AWS)["m6i.large"], 1930, 7_291_828),
        (Vendor.AWS, T3_LARGE, 1930, 7_248_300),
        (Vendor.AWS, G6_XLARGE, 3920, 14_719_096),
        (Vendor.GCP, machines_of(Vendor.GCP)["n2-standard-4"], 3920, 13_591_652),
    ],
)
def test_a_nodes_room_is_what_real_nodes_said_or_a_little_less(cloud: Vendor, machine: Machine, cpu_milli: int, memory_kib: int) -> None:
    room = node_room(cloud, machine, 58)

    assert room.cpu_milli == cpu_milli
    assert 0.95 * memory_kib / MIB < room.memory_mib <= memory_kib / MIB


def test_the_addresses_of_machines_for_controllers_are_those_of_ec2() -> None:
    recorded = json.loads(gzip.decompress((Path(moto.__file__).parent / "ec2/resources/instance_types.json.gz").read_bytes()))
    plain = [each for each in machines_of(Vendor.AWS).values() if each.gpu is None]

    def addresses(machine: Machine) -> int:
        network = recorded[machine.name]["NetworkInfo"]
        interfaces = network["NetworkCards"][network["DefaultNetworkCardIndex"]]["MaximumNetworkInterfaces"]
        return interfaces * (network["Ipv4AddressesPerInterface"] - 1) + 2

    assert {each.name: each.max_pods for each in plain} == {each.name: addresses(each) for each in plain}
