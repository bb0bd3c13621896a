"""How a model server rolls, spreads, shrinks and grows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from capacity.node_labels import HOSTNAME_LABEL, ZONE_LABEL
from capacity.workloads.service_limits import most_gpus

if TYPE_CHECKING:
    from collections.abc import Mapping

    from capacity.workloads.model_server_request import ModelServerRequest
    from capacity.workloads.place import Place
    from capacity.workloads.pods import KubeObject

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
