"""KubeStateMetrics: its permissions, its series, its pods, and the objects by which Prometheus scrapes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from measured_objects import LEAST, exporter

from flexspot.capacity.chargeback.queries import NODE_LABELS, OWNER_LABELS, WORK_LABELS, allow_list
from flexspot.components.measurement import KubeStateMetrics

if TYPE_CHECKING:
    from component_types import Outputs, Refusal, Register


ROLE = "kubernetes:rbac.authorization.k8s.io/v1:ClusterRole"
BINDING = "kubernetes:rbac.authorization.k8s.io/v1:ClusterRoleBinding"
DEPLOYMENT = "kubernetes:apps/v1:Deployment"
SERVICE = "kubernetes:core/v1:Service"
GOOGLES = "kubernetes:monitoring.googleapis.com/v1:ClusterPodMonitoring"
OPERATORS = "kubernetes:monitoring.coreos.com/v1:ServiceMonitor"


def pod(register: Register, **args: Any) -> dict[str, Any]:
    """Return the spec of the exporter's pods."""
    [deployment] = exporter(register, **args).of(DEPLOYMENT)
    return deployment["spec"]["template"]["spec"]


def test_it_lists_nodes_namespaces_and_pods_and_sees_nothing_else(register: Register) -> None:
    made = exporter(register)

    [role], [binding] = made.of(ROLE), made.of(BINDING)
    assert role["rules"] == [{"apiGroups": [""], "resources": ["namespaces", "nodes", "pods"], "verbs": ["list", "watch"]}]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "kube-state-metrics", "namespace": "measuring"}]


def test_it_exports_the_labels_and_the_series_that_the_report_reads(register: Register) -> None:
    [container] = pod(register)["containers"]
    shown = dict(each.split("=", 1) for each in container["args"])

    assert shown["--resources"] == "namespaces,nodes,pods"
    assert f"--metric-labels-allowlist={shown['--metric-labels-allowlist']}" == allow_list()
    assert all(key in shown["--metric-labels-allowlist"] for key in (*NODE_LABELS, *OWNER_LABELS, *WORK_LABELS))
    assert shown["--metric-allowlist"].split(",") == [
        "kube_namespace_labels",
        "kube_node_info",
        "kube_node_labels",
        "kube_node_status_capacity",
        "kube_pod_container_resource_requests",
        "kube_pod_labels",
        "kube_pod_owner",
        "kube_pod_status_phase",
    ]


def test_its_pods_fit_into_a_restricted_namespace_and_have_limits(register: Register) -> None:
    spec = pod(register, memory="1Gi")
    [container] = spec["containers"]

    assert spec["securityContext"] == {"runAsNonRoot": True, "runAsUser": 65534, "seccompProfile": {"type": "RuntimeDefault"}}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["image"] == "registry.k8s.io/kube-state-metrics/kube-state-metrics:v2.20.0"
    assert container["resources"]["limits"] == {"cpu": "500m", "memory": "1Gi"}
    assert container["resources"]["requests"]["memory"] == "1Gi"


def test_it_runs_on_the_nodes_for_controllers_if_they_exist(register: Register) -> None:
    own = pod(register, node_selector={"flexspot.dev/system": "true"}, tolerations=[{"key": "CriticalAddonsOnly", "operator": "Exists"}])

    assert own["nodeSelector"] == {"kubernetes.io/os": "linux", "flexspot.dev/system": "true"}
    assert own["tolerations"] == [{"key": "CriticalAddonsOnly", "operator": "Exists"}]
    assert pod(register)["nodeSelector"] == {"kubernetes.io/os": "linux"}
    assert "tolerations" not in pod(register)


def test_the_service_and_its_monitor_select_its_pods_and_not_those_of_another_exporter(register: Register) -> None:
    for kind, token in (("managed", GOOGLES), ("operator", OPERATORS)):
        made = exporter(register, prometheus=kind)
        [deployment], [service], [monitor] = made.of(DEPLOYMENT), made.of(SERVICE), made.of(token)
        labels = deployment["spec"]["template"]["metadata"]["labels"]
        for selected in (service["spec"]["selector"], monitor["spec"]["selector"]["matchLabels"]):
            assert selected == {"app.kubernetes.io/name": "kube-state-metrics", "app.kubernetes.io/instance": "flexspot"}
            assert selected.items() <= labels.items()
        [port] = service["spec"]["ports"]
        [container] = deployment["spec"]["template"]["spec"]["containers"]
        assert monitor["spec"]["endpoints"][0]["port"] == port["name"]
        assert {"name": port["targetPort"], "containerPort": port["port"]} in container["ports"]


def test_googles_service_leaves_the_exporters_own_labels_alone(register: Register) -> None:
    made = exporter(register, prometheus="managed")

    [monitoring] = made.of(GOOGLES)
    assert monitoring["spec"]["targetLabels"] == {"metadata": []}
    assert monitoring["spec"]["endpoints"] == [{"port": "http-metrics", "interval": "60s"}]
    assert made.of(OPERATORS) == []


def test_the_operators_prometheus_selects_the_monitor_by_its_labels_and_honors_the_exporters(register: Register) -> None:
    made = exporter(register, prometheus="operator", monitor_labels={"release": "prometheus"})

    [monitor] = made.of(OPERATORS)
    assert monitor["metadata"]["labels"] == {"flexspot.dev/owner": "ml", "release": "prometheus"}
    assert monitor["spec"]["endpoints"] == [{"port": "http-metrics", "interval": "60s", "honorLabels": True}]
    assert made.of(GOOGLES) == []


def test_only_the_service_has_annotations_so_that_it_is_scraped_once(register: Register) -> None:
    made = exporter(register, prometheus="annotations")

    [service], [deployment] = made.of(SERVICE), made.of(DEPLOYMENT)
    assert service["metadata"]["annotations"] == {"prometheus.io/scrape": "true", "prometheus.io/port": "8080"}
    assert "annotations" not in deployment["spec"]["template"]["metadata"]
    assert made.of(GOOGLES) == made.of(OPERATORS) == []
    [other] = exporter(register, prometheus="managed").of(SERVICE)
    assert "annotations" not in other["metadata"]


@pytest.mark.parametrize(
    "args,problem",
    [
        ({"prometheus": "thanos"}, "prometheus (is thanos): must be one of managed, operator, annotations"),
        ({"monitor_labels": {"release": "p"}}, "monitor_labels: has no effect with prometheus annotations; leave it out"),
    ],
)
def test_monitor_labels_that_nothing_reads_are_refused_before_anything_is_registered(
    args: dict[str, Any], problem: str, refusal: Refusal
) -> None:
    assert problem in refusal(KubeStateMetrics, "ksm", LEAST | args)


def test_its_address_is_the_output(outputs: Outputs) -> None:
    least: Any = LEAST

    assert outputs(lambda: KubeStateMetrics("ksm", least)) == {"service": "kube-state-metrics.measuring.svc:8080"}
