"""Whose a pod is: by its own labels, then by those of its namespace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from capacity.chargeback.label_names import OWNER_LABELS, label_of

if TYPE_CHECKING:
    from collections.abc import Mapping

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
