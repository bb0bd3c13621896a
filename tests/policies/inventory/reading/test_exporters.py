"""Exporters, and the labels that they add."""

from __future__ import annotations

from typing import Any

import pytest
from manifests import manifest, views

from flexspot.policies.inventory.objects import Exporter
from flexspot.policies.values.field import UNKNOWN

RELEASE = "kubernetes:helm.sh/v3:Release"


def monitor(kind: str = "ServiceMonitor", name: str = "dcgm-exporter", group: str = "monitoring.coreos.com", **spec: Any) -> list[Exporter]:
    return views(Exporter, manifest(f"{group}/v1", kind, spec, name=name))


def release(chart: str, **values: Any) -> list[Exporter]:
    return views(Exporter, (RELEASE, {"chart": chart, "values": values}))


UTIL = "DCGM_FI_DEV_GPU_UTIL"


def test_a_monitor_adds_relabeled_and_honored_labels() -> None:
    [plain] = monitor(endpoints=[{"port": "metrics"}])
    [named] = monitor(endpoints=[{"relabelings": [{"targetLabel": "node"}]}, {"metricRelabelings": [{"targetLabel": "team"}]}])
    [honoring] = monitor(endpoints=[{"honorLabels": True}])
    [of_service] = monitor(targetLabels=["zone"], endpoints=[])

    assert not plain.gives(UTIL, "node")
    assert [named.gives(UTIL, label) for label in ("node", "team", "namespace")] == [True, True, False]
    assert honoring.gives(UTIL, "namespace")
    assert of_service.gives(UTIL, "zone")
    assert plain.complete
    assert not plain.gives("kube_pod_info", "node")


def test_googles_collector_adds_the_node_if_it_is_configured_to() -> None:
    def google(kind: str, *metadata: str) -> Exporter:
        [found] = monitor(kind, "gpus-dcgm", "monitoring.googleapis.com", endpoints=[{}], targetLabels={"metadata": list(metadata)})
        return found

    assert google("PodMonitoring", "node", "pod").gives(UTIL, "node")
    assert not google("PodMonitoring", "node", "pod").gives(UTIL, "pod"), "the label is the exporter's"
    assert google("ClusterPodMonitoring").gives(UTIL, "pod"), "configured to set none, it keeps the exporter's labels"
    assert not google("PodMonitoring").gives(UTIL, "pod")


@pytest.mark.parametrize(
    "endpoint",
    [
        {"honorLabels": UNKNOWN},
        {"relabelings": UNKNOWN},
        {"relabelings": [{"targetLabel": UNKNOWN}]},
        {"relabelings": [{"action": "labelmap", "regex": "(.+)"}]},
    ],
)
def test_a_monitor_that_may_add_more_is_not_complete(endpoint: dict[str, Any]) -> None:
    assert [each.complete for each in monitor(endpoints=[endpoint])] == [False]


def test_monitors_of_other_programs_are_none_of_these() -> None:
    assert monitor(name="kueue", selector={"matchLabels": {"app": "kueue"}}, endpoints=[{}]) == []
    assert [each.program for each in monitor(name="gpus", selector={"matchLabels": {"app": "nvidia-dcgm-exporter"}})] == ["dcgm-exporter"]


@pytest.mark.parametrize(
    "written,series,label,given",
    [
        ("nodes=[karpenter.sh/capacity-type]", "kube_node_labels", "label_karpenter_sh_capacity_type", True),
        ("nodes=[nvidia.com/gpu.present,team]", "kube_node_labels", "label_team", True),
        ("nodes=[nodeRole]", "kube_node_labels", "label_node_role", True),
        ("pods=[*]", "kube_pod_labels", "label_whatever", True),
        ("*=[team]", "kube_namespace_labels", "label_team", True),
        ("pods=[*]", "kube_node_labels", "label_team", False),
        ("nodes=[team]", "kube_node_labels", "label_teams", False),
        ("nodes=[team]", "kube_node_annotations", "annotation_team", False),
    ],
)
def test_kube_state_metrics_shows_the_labels_of_its_allowlist(written: str, series: str, label: str, given: object) -> None:
    image = "registry.k8s.io/kube-state-metrics/kube-state-metrics:v2.20.0"
    containers = [{"name": "ksm", "image": image, "args": [f"--metric-labels-allowlist={written}", "--port=8080"]}]
    [run] = views(Exporter, manifest("apps/v1", "Deployment", {"template": {"spec": {"containers": containers}}}))
    [charted] = release("kube-state-metrics", metricLabelsAllowlist=[written])
    [stacked] = release(
        "oci://ghcr.io/prometheus-community/charts/kube-prometheus-stack", **{"kube-state-metrics": {"extraArgs": containers[0]["args"]}}
    )

    assert {each.gives(series, label) for each in (run, charted, stacked)} == {given}
    assert all(each.complete for each in (run, charted, stacked))


def test_a_chart_with_values_elsewhere_is_not_complete() -> None:
    inputs: dict[str, Any] = {"chart": "kube-state-metrics", "values": {}, "valueYamlFiles": [{"path": "values.yaml"}]}

    assert [each.complete for each in views(Exporter, (RELEASE, inputs))] == [False]
    assert [each.complete for each in release("kube-state-metrics", metricAnnotationsAllowList=UNKNOWN)] == [False]


def test_charts_of_dcgm_scrape_it_if_their_monitor_is_on() -> None:
    relabeling = {"relabelings": [{"targetLabel": "node"}]}

    assert [each.gives(UTIL, "node") for each in release("dcgm-exporter", serviceMonitor=relabeling)] == [True]
    assert release("dcgm-exporter", serviceMonitor={"enabled": False}) == []
    assert release("gpu-operator", dcgmExporter={"serviceMonitor": relabeling}) == []
    assert len(release("gpu-operator", dcgmExporter={"serviceMonitor": {"enabled": True}})) == 1
    assert release("grafana") == []
