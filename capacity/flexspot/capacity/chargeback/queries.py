"""The queries to Prometheus, and the labels that the report needs from kube-state-metrics.

Sources: kubernetes/kube-state-metrics v2.20, docs/metrics; NVIDIA/dcgm-exporter 4.5.3-4.8.2, default counters; kueue v0.19.2,
pkg/metrics/metrics.go; opencost 1.113, docs; runtime/flexspot_runtime/status.py.

Rules for all queries: Amounts are summed, never counted. A pod that has ended keeps its requests until it is deleted, so its phase is
queried too. Two replicas of an exporter, or two jobs that scrape one, report everything twice. DCGM's series have no node, and their own
pod may be the exporter's.

A pod's controller is in kube_pod_owner. The controller above it, such as the JobSet of a Job, is known from labels that controllers add to
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
"""Labels of a pod's owner; on a namespace, the default for its pods."""

JOBSET_LABEL = "jobset.sigs.k8s.io/jobset-name"
LEADER_WORKER_SET_LABEL = "leaderworkerset.sigs.k8s.io/name"
TEMPLATE_HASH_LABEL = "pod-template-hash"
WORK_LABELS = (USER_LABEL, JOBSET_LABEL, LEADER_WORKER_SET_LABEL, TEMPLATE_HASH_LABEL)
"""Labels of a pod's user, and of the workload that its controller belongs to: a JobSet for a Job, a Deployment for a ReplicaSet.

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
"""Labels of a node's type, cost and owner."""


def label_of(key: str) -> str:
    """Return the name of a Kubernetes label in kube-state-metrics: characters other than letters and digits become _, a capital starts a
    word.

    kube-state-metrics v2, internal/store/utils.go: eks.amazonaws.com/capacityType is label_eks_amazonaws_com_capacity_type.
    """
    return "label_" + re.sub(r"[^a-zA-Z0-9_]", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key)).lower()


def allow_list() -> str:
    """Return the argument that makes kube-state-metrics show these labels; without it, it shows none."""
    owners, nodes = ",".join(OWNER_LABELS), ",".join(NODE_LABELS)
    return f"--metric-labels-allowlist=pods=[{owners},{','.join(WORK_LABELS)}],namespaces=[{owners}],nodes=[{nodes}]"


NO_TEAM, NONE = "(no team)", "(none)"
CENTRAL, PLATFORM = "(central)", "(platform)"
"""Payers where no team pays: for idle GPUs, and for nodes without GPUs. No Kubernetes label can have these values."""


@dataclass(frozen=True)
class Owner:
    """The team and purpose of a use."""

    team: str = NO_TEAM
    project: str = NONE
    workload_type: str = NONE
    environment: str = NONE


def owner_of(pod: Mapping[str, str], namespace: Mapping[str, str], environment: str) -> Owner:
    """Return the owner from the labels of kube_pod_labels and kube_namespace_labels. `environment` is the node's.

    Team and environment are the namespace's: users who create pods there write the pods' labels, and could make others pay.
    """
    team, project, workload_type, its_environment = map(label_of, OWNER_LABELS)
    return Owner(
        namespace.get(team) or pod.get(team) or NO_TEAM,
        pod.get(project) or namespace.get(project) or NONE,
        pod.get(workload_type) or namespace.get(workload_type) or NONE,
        namespace.get(its_environment) or pod.get(its_environment) or environment or NONE,
    )


class Question(StrEnum):
    """Subject of a query; also the name under which answers are kept."""

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
    """Return every query, in the order in which answers are needed. `match` is a matcher added to every selector, such as
    cluster="prod".
    """
    owners = ", ".join(label_of(each) for each in OWNER_LABELS)
    node_labels = ", ".join(label_of(each) for each in NODE_LABELS)
    work_labels = ", ".join(label_of(each) for each in WORK_LABELS)
    requests = _of("kube_pod_container_resource_requests", _GPUS, 'node!=""', match)
    # A pod may have owners in addition to its controller. A pod created without one has an empty owner.
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
    """Return the series of kube-state-metrics that the queries use."""
    return tuple(sorted({name for each in queries() for name in re.findall(r"\bkube_\w+", each.expression)}))


def kube_state_resources() -> tuple[str, ...]:
    """Return the Kubernetes resources of these series, in the plural, as in kube_node_info."""
    return tuple(sorted({f"{name.split('_')[1]}s" for name in kube_state_series()}))


def _of(metric: str, *matchers: str) -> str:
    written = ",".join(each for each in matchers if each)
    return f"{metric}{{{written}}}" if written else metric


NO_USER = "(no user)"
"""Replaces a missing user label. No Kubernetes label can have this value."""


@dataclass(frozen=True, order=True)
class Workload:
    """A workload as a person submitted it. Workloads of one name at different times are one. A pod without a controller is a workload."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True)
class Work:
    """Work that uses GPUs: the owner who pays, the workload and its user."""

    owner: Owner
    workload: Workload
    user: str = NO_USER


Controller = tuple[str, str]
"""Kind and name; both empty if no controller is known."""


def workload_of(namespace: str, pod: str, controller: Controller, labels: Mapping[str, str]) -> Workload:
    """Return the workload of a pod. `labels` are those of a kube_pod_labels series.

    Users who create pods write their labels, so a label counts only if the pod's controller is of the matching kind.
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
    """Return the user in the pod's label."""
    return labels.get(label_of(USER_LABEL)) or NO_USER
