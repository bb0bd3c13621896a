"""Which workload and which user a pod's GPUs were for, as far as kube-state-metrics tells of it.

A pod's controller is in kube_pod_owner; what stands above that, such as the JobSet of a Job, is told by labels that its controllers give to
pods. Sources: kubernetes/kube-state-metrics v2.20, internal/store/pod.go; those of queries.WORK_LABELS.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from capacity.catalog.work_labels import USER_LABEL
from capacity.chargeback.queries import JOBSET_LABEL, LEADER_WORKER_SET_LABEL, TEMPLATE_HASH_LABEL, label_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from capacity.chargeback.queries import Owner

NO_USER = "(no user)"
"""Stands for whoever has no label of a user. No Kubernetes label can have this value."""


@dataclass(frozen=True, order=True)
class Workload:
    """What a person submitted: of one name at different times it is one. A pod without a controller is a workload of its own."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True)
class Work:
    """Who pays, for which workload, on whose behalf."""

    owner: Owner
    workload: Workload
    user: str = NO_USER


Controller = tuple[str, str]
"""Kind and name; both empty: none is known."""


def workload_of(namespace: str, pod: str, controller: Controller, labels: Mapping[str, str]) -> Workload:
    """Whose pod it is. `labels` are those of a kube_pod_labels series.

    Who makes pods writes their labels, so a label counts only for a pod whose controller is of the kind that goes with it.
    """
    kind, name = controller
    if not kind:
        return Workload("Pod", namespace, pod)
    if kind == "Job" and (jobset := labels.get(label_of(JOBSET_LABEL))):
        return Workload("JobSet", namespace, jobset)
    if kind == "StatefulSet" and (leaders := labels.get(label_of(LEADER_WORKER_SET_LABEL))):
        return Workload("LeaderWorkerSet", namespace, leaders)
    if kind == "ReplicaSet" and (of := labels.get(label_of(TEMPLATE_HASH_LABEL))) and name.endswith(f"-{of}"):
        return Workload("Deployment", namespace, name.removesuffix(f"-{of}"))
    return Workload(kind, namespace, name)


def user_of(labels: Mapping[str, str]) -> str:
    """On whose behalf, as the pod's label says."""
    return labels.get(label_of(USER_LABEL)) or NO_USER
