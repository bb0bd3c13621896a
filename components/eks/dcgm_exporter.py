"""NVIDIA's DCGM exporter: how busy the GPUs of Karpenter's nodes are, by pod."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
from typing import Any, NotRequired, TypedDict

import pulumi

from capacity.catalog.node_labels import KARPENTER_INSTANCE
from capacity.catalog.platform import PrometheusKind
from capacity.catalog.versions import Chart, shipped_versions
from capacity.values.names import CHART_VERSION
from components.cloud_names import check_form
from components.eks.addons import on_nvidia_gpus
from components.helm_release import chart_release
from components.measurement import INTERVAL_SECONDS, checked_kind

REPOSITORY = "https://nvidia.github.io/dcgm-exporter/helm-charts"
PORT = 9400

RESOURCES = {"requests": {"cpu": "100m", "memory": "512Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
"""More than the chart's own limit of 512 MiB, under which exporters of machines with eight GPUs are ended: they have 417 to 511 MiB at rest
(pytorch/ci-infra issue 1011, which went to 1 GiB). The chart's 200m of CPU would make scrapes of such machines late (NVIDIA/dcgm-exporter
pull request 741)."""


class DcgmExporterArgs(TypedDict):
    """Arguments of DcgmExporter."""

    prometheus: str
    """Which Prometheus scrapes it: `operator` (the Prometheus Operator), or `annotations`."""

    monitor_labels: NotRequired[dict[str, str]]
    """Additional labels of the ServiceMonitor, by which the operator's Prometheus selects it. Default: none."""

    instance_labels: NotRequired[str]
    """Prefix of the label keys with which Karpenter describes a machine; eks.amazonaws.com/instance- in Auto Mode. Default:
    karpenter.k8s.aws/instance-."""

    version: NotRequired[str | None]
    """Chart version. Default: that of capacity/catalog/versions.yaml."""


class DcgmExporter(pulumi.ComponentResource):
    """NVIDIA's DCGM exporter on nodes with NVIDIA GPUs that Karpenter launches, and the object that has Prometheus scrape it.

    It tolerates every taint, requests no GPU, and sees all GPUs of a node through the nodes' default runtime, which is NVIDIA's on both
    images (AL2023 and Bottlerocket). It has the capability SYS_ADMIN: without it there are no profiling series, and on Bottlerocket no
    series at all (bottlerocket-os/bottlerocket issue 3992). It therefore runs in kube-system and not beside kube-state-metrics, where Pod
    Security is `restricted`.

    EKS's node monitoring agent runs its own DCGM engine on the same nodes. Only one engine per node can read profiling series
    (DCGM_FI_PROF_*) (aws/eks-node-monitoring-agent issue 256). The agent reads none; another exporter, such as the GPU operator's or the
    CloudWatch add-on's, takes them away from this one.

    Raises ValueError for an unknown `prometheus`, for Google's, and for monitor labels that nothing would read. The chart was not installed
    here: its values are those of its repository.
    """

    version: pulumi.Output[str]
    """The version of the chart and the exporter, known once the release is there."""

    def __init__(self, name: str, args: DcgmExporterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        where = f"DcgmExporter {name}"
        prometheus, labels = checked_kind(where, args["prometheus"]), args.get("monitor_labels", {})
        if prometheus is PrometheusKind.MANAGED:
            raise ValueError(
                f"{where}: prometheus is {prometheus}, Google's service, which reads nothing on EKS; use operator or annotations"
            )
        if labels and prometheus is not PrometheusKind.OPERATOR:
            raise ValueError(f"{where}: monitor_labels are given; with prometheus {prometheus} nobody selects by them; leave them out")
        version = args.get("version") or shipped_versions().chart(Chart.DCGM_EXPORTER).version
        check_form(f"{where}: version", version, CHART_VERSION)
        super().__init__("flexspot:index:DcgmExporter", name, {**args}, opts)
        child = pulumi.ResourceOptions(parent=self)
        release = chart_release(
            f"{name}-release",
            Chart.DCGM_EXPORTER.value,
            version,
            _values(prometheus, labels, args.get("instance_labels", KARPENTER_INSTANCE)),
            child,
            repository=REPOSITORY,
        )
        self.version = release.id.apply(lambda _: version)
        self.register_outputs({"version": self.version})


def _values(prometheus: PrometheusKind, monitor_labels: dict[str, str], instance_labels: str) -> dict[str, Any]:
    by_operator = prometheus is PrometheusKind.OPERATOR
    found = {"prometheus.io/scrape": "true", "prometheus.io/port": str(PORT)}
    # The chart has a monitor by default, whose kind is the operator's: without it the release would fail.
    monitor: dict[str, Any] = {"enabled": by_operator}
    if by_operator:
        # `honorLabels`: the pod that holds the GPU, and not the exporter's own.
        monitor |= {"interval": f"{INTERVAL_SECONDS}s", "honorLabels": True, "additionalLabels": monitor_labels}
    return {
        "affinity": on_nvidia_gpus(instance_labels),
        "tolerations": [{"operator": "Exists"}],
        "securityContext": {"runAsNonRoot": False, "runAsUser": 0, "capabilities": {"add": ["SYS_ADMIN"]}},
        "resources": RESOURCES,
        "service": {"annotations": {} if by_operator else found},
        "serviceMonitor": monitor,
    }
