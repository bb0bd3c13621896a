"""The questions to Prometheus, and the labels that the report asks kube-state-metrics for.

Sources: kubernetes/kube-state-metrics v2.20, docs/metrics; NVIDIA/dcgm-exporter 4.5.3-4.8.2, default counters; kueue v0.19.0,
pkg/metrics/metrics.go; opencost 1.113, docs; runtime/flexspot_runtime/status.py.

Kept in mind throughout: amounts are summed, never counted; a pod that has ended keeps its requests until it is deleted, so its phase is
asked too; two replicas of an exporter, or two jobs that scrape one, tell the same twice; DCGM's series have no node, and their own pod
may be the exporter's.

A pod's controller is in kube_pod_owner; what stands above that, such as the JobSet of a Job, is told by labels that its controllers give to
pods. Sources: kubernetes/kube-state-metrics v2.20, internal/store/pod.go; those of WORK_LABELS.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.accelerators import SERIES_VALUES
from flexspot.capacity.catalog.node_labels import (
    CAPACITY_TYPE_LABEL,
    ENVIRONMENT_LABEL,
    GKE_POOL_LABEL,
    GKE_QUEUED_LABEL,
    GKE_RESERVATION_NAME_LABEL,
    GKE_SPOT_LABEL,
    INSTANCE_TYPE_LABEL,
    KARPENTER_POOL_LABEL,
    OWNER_LABEL,
    PROJECT_LABEL,
    TEAM_LABEL,
    USER_LABEL,
    WORKLOAD_TYPE_LABEL,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


REGION_LABEL = "topology.kubernetes.io/region"
GKE_PROVISIONING_LABEL = "cloud.google.com/gke-provisioning"
GKE_FLEX_START_LABEL = "cloud.google.com/gke-flex-start"
EKS_CAPACITY_LABEL = "eks.amazonaws.com/capacityType"
EKS_POOL_LABEL = "eks.amazonaws.com/nodegroup"

OWNER_LABELS = (TEAM_LABEL, PROJECT_LABEL, WORKLOAD_TYPE_LABEL, ENVIRONMENT_LABEL)
"""Whose a pod is; on a namespace the default for its pods."""

JOBSET_LABEL = "jobset.sigs.k8s.io/jobset-name"
LEADER_WORKER_SET_LABEL = "leaderworkerset.sigs.k8s.io/name"
TEMPLATE_HASH_LABEL = "pod-template-hash"
WORK_LABELS = (USER_LABEL, JOBSET_LABEL, LEADER_WORKER_SET_LABEL, TEMPLATE_HASH_LABEL)
"""For whom a pod is, and to which workload its controller belongs: of a JobSet that is a Job, of a Deployment a ReplicaSet.

jobset v0.12, api/jobset/v1alpha2/jobset_types.go; leaderworkerset, api/leaderworkerset/v1; Kubernetes' documentation of labels.
"""

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
    owners, nodes = ",".join(OWNER_LABELS), ",".join(NODE_LABELS)
    return f"--metric-labels-allowlist=pods=[{owners},{','.join(WORK_LABELS)}],namespaces=[{owners}],nodes=[{nodes}]"


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
    """Of the labels of kube_pod_labels and kube_namespace_labels; `environment` is that of the node.

    Team and environment are the namespace's: who makes pods there writes their labels, and could have others pay.
    """
    team, project, workload_type, its_environment = map(label_of, OWNER_LABELS)
    return Owner(
        namespace.get(team) or pod.get(team) or NO_TEAM,
        pod.get(project) or namespace.get(project) or NONE,
        pod.get(workload_type) or namespace.get(workload_type) or NONE,
        namespace.get(its_environment) or pod.get(its_environment) or environment or NONE,
    )


class Question(StrEnum):
    """What is asked; also the name under which answers are kept."""

    NODES = "nodes"
    NODE_LABELS = "node-labels"
    NODE_GPUS = "node-gpus"
    NAMESPACES = "namespaces"
    POD_LABELS = "pod-labels"
    CONTROLLERS = "controllers"
    WORK_LABELS = "work-labels"
    ALLOCATIONS = "allocations"
    UTILISATION = "utilisation"
    STEPS = "steps"
    LOST_STEPS = "lost-steps"
    INTERRUPTIONS = "interruptions"
    EVICTIONS = "evictions"
    OPENCOST = "opencost"


@dataclass(frozen=True)
class Query:
    """One range query."""

    question: Question
    expression: str


_GPUS = f'resource=~"{"|".join(SERIES_VALUES)}|nvidia_com_mig_.+"'
_HELD = 'phase=~"Pending|Running"'
_NODE = "node, exported_node"
_POD = "namespace, exported_namespace, pod, exported_pod"
_CONTAINER = "container, exported_container"


def queries(match: str = "") -> tuple[Query, ...]:
    """Every query, in the order in which answers are needed. `match` is a matcher that every selector gets, such as cluster="prod"."""
    owners = ", ".join(label_of(each) for each in OWNER_LABELS)
    node_labels = ", ".join(label_of(each) for each in NODE_LABELS)
    work_labels = ", ".join(label_of(each) for each in WORK_LABELS)
    requests = _of("kube_pod_container_resource_requests", _GPUS, 'node!=""', match)
    # A pod may have owners besides the one that made it, and one that nobody made has an empty owner.
    controllers = _of("kube_pod_owner", 'owner_is_controller="true"', match)
    # Pending with a node: its image is being pulled, and its GPUs are taken already.
    held = f"({_of('kube_pod_status_phase', _HELD, match)} == 1)"
    of_pod = f"uid, {_POD}, {_NODE}, resource"
    active = f"({_of('DCGM_FI_PROF_GR_ENGINE_ACTIVE', match)} or {_of('DCGM_FI_DEV_GPU_UTIL', match)} / 100)"
    expressions = {
        Question.NODES: f"max by ({_NODE}, provider_id, system_uuid) ({_of('kube_node_info', match)})",
        Question.NODE_LABELS: f"max by ({_NODE}, {node_labels}) ({_of('kube_node_labels', match)})",
        Question.NODE_GPUS: f"max by ({_NODE}, resource) ({_of('kube_node_status_capacity', _GPUS, match)})",
        Question.NAMESPACES: f"max by (namespace, exported_namespace, {owners}) ({_of('kube_namespace_labels', match)})",
        Question.POD_LABELS: f"max by (uid, {owners}) ({_of('kube_pod_labels', match)} and on (uid) {requests})",
        Question.CONTROLLERS: f"max by (uid, owner_kind, owner_name) ({controllers} and on (uid) {requests})",
        Question.WORK_LABELS: f"max by (uid, {work_labels}) ({_of('kube_pod_labels', match)} and on (uid) {requests})",
        Question.ALLOCATIONS: f"sum by ({of_pod}) (max by ({of_pod}, {_CONTAINER}) ({requests} and on (uid) {held}))",
        Question.UTILISATION: f"sum by ({_POD}) (max by ({_POD}, UUID, gpu, GPU_I_ID) {active})",
        Question.STEPS: f"max by ({_POD}) ({_of('flexspot_training_step', match)})",
        Question.LOST_STEPS: f"max by ({_POD}) ({_of('flexspot_training_lost_steps', match)})",
        Question.INTERRUPTIONS: f"max by ({_POD}) ({_of('flexspot_training_interruptions_total', match)})",
        Question.EVICTIONS: (
            "max by (instance, cluster_queue, reason) "
            f"(sum by (job, instance, cluster_queue, reason) ({_of('kueue_evicted_workloads_total', match)}))"
        ),
        Question.OPENCOST: f"max by ({_NODE}) ({_of('node_total_hourly_cost', match)})",
    }
    return tuple(Query(question, expressions[question]) for question in Question)


def kube_state_series() -> tuple[str, ...]:
    """The series of kube-state-metrics that are asked for."""
    return tuple(sorted({name for each in queries() for name in re.findall(r"\bkube_\w+", each.expression)}))


def kube_state_resources() -> tuple[str, ...]:
    """The Kubernetes resources that these series tell of, in the plural, as in kube_node_info."""
    return tuple(sorted({f"{name.split('_')[1]}s" for name in kube_state_series()}))


def _of(metric: str, *matchers: str) -> str:
    written = ",".join(each for each in matchers if each)
    return f"{metric}{{{written}}}" if written else metric


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
