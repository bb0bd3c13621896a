"""DcgmExporter: pods on every node with NVIDIA GPUs, and discovery by each kind of Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml
from chart_values import unknown_values

from flexspot.components.eks.addons import DcgmExporter, DcgmExporterArgs

if TYPE_CHECKING:
    from component_types import Refusal, Register

RELEASE = "kubernetes:helm.sh/v3:Release"

CHART_VALUES = yaml.safe_load(
    """
    securityContext: {runAsNonRoot: false, runAsUser: 0, capabilities: {add: [SYS_ADMIN]}}
    service: {enable: true, type: ClusterIP, internalTrafficPolicy: Cluster, clusterIP: "", port: 9400, address: ":9400", annotations: {}}
    resources: {}
    serviceMonitor:
      {apiVersion: monitoring.coreos.com/v1, enabled: true, interval: 15s, honorLabels: false, additionalLabels: {}, relabelings: []}
    nodeSelector: {}
    tolerations: []
    affinity: {}
    """
)
"""Values of NVIDIA's chart that this component sets: deployment/values.yaml of NVIDIA/dcgm-exporter at 9190a38."""


def args(**changes: Any) -> DcgmExporterArgs:
    return {"prometheus": "annotations"} | changes  # pyrefly: ignore[bad-return] -- a test's own


def release(register: Register, **changes: Any) -> dict[str, Any]:
    [made] = register(lambda: DcgmExporter("dcgm", args(**changes))).of(RELEASE)
    return made


@pytest.mark.parametrize("prometheus", ["annotations", "operator"])
def test_the_chart_has_every_value_that_it_is_given(prometheus: str, register: Register) -> None:
    assert unknown_values(release(register, prometheus=prometheus)["values"], CHART_VALUES) == []


def test_it_runs_on_every_node_with_nvidia_gpus_and_prometheus_finds_it_by_annotations(register: Register) -> None:
    made = release(register)
    values = made["values"]

    assert (made["chart"], made["version"], made["namespace"], made["atomic"]) == ("dcgm-exporter", "4.8.4", "kube-system", True)
    assert values["tolerations"] == [{"operator": "Exists"}]
    [term] = values["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    [label] = term["matchExpressions"]
    assert label == {"key": "karpenter.k8s.aws/instance-gpu-manufacturer", "operator": "In", "values": ["nvidia"]}
    assert values["securityContext"]["capabilities"] == {"add": ["SYS_ADMIN"]}
    assert values["resources"]["requests"].keys() == {"cpu", "memory"}
    # More than the observed memory of an exporter of eight GPUs.
    assert values["resources"]["limits"]["memory"] == "1Gi"
    assert values["service"]["annotations"] == {"prometheus.io/scrape": "true", "prometheus.io/port": "9400"}
    assert values["serviceMonitor"] == {"enabled": False}


def test_the_operator_finds_it_by_a_monitor_with_its_labels_and_keeps_the_pods_names(register: Register) -> None:
    values = release(register, prometheus="operator", monitor_labels={"release": "prometheus"})["values"]

    assert values["serviceMonitor"] == {
        "enabled": True,
        "interval": "60s",
        "honorLabels": True,
        "additionalLabels": {"release": "prometheus"},
    }
    assert values["service"]["annotations"] == {}


@pytest.mark.parametrize(
    "changes,problem",
    [
        ({"prometheus": "datadog"}, "prometheus (is datadog): must be one of managed, operator, annotations"),
        (
            {"prometheus": "managed"},
            "prometheus (is managed): is Google's service, which reads nothing on EKS; use operator or annotations",
        ),
        (
            {"monitor_labels": {"release": "prometheus"}},
            "monitor_labels: with prometheus annotations nothing selects by them; leave them out",
        ),
    ],
)
def test_monitor_labels_that_nothing_reads_are_refused(changes: dict[str, Any], problem: str, refusal: Refusal) -> None:
    assert problem in refusal(DcgmExporter, "dcgm", args(**changes))
