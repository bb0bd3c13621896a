"""The labels that a cloud's autoscaler knows of a machine before its node has booted."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from capacity.machines import Machine

GPU_RESOURCE = "nvidia.com/gpu"
"""The extended resource that the NVIDIA device plugin registers, and the key of the taint on GPU nodes."""

CAPACITY_TYPE_LABEL = "karpenter.sh/capacity-type"
ZONE_LABEL = "topology.kubernetes.io/zone"
INSTANCE_TYPE_LABEL = "node.kubernetes.io/instance-type"
GPU_NAME_LABEL = "karpenter.k8s.aws/instance-gpu-name"


def karpenter_aws_labels(machine: Machine) -> dict[str, str]:
    """The labels under `karpenter.k8s.aws/` that Karpenter's AWS provider derives from the instance type.

    Source: Karpenter AWS provider v1.14.1, pkg/providers/instancetype/types.go. Raises ValueError for a name that is not `family.size`.
    """
    match = re.fullmatch(r"((?P<category>[a-z]+?)(?P<generation>\d+)[a-z0-9-]*)\.(?P<size>[a-z0-9-]+)", machine.name)
    if match is None:
        raise ValueError(f"{machine.name} is not an EC2 machine: expected FAMILY.SIZE, such as g6.xlarge")
    prefix = "karpenter.k8s.aws/instance-"
    labels = {
        f"{prefix}category": match["category"],
        f"{prefix}family": match[1],
        f"{prefix}generation": match["generation"],
        f"{prefix}size": match["size"],
        f"{prefix}cpu": str(machine.vcpu),
        f"{prefix}memory": str(machine.memory_mib),
    }
    if machine.gpu is not None:
        labels |= {
            GPU_NAME_LABEL: machine.gpu.name,
            f"{prefix}gpu-manufacturer": machine.gpu.manufacturer,
            f"{prefix}gpu-count": str(machine.gpu.count),
            f"{prefix}gpu-memory": str(machine.gpu.memory_mib),
        }
    if machine.local_ssd_gb:
        labels[f"{prefix}local-nvme"] = str(machine.local_ssd_gb)
    return labels
