"""The labels that the report asks kube-state-metrics for, and whose a pod is by them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from capacity.catalog.node_labels import (
    CAPACITY_TYPE_LABEL,
    ENVIRONMENT_LABEL,
    GKE_POOL_LABEL,
    GKE_QUEUED_LABEL,
    GKE_RESERVATION_NAME_LABEL,
    GKE_SPOT_LABEL,
    INSTANCE_TYPE_LABEL,
    KARPENTER_POOL_LABEL,
    OWNER_LABEL,
    TEAM_LABEL,
)
from capacity.workloads.names import PROJECT_LABEL, WORKLOAD_TYPE_LABEL

if TYPE_CHECKING:
    from collections.abc import Mapping


REGION_LABEL = "topology.kubernetes.io/region"
GKE_PROVISIONING_LABEL = "cloud.google.com/gke-provisioning"
GKE_FLEX_START_LABEL = "cloud.google.com/gke-flex-start"
EKS_CAPACITY_LABEL = "eks.amazonaws.com/capacityType"
EKS_POOL_LABEL = "eks.amazonaws.com/nodegroup"

OWNER_LABELS = (TEAM_LABEL, PROJECT_LABEL, WORKLOAD_TYPE_LABEL, ENVIRONMENT_LABEL)
"""Whose a pod is; on a namespace the default for its pods."""

NODE_LABELS = (
    INSTANCE_TYPE_LABEL,
    REGION_LABEL,
    CAPACITY_TYPE_LABEL,
    KARPENTER_POOL_LABEL,
    EKS_CAPACITY_LABEL,
    EKS_POOL_LABEL,
    GKE_POOL_LABEL,
    GKE_SPOT_LABEL,
    GKE_PROVISIONING_LABEL,
    GKE_FLEX_START_LABEL,
    GKE_QUEUED_LABEL,
    GKE_RESERVATION_NAME_LABEL,
    ENVIRONMENT_LABEL,
    TEAM_LABEL,
    OWNER_LABEL,
)
"""What a node is, what it costs and whose it is."""


def label_of(key: str) -> str:
    """A Kubernetes label as kube-state-metrics names it: what is no letter or digit becomes _, and a capital starts a word.

    kube-state-metrics v2, internal/store/utils.go: eks.amazonaws.com/capacityType is label_eks_amazonaws_com_capacity_type.
    """
    return "label_" + re.sub(r"[^a-zA-Z0-9_]", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key)).lower()


def allow_list() -> str:
    """The argument with which kube-state-metrics shows these labels; without it, it shows none."""
    pods, nodes = ",".join(OWNER_LABELS), ",".join(NODE_LABELS)
    return f"--metric-labels-allowlist=pods=[{pods}],namespaces=[{pods}],nodes=[{nodes}]"


NO_TEAM, NONE = "(no team)", "(none)"
CENTRAL, PLATFORM = "(central)", "(platform)"
"""Who pays where no team does: for idle GPUs, and for nodes without GPUs. No Kubernetes label can have these values."""


@dataclass(frozen=True)
class Owner:
    """Who used something, and for what."""

    team: str = NO_TEAM
    project: str = NONE
    workload_type: str = NONE
    environment: str = NONE


def owner_of(pod: Mapping[str, str], namespace: Mapping[str, str], environment: str) -> Owner:
    """Of the labels of kube_pod_labels and kube_namespace_labels; `environment` is that of the node."""
    team, project, workload_type, its_environment = (pod.get(name) or namespace.get(name, "") for name in map(label_of, OWNER_LABELS))
    return Owner(team or NO_TEAM, project or NONE, workload_type or NONE, its_environment or environment or NONE)
