"""The largest objects that somebody sensible might send to an API server with the admission policies. Not a test."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from tenancy_ground import SAFE_CONTAINER, SAFE_POD

from capacity.catalog.node_labels import GPU_RESOURCE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.cluster import KubeObject

CONTAINERS, VARIABLES, MOUNTS = 20, 100, 60
"""Of a pod, of a container and of a container."""

SERVICES = "gpu-production"
"""The priority of work that does not wait in queues."""

MANY = 200
"""Containers of a pod that asks a lot of whatever runs it."""


def saving_pod(containers: int = CONTAINERS, variables: int = VARIABLES, mounts: int = MOUNTS, *, nested: bool = False) -> KubeObject:
    """A pod in which each variable of each container says that checkpoints are written to a mount, all of which outlive it.

    The mounts are beside one another, or each is below the one before.
    """
    paths = ["/data" + "/part" * (number if nested else 1) + f"-{number}" * (not nested) for number in range(mounts)]
    each = {
        "image": "registry.example.com/team/trainer:1.2",
        "env": [
            # A place that the last mount decides: all others are looked at before.
            {"name": f"part{number}.CHECKPOINT_DIR", "value": f"{paths[-1 - number % 5]}/run-{number}"}
            for number in range(variables)
        ],
        "args": [f"--option-{number}=/value/{number}" for number in range(60)],
        "volumeMounts": [{"name": f"volume-{number}", "mountPath": path} for number, path in enumerate(paths)],
        "resources": {"limits": {GPU_RESOURCE: "1"}},
        "securityContext": SAFE_CONTAINER,
    }
    volumes = [{"name": f"volume-{number}", "persistentVolumeClaim": {"claimName": f"claim-{number}"}} for number in range(mounts)]
    named = [{"name": f"container-{number}", **copy.deepcopy(each)} for number in range(containers)]
    return {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 15,
        "securityContext": SAFE_POD,
        "priorityClassName": "gpu-training",
        "volumes": volumes,
        "containers": named,
    }


def losing_pod(*, nested: bool = False) -> KubeObject:
    """The same, but the last variable of the last container names the last mount, which ends with the pod."""
    pod = saving_pod(nested=nested)
    last = pod["volumes"][-1]
    last.clear()
    last.update({"name": f"volume-{MOUNTS - 1}", "emptyDir": {}})
    path = pod["containers"][0]["volumeMounts"][-2]["mountPath"]
    for container in pod["containers"]:
        for number, variable in enumerate(container["env"]):
            variable["value"] = f"{path}/run-{number}"
    pod["containers"][-1]["env"][-1]["value"] = f"{pod['containers'][0]['volumeMounts'][-1]['mountPath']}/run"
    return pod


def job(namespace: str, pod: KubeObject) -> KubeObject:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "large", "namespace": namespace, "labels": {"kueue.x-k8s.io/queue-name": "default"}},
        "spec": {"suspend": True, "backoffLimit": 6, "activeDeadlineSeconds": 3600, "template": {"spec": pod}},
    }


def ray_job(namespace: str, pod: KubeObject, groups: int = 1) -> KubeObject:
    """Of a head without GPUs, and of groups of workers."""
    head = {"containers": [{"name": "head", "image": "head:1", "securityContext": SAFE_CONTAINER}], "securityContext": SAFE_POD}
    worker = {"template": {"spec": {**pod, "priorityClassName": SERVICES}}}
    cluster = {"headGroupSpec": {"template": {"spec": head}}, "workerGroupSpecs": [worker] * groups}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": "large", "namespace": namespace},
        "spec": {"rayClusterSpec": cluster},
    }


def notebook(namespace: str, pod: KubeObject) -> KubeObject:
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "Notebook",
        "metadata": {"name": "large", "namespace": namespace},
        "spec": {"template": {"spec": {**pod, "priorityClassName": SERVICES}}},
    }


def particular_pod() -> KubeObject:
    """A pod that says at length where it may run."""
    machines = [f"g{number % 9}.{number}xlarge" for number in range(60)]
    expressions = [{"key": key, "operator": "In", "values": machines} for key in ("node.kubernetes.io/instance-type", "acme.com/machine")]
    terms = [{"matchExpressions": [*expressions, {"key": f"acme.com/{number}", "operator": "Exists"}]} for number in range(10)]
    tolerations = [{"key": f"acme.com/{number}", "operator": "Equal", "value": "yes", "effect": "NoSchedule"} for number in range(50)]
    pod = saving_pod(CONTAINERS, 10, 10)
    return {
        **pod,
        "nodeSelector": {f"acme.com/label-{number}": "yes" for number in range(30)},
        "tolerations": tolerations,
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}},
    }


def of_every_kind(namespace: str) -> Iterator[KubeObject]:
    """Large objects of kinds for which policies are asked, such as keep the rules and such as do not."""
    for pod in (saving_pod(), saving_pod(nested=True), losing_pod(), losing_pod(nested=True), particular_pod()):
        yield from (job(namespace, pod), ray_job(namespace, pod), notebook(namespace, pod))
        metadata = {"name": "large", "namespace": namespace}
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**pod, "priorityClassName": ""}}
        nested = {"jobTemplate": {"spec": job(namespace, pod)["spec"]}, "schedule": "0 4 * * *"}
        yield {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": nested}
        template = {"metadata": {"labels": {"app": "large"}}, "spec": {**pod, "restartPolicy": "Always", "priorityClassName": SERVICES}}
        served = {"selector": {"matchLabels": {"app": "large"}}, "template": template}
        yield {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": served}
    many = saving_pod(MANY, 20, 10)
    yield from (ray_job(namespace, many), notebook(namespace, many), ray_job(namespace, saving_pod(4, 20, 10), groups=40))
    keys = {f"requests.nvidia.com/mig-{number}g.10gb": "1" for number in range(MANY)}
    yield of_namespace("ResourceQuota", namespace, {"hard": {**keys, **{f"limits.acme.com/{number}": "1" for number in range(MANY)}}})
    most = {f"nvidia.com/mig-{number}g.10gb": "1" for number in range(MANY)}
    items = [{"type": "Container", "max": most, "default": most}, {"type": "Pod", "max": most}]
    yield of_namespace("LimitRange", namespace, {"limits": items})


def of_namespace(kind: str, namespace: str, spec: dict[str, Any]) -> KubeObject:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "large", "namespace": namespace}, "spec": spec}
