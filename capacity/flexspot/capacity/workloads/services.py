"""What services need beside the core: how many pods a team can have of one, and small changes to templates and objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flexspot.capacity.catalog.work_labels import WORKLOAD_TYPE_LABEL
from flexspot.capacity.values.errors import SettingsProblem
from flexspot.capacity.workloads.requests import NAME_LABEL, JobRequest, WorkloadRequest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from flexspot.capacity.workloads.place import Place
    from flexspot.capacity.workloads.pods import KubeObject
    from flexspot.capacity.workloads.requests import WorkloadType


def most_gpus(place: Place) -> int:
    """GPUs that the team can hold at once for work of this class: what it may run without a queue, or what its queue can give it.

    Each pod of a service is a decision of its own, so the flavors of a queue add up.
    """
    if place.queue is None:
        return place.team.most_unqueued(place.route.resource)
    flavors = {route_pool.flavor for route_pool in place.route.pools}
    return min(place.team.most(place.route.resource), sum(place.most_of(quota) for quota in place.quotas if quota.flavor in flavors))


def count_problems(place: Place, path: str, pods: int, gpus: int) -> list[SettingsProblem]:
    """What is wrong with so many pods of so many GPUs: the namespace's quota, or the queue, would never let the last ones start."""
    most = most_gpus(place)
    if pods * gpus <= most:
        return []
    where = "unqueued" if place.queue is None else "shares"
    problem = f"with {gpus} GPU(s) each is {pods * gpus} GPUs, and team {place.team.name} can have {most} for class "
    remedy = f"{most // gpus} at most, or give the team more in teams.{where}"
    return [SettingsProblem(path, str(pods), problem + place.route.workload_class, remedy)]


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
