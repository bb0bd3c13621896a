"""Which machines have NVIDIA GPUs, or accelerators of AWS's own."""

from __future__ import annotations

import pytest

from capacity.catalog.accelerators import ACCELERATORS, NEURON, NVIDIA, TPU
from capacity.catalog.machines import Cloud, machines_of
from policies.inventory.gpu_machines import gpu_selection, is_gpu_machine
from policies.values.field import Field

GPU_MACHINES = (
    *("g3s.xlarge", "g4dn.xlarge", "g5.2xlarge", "g5g.xlarge", "g6e.48xlarge", "gr6.4xlarge", "g6f.large", "p3dn.24xlarge", "p4d.24xlarge"),
    *("p4de.24xlarge", "p5en.48xlarge", "p6-b200.48xlarge", "p6e-gb200.36xlarge", "a2-highgpu-1g", "a3-megagpu-8g", "a4x-highgpu-4g"),
    *("g2-standard-4", "g4-standard-48"),
)
TPU_MACHINES = ("ct5lp-hightpu-4t", "ct5p-hightpu-4t", "ct6e-standard-8t", "ct4p-hightpu-4t", "tpu7x-standard-4t")
NEURON_MACHINES = ("inf1.xlarge", "inf2.xlarge", "trn1.32xlarge", "trn1n.32xlarge", "trn2.48xlarge", "trn2u.48xlarge", "trn3-es.48xlarge")
OTHER_MACHINES = (
    *("g4ad.xlarge", "m7i.large", "dl1.24xlarge", "e2-small", "g1-small", "n1-standard-8"),
    *("ct5lp.xlarge", "t2d-standard-4", "a1.large", "", "g6", "."),
)


@pytest.mark.parametrize("machine", GPU_MACHINES)
def test_a_machine_with_nvidia_gpus_is_recognised(machine: str) -> None:
    assert is_gpu_machine(machine)
    assert (is_gpu_machine(machine, (NVIDIA,)), is_gpu_machine(machine, (NEURON,))) == (True, False)


@pytest.mark.parametrize("machine", NEURON_MACHINES)
def test_a_machine_with_neuron_devices_is_recognised_and_told_apart(machine: str) -> None:
    assert is_gpu_machine(machine)
    assert (is_gpu_machine(machine, (NVIDIA,)), is_gpu_machine(machine, (NEURON,))) == (False, True)


@pytest.mark.parametrize("machine", TPU_MACHINES)
def test_a_machine_with_tpus_is_recognised_as_one_of_no_other_kind(machine: str) -> None:
    assert is_gpu_machine(machine)
    assert [is_gpu_machine(machine, (kind,)) for kind in (NVIDIA, NEURON, TPU)] == [False, False, True]


@pytest.mark.parametrize("machine", OTHER_MACHINES)
def test_another_machine_is_not(machine: str) -> None:
    assert not is_gpu_machine(machine)


def test_the_shipped_catalog_agrees() -> None:
    for machine in machines_of(Cloud.AWS).values():
        kinds = [kind for kind in ACCELERATORS if is_gpu_machine(machine.name, (kind,))]
        assert kinds == ([] if machine.gpu is None else [machine.gpu.accelerator]), machine.name


@pytest.mark.parametrize(
    "key,operator,values,selection",
    [
        # names a GPU machine, demands one, excludes them
        ("node.kubernetes.io/instance-type", "In", ["g6.xlarge", "m7i.large"], (True, False, False)),
        ("node.kubernetes.io/instance-type", "In", ["m7i.large"], (False, False, True)),
        ("node.kubernetes.io/instance-type", "NotIn", ["m7i.large"], (False, False, False)),
        ("node.kubernetes.io/instance-type", "Exists", [], (False, False, False)),
        ("cloud.google.com/machine-family", "In", ["g2"], (True, True, False)),
        ("karpenter.k8s.aws/instance-category", "In", ["p"], (True, True, False)),
        ("karpenter.k8s.aws/instance-gpu-memory", "Gt", ["20000"], (True, True, False)),
        ("karpenter.k8s.aws/instance-gpu-name", "In", ["radeon-pro-v520"], (False, False, True)),
        ("karpenter.k8s.aws/instance-gpu-count", "In", ["0"], (False, False, True)),
        ("nvidia.com/gpu", "In", ["true"], (True, True, False)),
        ("nvidia.com/gpu.present", "In", ["false"], (False, False, True)),
        ("nvidia.com/gpu.present", "DoesNotExist", [], (False, False, True)),
        ("nvidia.com/gpu.product", "NotIn", ["NVIDIA-L4"], (False, False, False)),
        ("node.kubernetes.io/instance-type", "In", ["g6.xlarge", "trn1.2xlarge"], (True, True, False)),
        ("karpenter.k8s.aws/instance-family", "In", ["inf2"], (True, True, False)),
        ("karpenter.k8s.aws/instance-category", "In", ["trn", "c"], (True, False, False)),
        ("karpenter.k8s.aws/instance-accelerator-name", "In", ["trainium2"], (True, True, False)),
        ("karpenter.k8s.aws/instance-accelerator-manufacturer", "In", ["aws"], (True, True, False)),
        ("karpenter.k8s.aws/instance-accelerator-count", "Exists", [], (True, True, False)),
        ("karpenter.k8s.aws/instance-accelerator-count", "DoesNotExist", [], (False, False, True)),
        ("topology.kubernetes.io/zone", "In", ["us-east-1a"], (False, False, False)),
    ],
)
def test_a_requirement_says_what_it_says_of_gpus(key: str, operator: str, values: list[str], selection: tuple[bool, bool, bool]) -> None:
    found = gpu_selection(Field({"key": key, "operator": operator, "values": values}))

    assert (found.names, found.demands, found.excludes) == selection
