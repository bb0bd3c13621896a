"""A model that answers requests: replicas that roll, drain, spread and scale within what the team may run."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any

from capacity.catalog.node_labels import HOSTNAME_LABEL, ZONE_LABEL
from capacity.workloads.model_cache import mount_model_cache
from capacity.workloads.place import find_place
from capacity.workloads.pods import KubeObject, pod_template
from capacity.workloads.requests import WorkloadType, refuse
from capacity.workloads.services import count_problems, most_gpus, own_labels, selector_of, service_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from capacity.plan.model import Plan
    from capacity.workloads.place import Place
    from capacity.workloads.requests import ModelServerRequest


_CALM_SECONDS = 600
"""How long the load must be low before a replica goes: a new one costs a node's boot and the loading of the model."""


def rolling_update(place: Place, request: ModelServerRequest) -> dict[str, int]:
    """Replaces replicas one by one, in the room that they have.

    An extra pod needs a spare GPU, which is a node to be booted and paid for, and a rollout would hang where the quota has none. So one
    replica goes before its successor comes, unless it is the only one and the team has room for a second.
    """
    alone = request.replicas == 1 and most_gpus(place) >= 2 * request.gpus
    return {"maxSurge": 1, "maxUnavailable": 0} if alone else {"maxSurge": 0, "maxUnavailable": 1}


def spread(selector: Mapping[str, str]) -> list[dict[str, Any]]:
    """Over zones, then over nodes, as far as there are any: a wish, as a reservation is in one zone and a pod that waits serves nobody."""
    return [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": dict(selector)},
            # The pods of the release that goes do not count.
            "matchLabelKeys": ["pod-template-hash"],
        }
        for key in (ZONE_LABEL, HOSTNAME_LABEL)
    ]


def budget(metadata: Mapping[str, Any], selector: Mapping[str, str]) -> KubeObject:
    """At most one replica is evicted at a time, and always one may be: a budget that allows none would keep its nodes for ever.

    A replica that does not get ready may be evicted whatever the count is, as nobody loses anything by it.
    """
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": dict(metadata),
        "spec": {"maxUnavailable": 1, "unhealthyPodEvictionPolicy": "AlwaysAllow", "selector": {"matchLabels": dict(selector)}},
    }


def autoscaler(metadata: Mapping[str, Any], request: ModelServerRequest) -> KubeObject:
    """From `replicas` to `max_replicas`: up at once, down slowly."""
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": dict(metadata),
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": request.name},
            "minReplicas": request.replicas,
            "maxReplicas": request.max_replicas,
            "metrics": [_metric(request)],
            "behavior": {
                "scaleDown": {
                    "stabilizationWindowSeconds": _CALM_SECONDS,
                    "policies": [{"type": "Pods", "value": 1, "periodSeconds": 120}],
                }
            },
        },
    }


def callers_policy(metadata: Mapping[str, Any], selector: Mapping[str, str], request: ModelServerRequest) -> KubeObject:
    """Lets the named namespaces in. The team's own policy lets in its own pods alone; policies add up."""
    namespaces = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": sorted(set(request.callers))}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": dict(metadata),
        "spec": {
            "podSelector": {"matchLabels": dict(selector)},
            "policyTypes": ["Ingress"],
            "ingress": [
                {
                    "from": [{"namespaceSelector": {"matchExpressions": [namespaces]}}],
                    "ports": [{"protocol": "TCP", "port": request.port}],
                }
            ],
        },
    }


def _metric(request: ModelServerRequest) -> KubeObject:
    if request.metric is not None:
        target = {"type": "AverageValue", "averageValue": request.metric_target}
        return {"type": "Pods", "pods": {"metric": {"name": request.metric}, "target": target}}
    return {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": request.cpu_percent}}}


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
    _prefer_earlier_pools(template, place)
    if request.model_cache is not None:
        mount_model_cache(template, place.plan.cloud, request.model_cache, request.model_path, cache_gib=request.model_cache_gib)
    return template


def _get(path: str) -> KubeObject:
    return {"httpGet": {"path": path, "port": PORT_NAME}, "periodSeconds": _PROBE_SECONDS, "timeoutSeconds": 5}


def _prefer_earlier_pools(template: KubeObject, place: Place) -> None:
    """Has the scheduler take a free node of an earlier pool, such as a reserved one, before that of a later one.

    Which *new* node comes first is the autoscaler's decision, which the pools' weights or the compute class make. A compute class takes no
    selectors beside it, and there GKE decides both.
    """
    affinity = place.route.node_affinity
    if affinity is None or len(affinity[1]) < 2:  # noqa: PLR2004 -- one pool leaves no choice
        return
    pools = [route_pool.pool for route_pool in place.route.pools]
    preferred = [
        {"weight": max(1, 100 - 10 * rank), "preference": {"matchExpressions": [{"key": affinity[0], "operator": "In", "values": [pool]}]}}
        for rank, pool in enumerate(pools[:-1])
    ]
    template["spec"]["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
