"""The objects of a test's platform of queues: the program's objects, fake nodes, and Jobs as users would write them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

import pulumi
from pulumi_kubernetes import Provider

from flexspot.capacity.catalog.node_labels import GPU_RESOURCE, WHOLE_NODE_TAINT
from flexspot.capacity.plan.resolve import machines_of_pool
from flexspot.infra.declaring.platform_objects import declare_admission, declare_platform_objects
from flexspot.lab.exercise.play import UNTIL_RELEASED, run_time_of_pods

if TYPE_CHECKING:
    from flexspot.capacity.plan.model import Plan, PoolPlan
    from flexspot.lab.cluster import KubeObject

Register = Callable[[Callable[[], object]], Any]

# Referenced objects come before those that reference them.
_ORDER = (
    "Namespace",
    "PriorityClass",
    "Topology",
    "ResourceFlavor",
    "ProvisioningRequestConfig",
    "AdmissionCheck",
    "Cohort",
    "ClusterQueue",
)


def program_objects(plan: Plan, register: Register) -> list[KubeObject]:
    """Return the Kubernetes objects that the program declares for a plan on any cloud, in the order in which they can be applied.

    Without the admission policies, of which a cluster has one set: see `admission_objects`.
    """
    found = _declared(lambda: declare_platform_objects(plan, on_lab()), register)
    return [each for each in found if not each["apiVersion"].startswith("admissionregistration.k8s.io/")]


def admission_objects(plan: Plan, register: Register) -> list[KubeObject]:
    """Return the admission policies that the program declares for a plan, and their related objects."""
    return _declared(lambda: declare_admission(plan, on_lab()), register)


def on_lab() -> pulumi.ResourceOptions:
    return pulumi.ResourceOptions(provider=Provider("lab"))


def _declared(declare: Callable[[], object], register: Register) -> list[KubeObject]:
    found = [inputs for token, _, inputs in register(declare).resources if token.startswith("kubernetes:") and "kind" in inputs]
    return sorted(found, key=lambda each: _ORDER.index(each["kind"]) if each["kind"] in _ORDER else len(_ORDER))


def pool_node(plan: Plan, pool: PoolPlan, name: str) -> KubeObject:
    """Return a fake node of a pool, with its machine's vCPU and memory, named `name` with a unique suffix."""
    name = f"{name}-{uuid4().hex[:6]}"
    machine = machines_of_pool(plan, pool)[0]
    amounts = {"cpu": str(machine.vcpu), "memory": f"{machine.memory_mib}Mi", "pods": "110", pool.resource: str(pool.gpus_per_node)}
    fake = {"kwok.x-k8s.io/node": "fake"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**fake, "kubernetes.io/hostname": name, **pool.selector}, "annotations": fake},
        "spec": {"taints": [{"key": each.key, "value": each.value, "effect": each.effect.value} for each in pool.taints]},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def class_job(  # noqa: PLR0913 -- a Job is described by exactly these
    plan: Plan,
    workload_class: str,
    name: str,
    namespace: str,
    *,
    gpus: int = 1,
    pods: int = 1,
    run_time: str = UNTIL_RELEASED,
    annotations: dict[str, str] | None = None,
) -> KubeObject:
    """Return a Job of `pods` pods with `gpus` GPUs each, like a class's Jobs: with its route's priority, affinity and tolerations.

    Each pod runs for `run_time`, a Go duration, by default until it is released.
    """
    amounts = {"cpu": "1", "memory": "1Gi", GPU_RESOURCE: str(gpus)}
    container = {
        "name": "trainer",
        "image": "trainer:1",
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "resources": {"requests": amounts, "limits": amounts},
    }
    run_times = run_time_of_pods(run_time)
    labels = {"kueue.x-k8s.io/queue-name": "default"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace, "labels": labels, "annotations": annotations or {}},
        "spec": {
            "parallelism": pods,
            "completions": pods,
            "backoffLimit": 2,
            "activeDeadlineSeconds": 3600,
            "podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]},
            "template": {
                "metadata": {"annotations": run_times},
                "spec": {
                    "restartPolicy": "Never",
                    "securityContext": {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
                    "containers": [container],
                    **_placement(plan, workload_class, gpus),
                },
            },
        },
    }


def renamed(settings: dict[str, Any], suffix: str) -> Any:
    """Return the settings with the suffix at the name of every pool, team and cohort, wherever it is used."""
    named = [*settings["pools"], *settings["teams"], *settings.get("cohorts", [])]
    names = {each["name"] for each in named} | {settings["cohort"]}

    def rename(value: Any) -> Any:
        if isinstance(value, str):
            return f"{value}-{suffix}" if value in names else value
        if isinstance(value, list):
            return [rename(each) for each in cast("list[Any]", value)]
        if isinstance(value, dict):
            return {rename(key): rename(each) for key, each in cast("dict[str, Any]", value).items()}
        return value

    return rename(settings)


def _placement(plan: Plan, workload_class: str, gpus: int) -> KubeObject:
    route = next(each for each in plan.routes if each.workload_class == workload_class)
    taints = [each for each in route.tolerations if each.key != WHOLE_NODE_TAINT or each.value == str(gpus)]
    tolerations = [{"key": each.key, "operator": "Equal", "value": each.value, "effect": each.effect.value} for each in taints]
    pod: KubeObject = {"priorityClassName": route.priority_class, "nodeSelector": route.node_selector, "tolerations": tolerations}
    if route.node_affinity is not None:
        key, values = route.node_affinity
        terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}]
        pod["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    return pod
