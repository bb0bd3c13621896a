"""Node labels, and those that a cloud's autoscaler knows of a machine before its node has booted."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.accelerators import NVIDIA, TPU
from flexspot.capacity.catalog.machines import is_zone_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flexspot.capacity.catalog.machines import Machine


GPU_RESOURCE = NVIDIA.resource
"""The extended resource that the NVIDIA device plugin registers, and the key of the taint on GPU nodes."""

EFA_RESOURCE = "vpc.amazonaws.com/efa"
"""EFA interfaces of a node, as AWS's device plugin counts them, and as Karpenter does before the node exists."""

GPU_QUOTA = NVIDIA.quota_key
"""Key under which a ResourceQuota counts GPUs. Kubernetes also accepts `limits.nvidia.com/gpu` and never counts it."""

CAPACITY_TYPE_LABEL = "karpenter.sh/capacity-type"
ZONE_LABEL = "topology.kubernetes.io/zone"
ZONE_ID_LABEL = "topology.k8s.aws/zone-id"
INSTANCE_TYPE_LABEL = "node.kubernetes.io/instance-type"
KARPENTER_INSTANCE = "karpenter.k8s.aws/instance-"
"""Prefix of the label keys that Karpenter's AWS provider sets for a machine."""

AUTO_MODE_INSTANCE = "eks.amazonaws.com/instance-"
"""The same prefix in EKS Auto Mode, whose labels have the same names after it.

awsdocs/amazon-eks-user-guide, latest/ug/automode/create-node-pool.adoc at 01385604, "EKS Auto Mode Supported Labels" (read 2026-11-25).
"""

KARPENTER_POOL_LABEL = "karpenter.sh/nodepool"

GKE_ACCELERATOR_LABEL = NVIDIA.gke_label
GKE_TPU_LABEL = TPU.gke_label
GKE_TPU_TOPOLOGY_LABEL = "cloud.google.com/gke-tpu-topology"
"""Arrangement of the chips of a node's slice. GKE sets it, and pods that request chips select it."""

GKE_ACCELERATOR_COUNT_LABEL = "cloud.google.com/gke-accelerator-count"
"""Number of GPUs of an Autopilot node. Standard nodes do not have this label."""

GKE_GPU_DRIVER_LABEL = "cloud.google.com/gke-gpu-driver-version"
GKE_GPU_PARTITION_LABEL = "cloud.google.com/gke-gpu-partition-size"
GKE_GPU_SHARING_LABEL = "cloud.google.com/gke-gpu-sharing-strategy"
GKE_GPU_CLIENTS_LABEL = "cloud.google.com/gke-max-shared-clients-per-gpu"
GKE_RESERVATION_NAME_LABEL = "cloud.google.com/reservation-name"
GKE_RESERVATION_PROJECT_LABEL = "cloud.google.com/reservation-project"
GKE_POOL_LABEL = "cloud.google.com/gke-nodepool"
GKE_SPOT_LABEL = "cloud.google.com/gke-spot"
GKE_QUEUED_LABEL = "cloud.google.com/gke-queued"
COMPUTE_CLASS_LABEL = "cloud.google.com/compute-class"
ARCHITECTURE_LABEL = "kubernetes.io/arch"
"""Label of every node. On GKE also the key of the taint that it sets on nodes that are not amd64."""

HOSTNAME_LABEL = "kubernetes.io/hostname"
GKE_TOPOLOGY_LABELS = (
    "cloud.google.com/gce-topology-block",
    "cloud.google.com/gce-topology-subblock",
    "cloud.google.com/gce-topology-host",
    HOSTNAME_LABEL,
)
"""Position of a node in the network, the widest level first. The more values two nodes share, the closer they are.

https://docs.cloud.google.com/ai-hypercomputer/docs/workloads/schedule-gke-workloads-tas
"""

OWN_LABELS = "flexspot.dev/"
"""Prefix of the platform's own label keys."""

ENVIRONMENT_LABEL = f"{OWN_LABELS}environment"
OWNER_LABEL = f"{OWN_LABELS}owner"
TEAM_LABEL = f"{OWN_LABELS}team"
CLASS_LABEL = f"{OWN_LABELS}class"
"""Also the key of the taint on nodes that serve one class only."""

CAPACITY_TAINT = f"{OWN_LABELS}capacity-type"
"""Key of the taint that repels work from capacity that the cloud reclaims, where the cloud has no such taint."""

FLAVOR_LABEL = f"{OWN_LABELS}flavor"
"""Label of nodes of pools among which the autoscaler chooses. Its value is the flavor that stands for all of them."""

WHOLE_NODE_TAINT = f"{OWN_LABELS}whole-node"
"""Key of the taint on nodes whose pods use all of their GPUs. Its value is their number."""


def zone_label(zones: Sequence[str]) -> str:
    """Return the label key for zones written by name or by ID (Karpenter v1.14.1, pkg/apis/v1/labels.go)."""
    return ZONE_ID_LABEL if any(is_zone_id(zone) for zone in zones) else ZONE_LABEL


def karpenter_aws_labels(machine: Machine) -> dict[str, str]:
    """Return the labels under `karpenter.k8s.aws/` that Karpenter's AWS provider derives from the instance type.

    Source: Karpenter AWS provider v1.14.1, pkg/providers/instancetype/types.go. Raises ValueError for a name that is not `family.size`.
    """
    match = re.fullmatch(r"((?P<category>[a-z]+?)(?P<generation>\d+)[a-z0-9-]*)\.(?P<size>[a-z0-9-]+)", machine.name)
    if match is None:
        raise ValueError(f"{machine.name} is not an EC2 machine: expected FAMILY.SIZE, such as g6.xlarge")
    prefix = KARPENTER_INSTANCE
    labels = {
        f"{prefix}category": match["category"],
        f"{prefix}family": match[1],
        f"{prefix}generation": match["generation"],
        f"{prefix}size": match["size"],
        f"{prefix}cpu": str(machine.vcpu),
        f"{prefix}memory": str(machine.memory_mib),
    }
    if (gpu := machine.gpu) is not None:
        device = f"{prefix}{gpu.accelerator.instance_label}"
        labels |= {f"{device}-name": gpu.name, f"{device}-manufacturer": gpu.manufacturer, f"{device}-count": str(gpu.count)}
        if gpu.accelerator.tells_memory:
            labels[f"{device}-memory"] = str(gpu.memory_mib)
    if machine.local_ssd_gb:
        labels[f"{prefix}local-nvme"] = str(machine.local_ssd_gb)
    return labels


QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
"""LocalQueue of a job. Kueue ignores jobs without it, unless their namespace has a queue called default."""

QUEUE_PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
"""WorkloadPriorityClass of a job: its place in the queue, independent of the priority of its pods."""

PROJECT_LABEL = "flexspot.dev/project"
WORKLOAD_TYPE_LABEL = "flexspot.dev/workload-type"
"""The kind of work, for chargeback: the value of a WorkloadType."""

USER_LABEL = "flexspot.dev/user"
"""User that the submitter names. Kubernetes records the creator of an object in its audit log only, not in a label."""
