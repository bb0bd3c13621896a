"""A notebook that costs nothing while nobody works in it: a job in the team's queue, or a service that is scaled to zero."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.workloads.jobs import queued_job
from capacity.workloads.notebook_pod import PORT_NAME, notebook_container, with_notebook
from capacity.workloads.notebook_roles import roles
from capacity.workloads.notebook_stay import stay_annotations
from capacity.workloads.notebook_watch import watch_of
from capacity.workloads.place import find_place
from capacity.workloads.pods import KubeObject, pod_template
from capacity.workloads.refusal import refuse
from capacity.workloads.request import WorkloadType
from capacity.workloads.service_limits import count_problems
from capacity.workloads.service_pods import as_job_request, own_labels, relabelled, selector_of, service_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from capacity.plan import Plan
    from capacity.workloads.notebook_request import NotebookRequest
    from capacity.workloads.place import Place

NOTEBOOK = "Notebook"

_NEVER = "0 0 1 1 *"
"""A schedule that a suspended CronJob must have and does not follow."""

_KEPT_SECONDS = 60
"""How long an ended session is kept: the next one has the same name."""


def notebook(plan: Plan, request: NotebookRequest) -> tuple[KubeObject, ...]:
    """Disk, Service, the rights to stop and to start, and what makes the pod, in this order.

    A class that waits in a queue has its notebooks as sessions: a suspended CronJob is the pattern, and each `kubectl create job NAME
    --from=cronjob/NAME` is a Job that the queue admits, that ends when idle and gives its quota back. Queues take no Deployments. Without a
    queue it is a Deployment of one pod, which `kubectl scale` starts. Raises WorkloadError for a request that has no place.
    """
    place = find_place(plan, request, NOTEBOOK)
    if place.queue is None:
        refuse(f"{NOTEBOOK} {request.name}", count_problems(place, "gpus", 1, request.gpus))
        maker = _deployment(place, request)
        template = maker["spec"]["template"]
    else:
        maker = _sessions(plan, request)
        template = maker["spec"]["jobTemplate"]["spec"]["template"]
    if stay := stay_annotations(place):
        template["metadata"].setdefault("annotations", {}).update(stay)
    labels = own_labels(template)
    return (
        _home(place, request, labels),
        service_of(request.name, place.namespace, labels, selector_of(request.name, WorkloadType.NOTEBOOK), PORT_NAME),
        *roles(place, request.name, labels),
        maker,
    )


def _sessions(plan: Plan, request: NotebookRequest) -> KubeObject:
    as_job = as_job_request(notebook_container(request), keep_seconds=_KEPT_SECONDS)
    [made] = queued_job(plan, as_job)
    job = relabelled(made, WorkloadType.NOTEBOOK)
    with_notebook(job["spec"]["template"], request, watch_of(request))
    metadata = job["metadata"]
    own = {name: value for name, value in metadata.items() if name not in {"name", "namespace"}}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": request.name, "namespace": metadata["namespace"], "labels": own_labels(job["spec"]["template"])},
        "spec": {
            "suspend": True,
            "schedule": _NEVER,
            "concurrencyPolicy": "Forbid",
            "jobTemplate": {"metadata": own, "spec": job["spec"]},
        },
    }


def _deployment(place: Place, request: NotebookRequest) -> KubeObject:
    template = pod_template(place, notebook_container(request), WorkloadType.NOTEBOOK)
    with_notebook(template, request, watch_of(request, place))
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": request.name, "namespace": place.namespace, "labels": own_labels(template)},
        "spec": {
            # It is made asleep. An apply by kubectl puts it to sleep again; the component leaves the number alone.
            "replicas": 0,
            "selector": {"matchLabels": selector_of(request.name, WorkloadType.NOTEBOOK)},
            # The disk is attached to one node: the old pod goes first.
            "strategy": {"type": "Recreate"},
            "revisionHistoryLimit": 1,
            "template": template,
        },
    }


def _home(place: Place, request: NotebookRequest, labels: Mapping[str, str]) -> KubeObject:
    storage_class = {} if request.storage_class is None else {"storageClassName": request.storage_class}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": f"{request.name}-home", "namespace": place.namespace, "labels": dict(labels)},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            **storage_class,
            "resources": {"requests": {"storage": f"{request.home_gib}Gi"}},
        },
    }
