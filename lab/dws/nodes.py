"""The nodes of a provisioned request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.catalog.node_labels import GKE_QUEUED_LABEL, GPU_RESOURCE

if TYPE_CHECKING:
    from lab.cluster import KubeObject

REQUEST_LABEL = "autoscaling.gke.io/provisioning-request"
"""The label by which GKE marks the nodes of a request; its value is the request's ResizeRequestName."""

_FAKE = {"kwok.x-k8s.io/node": "fake"}


def nodes_of(resize_request: str, pod_sets: list[tuple[KubeObject, int]]) -> list[KubeObject]:
    """A fake node for each pod that a request stands for, as large as the pod; `pod_sets` are pod templates and how many pods of each.

    It has the labels that the pod selects, which are those of the pool behind the queue's flavor, and the taints of queued GPU nodes.
    A taint for one class, which a pool may have besides, it has not.
    """
    templates = [template for template, count in pod_sets for _ in range(count)]
    return [_node(f"{resize_request}-{number}", resize_request, template) for number, template in enumerate(templates)]


def _node(name: str, resize_request: str, template: KubeObject) -> KubeObject:
    pod = template["template"]["spec"]
    # One container's worth is enough: an amount for a node need not be exact, only the GPUs are counted.
    gpus = sum(int(each["resources"]["requests"].get(GPU_RESOURCE, 0)) for each in pod["containers"])
    amounts = {"cpu": "208", "memory": "1872Gi", "pods": "110", GPU_RESOURCE: str(gpus)}
    labels = {**_FAKE, **pod.get("nodeSelector", {}), "kubernetes.io/hostname": name, REQUEST_LABEL: resize_request}
    taints = [
        {"key": GPU_RESOURCE, "value": "present", "effect": "NoSchedule"},
        {"key": GKE_QUEUED_LABEL, "value": "true", "effect": "NoSchedule"},
    ]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": _FAKE},
        "spec": {"taints": taints},
        "status": {"capacity": amounts, "allocatable": amounts},
    }
