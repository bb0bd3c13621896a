"""Accelerators of machines, by name and by node label."""

from __future__ import annotations

import pytest

from flexspot.capacity.catalog.accelerators import ACCELERATORS, NEURON, NVIDIA, TPU
from flexspot.capacity.catalog.machines import Vendor, machines_of
from flexspot.policies.inventory.gpu_machines import gpu_selection, is_gpu_machine
from flexspot.policies.values.field import Field


@pytest.mark.parametrize(
    "machine,kinds",
    [
        *(("g5g.xlarge", [NVIDIA]), ("gr6.4xlarge", [NVIDIA]), ("g6f.large", [NVIDIA]), ("p6e-gb200.36xlarge", [NVIDIA])),
        *(("a4x-highgpu-4g", [NVIDIA]), ("g4-standard-48", [NVIDIA]), ("trn2u.48xlarge", [NEURON]), ("trn3-es.48xlarge", [NEURON])),
        *(("ct5lp-hightpu-4t", [TPU]), ("tpu7x-standard-4t", [TPU]), ("g4ad.xlarge", []), ("dl1.24xlarge", []), ("g1-small", [])),
        *(("ct5lp.xlarge", []), ("", []), ("g6", []), (".", [])),
    ],
)
def test_a_machine_has_the_accelerators_that_its_name_says(machine: str, kinds: list[str]) -> None:
    assert [kind for kind in (NVIDIA, NEURON, TPU) if is_gpu_machine(machine, (kind,))] == kinds
    assert is_gpu_machine(machine) is bool(kinds)


def test_the_shipped_catalog_agrees() -> None:
    for machine in machines_of(Vendor.AWS).values():
        kinds = [kind for kind in ACCELERATORS if is_gpu_machine(machine.name, (kind,))]
        assert kinds == ([] if machine.gpu is None else [machine.gpu.accelerator]), machine.name


@pytest.mark.parametrize(
    "key,operator,values,selection",
    [
        # names a GPU machine, demands one, excludes them
        ("node.kubernetes.io/instance-type", "In", ["g6.xlarge", "m7i.large"], (True, False, False)),
        ("node.kubernetes.io/instance-type", "In", ["m7i.large"], (False, False, True)),
        ("cloud.google.com/machine-family", "In", ["g2"], (True, True, False)),
        ("karpenter.k8s.aws/instance-gpu-name", "In", ["radeon-pro-v520"], (False, False, True)),
        ("karpenter.k8s.aws/instance-gpu-count", "In", ["0"], (False, False, True)),
        ("nvidia.com/gpu.present", "In", ["false"], (False, False, True)),
        ("node.kubernetes.io/instance-type", "In", ["g6.xlarge", "trn1.2xlarge"], (True, True, False)),
        ("karpenter.k8s.aws/instance-category", "In", ["trn", "c"], (True, False, False)),
        ("karpenter.k8s.aws/instance-accelerator-manufacturer", "In", ["aws"], (True, True, False)),
        ("karpenter.k8s.aws/instance-accelerator-count", "Exists", [], (True, True, False)),
        ("topology.kubernetes.io/zone", "In", ["us-east-1a"], (False, False, False)),
    ],
)
def test_a_requirement_names_demands_or_excludes_gpus(
    key: str, operator: str, values: list[str], selection: tuple[bool, bool, bool]
) -> None:
    found = gpu_selection(Field({"key": key, "operator": operator, "values": values}))

    assert (found.names, found.demands, found.excludes) == selection
