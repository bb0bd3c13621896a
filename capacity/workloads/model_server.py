"""A model that answers requests: replicas that roll, drain, spread and scale within what the team may run."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from capacity.workloads.model_cache_mount import mount_model_cache
from capacity.workloads.model_server_scaling import autoscaler, budget, callers_policy, rolling_update, spread
from capacity.workloads.place import find_place
from capacity.workloads.pods import KubeObject, pod_template
from capacity.workloads.refusal import refuse
from capacity.workloads.request import WorkloadType
from capacity.workloads.service_limits import count_problems
from capacity.workloads.service_pods import own_labels, selector_of, service_of

if TYPE_CHECKING:
    from capacity.plan import Plan
    from capacity.workloads.model_server_request import ModelServerRequest
    from capacity.workloads.place import Place

MODEL_SERVER = "ModelServer"

PORT_NAME = "http"

_NODE_SECONDS = 1800
"""Until a GPU node has booted, has its driver and has pulled a large image. Kubernetes' own patience with a rollout is 600."""

_PROBE_SECONDS = 10


def model_server(plan: Plan, request: ModelServerRequest) -> tuple[KubeObject, ...]:
    """Service, Deployment, PodDisruptionBudget, and where asked for HorizontalPodAutoscaler and NetworkPolicy, in this order.

    Its class waits in no queue, as a service would never give quota back. Raises WorkloadError for a request that has no place, for more
    replicas than the team may run, and for a drain that leaves nothing of the grace period.
    """
    place = find_place(plan, request, MODEL_SERVER, queued=False)
    most = request.max_replicas or request.replicas
    path = "replicas" if request.max_replicas is None else "max_replicas"
    refuse(f"{MODEL_SERVER} {request.name}", count_problems(place, path, most, request.gpus))
    template = _template(place, request)
    labels, selector = own_labels(template), selector_of(request.name, WorkloadType.SERVING)
    scaled = most > request.replicas
    metadata = {"name": request.name, "namespace": place.namespace, "labels": labels}
    deployment: KubeObject = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {
            # Left out where the autoscaler sets it: each later apply would take back what it has decided.
            **({} if scaled else {"replicas": request.replicas}),
            "selector": {"matchLabels": selector},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling_update(place, request)},
            "progressDeadlineSeconds": request.start_seconds + _NODE_SECONDS,
            "revisionHistoryLimit": 3,
            "template": template,
        },
    }
    return (
        service_of(request.name, place.namespace, labels, selector, PORT_NAME),
        deployment,
        budget(metadata, selector),
        *((autoscaler(metadata, request),) if scaled else ()),
        *((callers_policy(metadata, selector, request),) if request.callers else ()),
    )


def _template(place: Place, request: ModelServerRequest) -> KubeObject:
    ready, live = request.ready_path, request.live_path or request.ready_path
    template = pod_template(
        place,
        request,
        WorkloadType.SERVING,
        pre_stop_seconds=request.drain_seconds,
        container={
            "ports": [{"name": PORT_NAME, "containerPort": request.port, "protocol": "TCP"}],
            # The other two wait for it, so that a model that takes long to load is not restarted while it does.
            "startupProbe": {**_get(ready), "failureThreshold": ceil(request.start_seconds / _PROBE_SECONDS)},
            "readinessProbe": {**_get(ready), "failureThreshold": 3},
            # A restart loads the model again: a minute of trouble is not yet worth that.
            "livenessProbe": {**_get(live), "failureThreshold": 6},
        },
        spec={"topologySpreadConstraints": spread(selector_of(request.name, WorkloadType.SERVING))},
    )
    _prefer_earlier_rungs(template, place)
    if request.model_cache is not None:
        mount_model_cache(template, place.plan.cloud, request.model_cache, request.model_path, cache_gib=request.model_cache_gib)
    return template


def _get(path: str) -> KubeObject:
    return {"httpGet": {"path": path, "port": PORT_NAME}, "periodSeconds": _PROBE_SECONDS, "timeoutSeconds": 5}


def _prefer_earlier_rungs(template: KubeObject, place: Place) -> None:
    """Has the scheduler take a free node of an earlier rung, such as a reserved one, before that of a later one.

    Which *new* node comes first is the autoscaler's decision, which the pools' weights or the compute class make. A compute class takes no
    selectors beside it, and there GKE decides both.
    """
    affinity = place.route.node_affinity
    if affinity is None or len(affinity[1]) < 2:  # noqa: PLR2004 -- one pool leaves no choice
        return
    pools = [rung.pool for rung in place.route.rungs]
    preferred = [
        {"weight": max(1, 100 - 10 * rank), "preference": {"matchExpressions": [{"key": affinity[0], "operator": "In", "values": [pool]}]}}
        for rank, pool in enumerate(pools[:-1])
    ]
    template["spec"]["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
