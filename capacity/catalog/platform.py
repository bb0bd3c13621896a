"""Where a platform runs, what it calls the things that every platform has, and which Prometheus gathers its series."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from capacity.catalog.machines import Cloud
from capacity.catalog.node_labels import (
    COMPUTE_CLASS_LABEL,
    GKE_ACCELERATOR_LABEL,
    GKE_POOL_LABEL,
    GKE_TOPOLOGY_LABELS,
    GPU_MEMORY_LABEL,
    GPU_NAME_LABEL,
    KARPENTER_POOL_LABEL,
)


class Platform(StrEnum):
    """Where a stack's platform runs.

    LOCAL is the lab's control plane on this machine, with fake nodes. GKE and EKS are clusters of the clouds, which need the clouds' own
    provider plugins.
    """

    LOCAL = "local"
    GKE = "gke"
    EKS = "eks"


@dataclass(frozen=True)
class Vocabulary:
    """A platform's own words.

    `catalog` is whose machines it has, `facts` whose capacity types (a name of capacity/catalog/capacity_types). `pool_label` and
    `accelerator_label` are labels that its autoscaler knows before a node has booted; `memory_label` (MiB of one GPU) tells
    apart GPUs of one name, where the cloud has such. `compute_class_label` is the one label of a compute class
    that the cloud itself climbs; None where weights order the pools. `topology_levels` are the labels that say where in the network a node
    is, the widest first; none where nodes are only made for pods that exist, which Kueue cannot place by them.
    """

    catalog: Cloud
    facts: str
    pool_label: str
    accelerator_label: str
    memory_label: str | None = None
    compute_class_label: str | None = None
    topology_levels: tuple[str, ...] = ()

    @property
    def gpu_labels(self) -> tuple[str, ...]:
        """The labels that say which GPU a node has."""
        return tuple(label for label in (self.accelerator_label, self.memory_label) if label is not None)


_KARPENTER = Vocabulary(Cloud.AWS, "eks", KARPENTER_POOL_LABEL, GPU_NAME_LABEL, GPU_MEMORY_LABEL)

VOCABULARIES: dict[Platform, Vocabulary] = {
    # The lab's nodes are launched by Karpenter from the EC2 catalog.
    Platform.LOCAL: _KARPENTER,
    Platform.EKS: _KARPENTER,
    Platform.GKE: Vocabulary(
        Cloud.GCP,
        "gke",
        GKE_POOL_LABEL,
        GKE_ACCELERATOR_LABEL,
        compute_class_label=COMPUTE_CLASS_LABEL,
        topology_levels=GKE_TOPOLOGY_LABELS,
    ),
}


MEASUREMENT_NAMESPACE = "flexspot-measurement"
"""Where what measures runs. Not kube-system, into which Autopilot lets nobody."""


class PrometheusKind(StrEnum):
    """Who reads what is to be scraped and recorded.

    MANAGED: Google's managed service, from objects of monitoring.googleapis.com. OPERATOR: the Prometheus operator, from objects of
    monitoring.coreos.com. ANNOTATIONS: a Prometheus that finds Services by the annotation prometheus.io/scrape, and takes rules as a file.
    """

    MANAGED = "managed"
    OPERATOR = "operator"
    ANNOTATIONS = "annotations"
