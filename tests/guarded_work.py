"""Work of a team, and the policies that guard the team's share. Not a test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cel_evaluator import judged

from flexspot.policies.admission.guarantee import Guarantee, guarantee_policies
from flexspot.policies.admission.scheduling_options import CONTAINER_LIMITS, POD_SIZES, QUEUES, UNQUEUED_POOLS

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexspot.policies.admission.policy import AdmissionPolicy

TEAM = "team-a"
_NO_CLASS = "label cloud.google.com/compute-class="
_L4 = ("resource nvidia.com/gpu", "label nvidia.com/gpu.product=l4")
POOLS = (
    ("h100", "resource nvidia.com/gpu", "label karpenter.sh/nodepool=h100", _NO_CLASS, "taint flexspot.dev/whole-node=8:NoSchedule"),
    ("l4-class", *_L4, "label cloud.google.com/compute-class=inference", "taint cloud.google.com/compute-class=inference:NoSchedule"),
    ("l4-on-demand", *_L4, "label karpenter.sh/nodepool=l4-on-demand", _NO_CLASS),
    ("l4-spot", *_L4, "label karpenter.sh/nodepool=l4-spot", _NO_CLASS, "taint example.com/spot=true:NoSchedule"),
    ("v6e", "resource google.com/tpu", "label karpenter.sh/nodepool=v6e", _NO_CLASS),
)
FACTS = Guarantee(
    queued={"gpu-notebooks": 28800, "gpu-training": 576000},
    unqueued=("gpu-production",),
    longest_grace=120,
    topology_levels=("cloud.google.com/gce-topology-block",),
    gpu_node_labels=("nvidia.com/gpu.product",),
    pool_label="karpenter.sh/nodepool",
    pools=POOLS,
)
COMES, GOES, CLAIMS, STOPS, ELSEWHERE = guarantee_policies(FACTS)
ANNOTATIONS = {
    QUEUES: "big=l4.l4-spot cpu= default=l4.l4-spot",
    CONTAINER_LIMITS: "cpu=16 memory=64Gi",
    UNQUEUED_POOLS: "l4-on-demand",
    POD_SIZES: "1 whole-4 whole-8",
}
"""Annotations of the team's namespace."""

Object = dict[str, Any]


DEADLINE = {"activeDeadlineSeconds": 576000}


def pod(*, gpus: int | str = 1, **more: Any) -> Object:
    safe = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    container: Object = {"name": "main", "image": "work:1", "securityContext": safe}
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": gpus}}
    context = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    return {"priorityClassName": "gpu-training", "securityContext": context, "containers": [container], **more}


def made(api: str, kind: str, spec: Object, **metadata: Any) -> Object:
    labels = {"kueue.x-k8s.io/queue-name": "default"}
    return {"apiVersion": api, "kind": kind, "metadata": {"name": "x", "namespace": TEAM, "labels": labels, **metadata}, "spec": spec}


def job(spec: Object, ends: Object = DEADLINE, **metadata: Any) -> Object:
    return made("batch/v1", "Job", {**ends, "template": {"spec": spec}}, **metadata)


def job_set(*pods: Object, ends: Object = DEADLINE, **spec: Any) -> Object:
    jobs = [{"name": f"job-{number}", "template": {"spec": {**ends, "template": {"spec": each}}}} for number, each in enumerate(pods)]
    return made("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": jobs, **spec})


def cron_job(spec: Object, ends: Object = DEADLINE) -> Object:
    nested = {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "default"}}, "spec": {**ends, "template": {"spec": spec}}}
    return made("batch/v1", "CronJob", {"jobTemplate": nested})


def ray_cluster(spec: Object) -> Object:
    group = {"template": {"spec": spec}}
    return made("ray.io/v1", "RayCluster", {"headGroupSpec": group, "workerGroupSpecs": [group]})


def pytorch_job(spec: Object) -> Object:
    return made("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": {"Master": {"template": {"spec": spec}}}})


NOT_EVALUATED = "not evaluated"


def problems_of(each: Object, policy: AdmissionPolicy = COMES, **how: Any) -> dict[str, list[str]]:
    """Return the problems of the object by rule, or only NOT_EVALUATED if the policy is not evaluated."""
    how = {"namespace_annotations": ANNOTATIONS, **how}
    found = judged(policy, each, namespace_labels={"flexspot.dev/team": TEAM}, **how)
    return {NOT_EVALUATED: []} if found is None else {rule: problems for rule, problems in found.items() if problems}


def broken(each: Object, **how: Any) -> set[str]:
    return set(problems_of(each, **how))


QUEUED: list[Callable[[Object], Object]] = [job, lambda spec: job_set(pod(), spec), cron_job]
OF_OPERATORS: list[Callable[[Object], Object]] = [ray_cluster, pytorch_job]
KINDS = [*QUEUED, *OF_OPERATORS]


def of_its_class(kind: Callable[[Object], Object], spec: Object) -> Object:
    """Return the object with its pods in a class for its kind, if they name the class of training."""
    services = kind in OF_OPERATORS and spec["priorityClassName"] == "gpu-training"
    return kind(spec | {"priorityClassName": "gpu-production"} if services else spec)


def queued(each: Object, queue: str | None) -> Object:
    """Return the object in another queue, or in none."""
    nested = each["spec"]["jobTemplate"] if each["kind"] == "CronJob" else each
    nested["metadata"]["labels"] = {} if queue is None else {"kueue.x-k8s.io/queue-name": queue}
    return each


OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "admitted", "uid": "1", "controller": True}
AGAIN = {"action": "RestartJobSetAndIgnoreMaxRestarts"}
