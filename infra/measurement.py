"""What measures GPUs for reports and dashboards, as the settings say: kube-state-metrics and recording rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi
from pulumi_kubernetes.core.v1 import Namespace
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from capacity.catalog.platform import MEASUREMENT_NAMESPACE
from components.measurement.kube_state_metrics import KubeStateMetrics
from components.measurement.recording_rules import RecordingRules
from components.tenancy.team import restricted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from capacity.plan.model import Plan
    from capacity.settings.spending import Measurement


def declare_measurement(
    plan: Plan,
    wanted: Measurement,
    opts: pulumi.ResourceOptions,
    *,
    node_selector: Mapping[str, str] | None = None,
    tolerations: Sequence[Mapping[str, str]] = (),
) -> None:
    """Registers kube-state-metrics, on the nodes for controllers, unless the cluster has its own; and the recording rules.

    `opts` says which cluster, and after what.
    """
    namespace = Namespace(
        "measurement-namespace",
        metadata=ObjectMetaArgs(name=MEASUREMENT_NAMESPACE, labels={**plan.labels, **restricted()}),
        opts=opts,
    )
    inside = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=[namespace]))
    read_by = wanted.prometheus.value
    if wanted.kube_state_metrics:
        KubeStateMetrics(
            "kube-state-metrics",
            {
                "namespace": MEASUREMENT_NAMESPACE,
                "prometheus": read_by,
                "labels": plan.labels,
                "monitor_labels": wanted.monitor_labels,
                "node_selector": dict(node_selector or {}),
                "tolerations": [dict(each) for each in tolerations],
            },
            inside,
        )
    rules = RecordingRules(
        "recording-rules",
        {"namespace": MEASUREMENT_NAMESPACE, "prometheus": read_by, "labels": plan.labels, "monitor_labels": wanted.monitor_labels},
        inside,
    )
    pulumi.export("recorded_series", rules.series)
