"""What KubeStateMetrics may be told."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
from typing import NotRequired, TypedDict


class KubeStateMetricsArgs(TypedDict):
    """Arguments of KubeStateMetrics."""

    namespace: str
    """The namespace of its objects, which exists."""

    prometheus: str
    """Who scrapes it: `managed` (Google's managed service), `operator` (the Prometheus operator), or `annotations`."""

    labels: dict[str, str]
    """Labels of the objects."""

    monitor_labels: NotRequired[dict[str, str]]
    """Further labels of the ServiceMonitor, by which the operator's Prometheus selects it. Default: none."""

    interval_seconds: NotRequired[int]
    """Seconds between two scrapes, 5 to 300; with `annotations` Prometheus decides itself. Default: 60, the report's step."""

    memory: NotRequired[str]
    """Memory, requested and the most, as Kubernetes writes it; more for tens of thousands of pods. Default: 512Mi."""

    node_selector: NotRequired[dict[str, str]]
    """Labels of the nodes for controllers. Default: any node."""

    tolerations: NotRequired[list[dict[str, str]]]
    """Tolerations of those nodes' taints. Default: none."""
