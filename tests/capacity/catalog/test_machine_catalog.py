"""The machine catalogs of both clouds, and refused rows of such files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from flexspot.capacity.catalog.data_files import DataFileError
from flexspot.capacity.catalog.machines import Gpu, Vendor, machines_of, read_machines
from flexspot.capacity.catalog.node_labels import karpenter_aws_labels

if TYPE_CHECKING:
    from pathlib import Path

ROWS = """
sources:
  list: {citation: somewhere on the internet, as_of: 2026-11-21, verified: true}
machines:
  - name: g6.xlarge
    vcpu: 4
    memory_mib: 16384
    gpu: {name: l4, model: l4, manufacturer: nvidia, counts: [1, 2], memory_mib: 22888}
    zones: {us-east-1: abd, eu-west-1: c}
    source: list
"""

AWS = f"cloud: aws{ROWS}"
GCP = f"cloud: gcp{ROWS}"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "machines.yaml"


def gpus(cloud: Vendor) -> list[Gpu]:
    return [machine.gpu for machine in machines_of(cloud).values() if machine.gpu]


def test_the_letters_of_a_regions_zones_are_read_as_the_names_that_the_cloud_gives_them(file: Path) -> None:
    file.write_text(AWS)
    assert read_machines(file)["g6.xlarge"].zones == {"us-east-1": ("us-east-1a", "us-east-1b", "us-east-1d"), "eu-west-1": ("eu-west-1c",)}

    file.write_text(GCP)
    assert read_machines(file)["g6.xlarge"].zones["us-east-1"] == ("us-east-1-a", "us-east-1-b", "us-east-1-d")


@pytest.mark.parametrize(
    "line,broken,problem",
    [
        ("vcpu: 4", "vcpu: 0", r"machines\.0\.vcpu: Input should be greater than or equal to 1"),
        ("cloud: aws", "cloud: azure", "cloud: Input should be 'aws'"),
        ("source: list", "source: rumour", r"g6\.xlarge: source 'rumour' is not one of list"),
        ("counts: [1, 2]", "counts: [2, 1]", r"machines\.0\.gpu\.counts: counts must rise, each once"),
        ("model: l4", "model: L4 24 GB", r"machines\.0\.gpu\.model: String should match pattern"),
        ("zones: {us-east-1: abd, eu-west-1: c}", "zones: [us-east-1a]", r"machines\.0\.zones: Input should be a valid dictionary"),
        ("machines:", "machines: [", "is not YAML"),
    ],
)
def test_a_broken_machine_row_is_named(line: str, broken: str, problem: str, file: Path) -> None:
    assert line in AWS
    file.write_text(AWS.replace(line, broken))

    with pytest.raises(DataFileError, match=problem):
        read_machines(file)


def test_a_machine_that_is_listed_twice_is_refused(file: Path) -> None:
    file.write_text(AWS + AWS.partition("machines:\n")[2])

    with pytest.raises(DataFileError, match=r"sorted by name, each once; found g6\.xlarge, g6\.xlarge"):
        read_machines(file)


def test_karpenters_labels_follow_from_the_machine() -> None:
    labels = karpenter_aws_labels(machines_of(Vendor.AWS)["g6.xlarge"])

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


@pytest.mark.parametrize(
    "cloud,sizes",
    [
        (
            Vendor.AWS,
            {"t4": 16, "l4": 24, "a10g": 24, "l40s": 48, "a100-40gb": 40, "a100-80gb": 80, "h100-80gb": 80, "h200-141gb": 141, "b300": 288},
        ),
        (Vendor.GCP, {"t4": 16, "l4": 24, "a100-40gb": 40, "a100-80gb": 80, "h100-80gb": 80, "h200-141gb": 141, "rtx-pro-6000": 96}),
    ],
)
def test_a_gpus_memory_is_as_its_vendor_names_it_whichever_unit_the_cloud_counts_in(cloud: Vendor, sizes: dict[str, int]) -> None:
    """NVIDIA's data sheets: 24 GB of an L4 are 22888 MiB to EC2 and 24576 MiB to Compute Engine."""
    found = {gpu.model: gpu.memory_gb for gpu in gpus(cloud)}

    assert {model: found[model] for model in sizes} == sizes
    named = {model: int(model.rpartition("-")[2].removesuffix("gb")) for model in found if model.endswith("gb")}
    assert {model: found[model] for model in named} == named
