"""Small changes to the templates and objects of the core, for what services need beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from capacity.workloads.job_request import JobRequest
from capacity.workloads.names import NAME_LABEL, WORKLOAD_TYPE_LABEL
from capacity.workloads.request import WorkloadRequest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from capacity.workloads.pods import KubeObject
    from capacity.workloads.request import WorkloadType


def as_job_request(request: WorkloadRequest, **more: Any) -> JobRequest:
    """The same request as one for a job; `more` are fields that only jobs have, or other values."""
    shared = {name: getattr(request, name) for name in WorkloadRequest.model_fields}
    return JobRequest.model_validate({**shared, **more})


def relabelled(job: KubeObject, sort: WorkloadType) -> KubeObject:
    """A Job of the core whose labels, and those of its pods, say that it is work of another sort."""
    for metadata in (job["metadata"], job["spec"]["template"]["metadata"]):
        metadata["labels"] = {**metadata["labels"], WORKLOAD_TYPE_LABEL: sort.value}
    return job


def selector_of(name: str, sort: WorkloadType) -> dict[str, str]:
    """The labels by which a Service, a budget or a Deployment finds the pods of one workload."""
    return {NAME_LABEL: name, WORKLOAD_TYPE_LABEL: sort.value}


def own_labels(template: KubeObject) -> dict[str, str]:
    """The labels of a template's pods, for the objects around them."""
    return dict(template["metadata"]["labels"])


def with_mounts(
    template: KubeObject,
    volumes: Sequence[Mapping[str, Any]],
    mounts: Sequence[Mapping[str, Any]],
    annotations: Mapping[str, str] | None = None,
) -> KubeObject:
    """The template with further volumes, mounted by the workload's own container, which stands first."""
    spec = template["spec"]
    main = spec["containers"][0]
    spec["volumes"] = [*spec.get("volumes", []), *(dict(each) for each in volumes)]
    main["volumeMounts"] = [*main.get("volumeMounts", []), *(dict(each) for each in mounts)]
    if annotations:
        template["metadata"]["annotations"] = {**template["metadata"].get("annotations", {}), **annotations}
    return template


def service_of(name: str, namespace: str, labels: Mapping[str, str], selector: Mapping[str, str], port_name: str) -> KubeObject:
    """A Service inside the cluster, on port 80, of the pods' port of that name. Nothing is open to the outside."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels)},
        "spec": {
            "type": "ClusterIP",
            "selector": dict(selector),
            "ports": [{"name": port_name, "port": 80, "targetPort": port_name, "protocol": "TCP"}],
        },
    }
