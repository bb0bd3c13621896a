"""What has kube-state-metrics scraped with the labels that it gives, by Google's managed service or the Prometheus operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from capacity.catalog.platform import PrometheusKind
from components.measurement.exporter_pods import NAME, PORT_NAME, SELECTED
from components.measurement.prometheus_kinds import GOOGLE_API, OPERATOR_API

if TYPE_CHECKING:
    import pulumi

    from components.measurement.kube_state_metrics_args import KubeStateMetricsArgs

MONITORING = "flexspot-kube-state-metrics"
"""Google's object is cluster-wide, and others may have one of the exporter's own name."""

INTERVAL_SECONDS = 60
"""The report's own step."""


def scraped(name: str, args: KubeStateMetricsArgs, prometheus: PrometheusKind, opts: pulumi.ResourceOptions) -> None:
    """Registers the object that says so; none where Prometheus looks for annotations."""
    interval = f"{args.get('interval_seconds', INTERVAL_SECONDS)}s"
    if prometheus is PrometheusKind.MANAGED:
        CustomResource(
            f"{name}-monitoring",
            api_version=GOOGLE_API,
            # Not PodMonitoring, which overwrites the label `namespace` (prometheus-engine, pkg/operator/apis/monitoring/v1/pod_types.go).
            kind="ClusterPodMonitoring",
            metadata=ObjectMetaArgs(name=MONITORING, labels=args["labels"]),
            spec={
                "selector": {"matchLabels": SELECTED},
                "endpoints": [{"port": PORT_NAME, "interval": interval}],
                # Empty, and not left out: then no label of the exporter's own pod takes the place of a pod's.
                "targetLabels": {"metadata": []},
            },
            opts=opts,
        )
    elif prometheus is PrometheusKind.OPERATOR:
        CustomResource(
            f"{name}-monitor",
            api_version=OPERATOR_API,
            kind="ServiceMonitor",
            metadata=ObjectMetaArgs(name=NAME, namespace=args["namespace"], labels={**args["labels"], **args.get("monitor_labels", {})}),
            spec={
                "selector": {"matchLabels": SELECTED},
                "endpoints": [{"port": PORT_NAME, "interval": interval, "honorLabels": True}],
            },
            opts=opts,
        )
