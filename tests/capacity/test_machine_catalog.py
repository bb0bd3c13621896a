"""The shipped machine catalog and price book, and what is refused in such files."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from capacity.capacity_type import CapacityType
from capacity.machines import Cloud, Machine, machines_of, read_machines
from capacity.node_labels import karpenter_aws_labels
from capacity.price_book import prices_of, read_prices
from capacity.records import DataFileError

if TYPE_CHECKING:
    from pathlib import Path

MACHINES = """
cloud: aws
as_of: 2026-11-21
source: somewhere on the internet
machines:
  - {name: g6.xlarge, vcpu: 4, memory_mib: 16384, zones: {us-east-1: [us-east-1a]}}
"""

PRICES = """
cloud: aws
sources:
  list: {citation: the vendor's price list, as_of: 2026-11-21, verified: true}
prices:
  - {machine: g6.xlarge, region: us-east-1, capacity_type: spot, usd_per_hour: "0.3", source: list}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "data.yaml"


def test_the_machines_of_the_course_have_one_gpu_each() -> None:
    machines = machines_of(Cloud.AWS)

    gpus = {name: machine.gpu and (machine.gpu.name, machine.gpu.count) for name, machine in machines.items()}
    assert gpus["g5.xlarge"] == ("a10g", 1)
    assert gpus["g5.2xlarge"] == ("a10g", 1)
    assert gpus["g6.xlarge"] == ("l4", 1)


@pytest.mark.parametrize("machine", machines_of(Cloud.AWS).values(), ids=lambda machine: machine.name)
def test_every_machine_has_both_prices_in_every_region_and_spot_is_cheaper(machine: Machine) -> None:
    prices = prices_of(Cloud.AWS)
    for region in machine.zones:
        spot, on_demand = (prices[machine.name, region, each].usd_per_hour for each in (CapacityType.SPOT, CapacityType.ON_DEMAND))
        assert Decimal(0) < spot < on_demand


def test_every_price_is_of_a_machine_in_the_catalog() -> None:
    assert {name for name, _, _ in prices_of(Cloud.AWS)} <= set(machines_of(Cloud.AWS))


@pytest.mark.parametrize(
    "line,broken,problem",
    [
        ("vcpu: 4", "vcpu: 0", r"machines\.0\.vcpu: Input should be greater than or equal to 1"),
        ("vcpu: 4", "vcpus: 4", r"machines\.0\.vcpus: Extra inputs"),
        ("cloud: aws", "cloud: azure", "cloud: Input should be 'aws'"),
        ("source: somewhere on the internet", "source: memory", "source: String should have at least 10 characters"),
        ("machines:", "machines: [", "is not YAML"),
    ],
)
def test_a_broken_machine_row_is_named(line: str, broken: str, problem: str, file: Path) -> None:
    file.write_text(MACHINES.replace(line, broken))

    with pytest.raises(DataFileError, match=problem):
        read_machines(file)


def test_a_machine_that_stands_twice_is_refused(file: Path) -> None:
    file.write_text(MACHINES + MACHINES.splitlines()[-1] + "\n")

    with pytest.raises(DataFileError, match=r"sorted by name, each once; found g6\.xlarge, g6\.xlarge"):
        read_machines(file)


@pytest.mark.parametrize(
    "line,broken,problem",
    [
        ("source: list}", "source: rumour}", "g6.xlarge: source 'rumour' is not one of list"),
        ('usd_per_hour: "0.3"', 'usd_per_hour: "0"', r"usd_per_hour: Input should be greater than 0"),
        ("capacity_type: spot", "capacity_type: preemptible", r"capacity_type: Input should be 'spot' or 'on-demand'"),
    ],
)
def test_a_broken_price_row_is_named(line: str, broken: str, problem: str, file: Path) -> None:
    file.write_text(PRICES.replace(line, broken))

    with pytest.raises(DataFileError, match=problem):
        read_prices(file)


def test_two_prices_for_the_same_are_refused(file: Path) -> None:
    file.write_text(PRICES + PRICES.splitlines()[-1] + "\n")

    with pytest.raises(DataFileError, match=r"g6\.xlarge us-east-1 spot has two prices"):
        read_prices(file)


def test_karpenters_labels_follow_from_the_machine() -> None:
    labels = karpenter_aws_labels(machines_of(Cloud.AWS)["g6.xlarge"])

    assert labels == {
        "karpenter.k8s.aws/instance-category": "g",
        "karpenter.k8s.aws/instance-family": "g6",
        "karpenter.k8s.aws/instance-generation": "6",
        "karpenter.k8s.aws/instance-size": "xlarge",
        "karpenter.k8s.aws/instance-cpu": "4",
        "karpenter.k8s.aws/instance-memory": "16384",
        "karpenter.k8s.aws/instance-gpu-name": "l4",
        "karpenter.k8s.aws/instance-gpu-manufacturer": "nvidia",
        "karpenter.k8s.aws/instance-gpu-count": "1",
        "karpenter.k8s.aws/instance-gpu-memory": "22888",
        "karpenter.k8s.aws/instance-local-nvme": "250",
    }


def test_a_machine_of_another_cloud_has_no_such_labels() -> None:
    machine = machines_of(Cloud.AWS)["g6.xlarge"].model_copy(update={"name": "g2-standard-4"})

    with pytest.raises(ValueError, match=r"g2-standard-4 is not an EC2 machine: expected FAMILY\.SIZE"):
        karpenter_aws_labels(machine)
