"""Measurement of GPUs: kube-state-metrics, which exports to Prometheus what reports need, and the recording rules."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
from typing import NotRequired, TypedDict

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.apps.v1 import Deployment, DeploymentSpecArgs
from pulumi_kubernetes.core.v1 import (
    ConfigMap,
    ContainerArgs,
    ContainerPortArgs,
    HTTPGetActionArgs,
    ProbeArgs,
    ResourceRequirementsArgs,
    Service,
    ServiceAccount,
    ServicePortArgs,
    ServiceSpecArgs,
)
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs
from pulumi_kubernetes.rbac.v1 import ClusterRole, ClusterRoleBinding, PolicyRuleArgs, RoleRefArgs, SubjectArgs

from flexspot.capacity.catalog.platform import PrometheusKind
from flexspot.capacity.catalog.versions import shipped_versions
from flexspot.capacity.chargeback.queries import allow_list, kube_state_resources, kube_state_series
from flexspot.capacity.settings.controllers import KubeStateMetricsSize
from flexspot.capacity.telemetry import ALLOCATED, GROUP, IDLE, MEASURED, USED, rule_groups, rules_spec, rules_yaml
from flexspot.capacity.values.errors import SettingsProblem
from flexspot.capacity.values.quantities import milli_quantity
from flexspot.components.in_cluster import single_pod, unprivileged
from flexspot.components.shared_args import PlacementArgs, publish, refuse


class KubeStateMetricsArgs(PlacementArgs):
    """Arguments of KubeStateMetrics."""

    namespace: str
    """The namespace of its objects, which must exist."""

    prometheus: str
    """The Prometheus that scrapes it: `managed` (Google's managed service), `operator` (the Prometheus Operator), or `annotations`."""

    labels: dict[str, str]
    """Labels of the objects."""

    monitor_labels: NotRequired[dict[str, str]]
    """Additional labels of the ServiceMonitor, by which the operator's Prometheus selects it. Default: none."""

    cpu_milli: NotRequired[int]
    """CPU request in thousandths of a vCPU. The limit is five times as much. Default: 100."""

    memory: NotRequired[str]
    """Memory request and limit, as a Kubernetes quantity. Tens of thousands of pods need more. Default: 512Mi."""


NAME = "kube-state-metrics"
VERSION = shipped_versions().kube_state_metrics.version
IMAGE = f"registry.k8s.io/kube-state-metrics/kube-state-metrics:v{VERSION}"
"""The image in the release's own manifests (examples/standard/deployment.yaml)."""

SELECTED = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/instance": "flexspot"}
"""Labels that select its pods. The second distinguishes them from those of another kube-state-metrics."""

PORT_NAME, METRICS_PORT = "http-metrics", 8080
_SELF_NAME, _SELF_PORT = "telemetry", 8081


def exporter_arguments() -> list[str]:
    """Return the arguments that restrict the exporter to the resources, series and labels that reports read."""
    return [
        f"--resources={','.join(kube_state_resources())}",
        f"--metric-allowlist={','.join(kube_state_series())}",
        allow_list(),
    ]


def exporter_deployment(args: KubeStateMetricsArgs) -> DeploymentSpecArgs:
    """Return the spec of the Deployment, which Pod Security `restricted` admits."""
    # Two pods at once would export everything twice.
    return single_pod(
        _container(args),
        account=NAME,
        selected=SELECTED,
        labels={**args["labels"], "app.kubernetes.io/version": VERSION},
        node_selector=args.get("node_selector", {}),
        tolerations=args.get("tolerations", []),
    )


def _container(args: KubeStateMetricsArgs) -> ContainerArgs:
    """Return the container. Ports, probes and user are those of the release's own manifests."""
    cpu, memory = args.get("cpu_milli", KubeStateMetricsSize.default("cpu_milli")), args.get("memory", KubeStateMetricsSize().memory)
    return ContainerArgs(
        name=NAME,
        image=IMAGE,
        args=exporter_arguments(),
        ports=[
            ContainerPortArgs(name=PORT_NAME, container_port=METRICS_PORT),
            ContainerPortArgs(name=_SELF_NAME, container_port=_SELF_PORT),
        ],
        liveness_probe=_probe("/livez", PORT_NAME),
        readiness_probe=_probe("/readyz", _SELF_NAME),
        # Memory is limited to the request, so that an excess does not end other pods on the node. With less cpu it is only slower.
        resources=ResourceRequirementsArgs(
            requests={"cpu": milli_quantity(cpu), "memory": memory}, limits={"cpu": milli_quantity(5 * cpu), "memory": memory}
        ),
        security_context=unprivileged(),
    )


def _probe(path: str, port: str) -> ProbeArgs:
    return ProbeArgs(http_get=HTTPGetActionArgs(path=path, port=port), initial_delay_seconds=5, timeout_seconds=5)


MONITORING = "flexspot-kube-state-metrics"
"""Google's object is cluster-wide, and others may have one with the exporter's own name."""

INTERVAL_SECONDS = 60
"""The step of reports."""


def scraped(name: str, args: KubeStateMetricsArgs, prometheus: PrometheusKind, opts: pulumi.ResourceOptions) -> None:
    """Register the object by which Prometheus scrapes it, or none if Prometheus looks for annotations."""
    interval = f"{INTERVAL_SECONDS}s"
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
                # Empty, and not left out, so that no label of the exporter's own pod replaces a pod's.
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


CLUSTER_ROLE = "flexspot-kube-state-metrics"
"""Name of cluster-wide objects, which must differ from those of an existing kube-state-metrics."""

_RBAC = "rbac.authorization.k8s.io"


class KubeStateMetrics(pulumi.ComponentResource):
    """kube-state-metrics 2.20 with the labels that reports need, and the object by which Prometheus scrapes it.

    It lists only nodes, namespaces and pods, exports only the series that reports read, and keeps the labels that it sets (honorLabels).
    One replica is enough: while it is replaced a sample or two are missing, which reports bridge.

    Raises ValueError for an unknown `prometheus`, monitor labels that nothing would read, and an interval out of bounds.
    """

    service: pulumi.Output[str]
    """Its address in the cluster, as HOST:PORT, known once it answers."""

    def __init__(self, name: str, args: KubeStateMetricsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        prometheus = _checked(name, args)
        super().__init__("flexspot:index:KubeStateMetrics", name, {**args}, opts)
        child = pulumi.ResourceOptions(parent=self)
        metadata = ObjectMetaArgs(name=NAME, namespace=args["namespace"], labels={**args["labels"], **SELECTED})
        ServiceAccount(f"{name}-account", metadata=metadata, automount_service_account_token=False, opts=child)
        role = ClusterRole(
            f"{name}-role",
            metadata=ObjectMetaArgs(name=CLUSTER_ROLE, labels=args["labels"]),
            rules=[PolicyRuleArgs(api_groups=[""], resources=list(kube_state_resources()), verbs=["list", "watch"])],
            opts=child,
        )
        binding = ClusterRoleBinding(
            f"{name}-binding",
            metadata=ObjectMetaArgs(name=CLUSTER_ROLE, labels=args["labels"]),
            role_ref=RoleRefArgs(api_group=_RBAC, kind="ClusterRole", name=CLUSTER_ROLE),
            subjects=[SubjectArgs(kind="ServiceAccount", name=NAME, namespace=args["namespace"])],
            opts=pulumi.ResourceOptions(parent=self, depends_on=[role]),
        )
        deployment = Deployment(
            f"{name}-deployment",
            metadata=metadata,
            spec=exporter_deployment(args),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[binding]),
        )
        found = {"prometheus.io/scrape": "true", "prometheus.io/port": str(METRICS_PORT)}
        service = Service(
            f"{name}-service",
            metadata=ObjectMetaArgs(
                name=NAME,
                namespace=args["namespace"],
                labels={**args["labels"], **SELECTED},
                annotations=found if prometheus is PrometheusKind.ANNOTATIONS else None,
            ),
            spec=ServiceSpecArgs(
                cluster_ip="None", selector=SELECTED, ports=[ServicePortArgs(name=PORT_NAME, port=METRICS_PORT, target_port=PORT_NAME)]
            ),
            opts=pulumi.ResourceOptions(parent=self, depends_on=[deployment]),
        )
        scraped(name, args, prometheus, pulumi.ResourceOptions(parent=self, depends_on=[service]))
        address = f"{NAME}.{args['namespace']}.svc:{METRICS_PORT}"
        self.service = service.id.apply(lambda _: address)
        publish(self)


def _checked(name: str, args: KubeStateMetricsArgs) -> PrometheusKind:
    where = f"KubeStateMetrics {name}"
    prometheus = checked_kind(where, args["prometheus"])
    if args.get("monitor_labels") and prometheus is not PrometheusKind.OPERATOR:
        refuse(where, SettingsProblem("monitor_labels", "", f"has no effect with prometheus {prometheus}", "leave it out"))
    return prometheus


GOOGLE_API = "monitoring.googleapis.com/v1"
"""GoogleCloudPlatform/prometheus-engine, pkg/operator/apis/monitoring/v1. GKE installs the definitions with managed collection."""

OPERATOR_API = "monitoring.coreos.com/v1"
"""https://prometheus-operator.dev/docs/api-reference/api. The operator installs the definitions."""


def checked_kind(where: str, written: str) -> PrometheusKind:
    """Return the kind of Prometheus. Raises ValueError, beginning with `where`, for an unknown one."""
    try:
        return PrometheusKind(written)
    except ValueError as error:
        raise ValueError(f"{where}: prometheus (is {written}): must be one of {', '.join(PrometheusKind)}") from error


FILE = f"{GROUP}.rules.yaml"
"""The key in the ConfigMap, which is the name of the mounted file."""


class RecordingRulesArgs(TypedDict):
    """Arguments of RecordingRules."""

    namespace: str
    """Namespace of the object, which must exist. Google's object is cluster-wide."""

    prometheus: str
    """The Prometheus that evaluates them: `managed` (Google's managed service), `operator` (the Prometheus Operator), or `annotations` (a
    file)."""

    labels: dict[str, str]
    """Labels of the object."""

    monitor_labels: NotRequired[dict[str, str]]
    """Additional labels of the PrometheusRule, by which the operator's Prometheus selects it. Default: none."""


class RecordingRules(pulumi.ComponentResource):
    """GPUs allocated, used and idle, by team, project, workload type, environment and capacity type, evaluated every minute.

    They are a ClusterRules object, a PrometheusRule, or a ConfigMap with a rules file that the operator of Prometheus mounts and lists in
    `rule_files`. Google's service automatically restricts queries to its own cluster. Raises ValueError for an unknown `prometheus`.
    """

    series: pulumi.Output[list[str]]
    """Names of the recorded series for dashboards, known once the rules exist."""

    def __init__(self, name: str, args: RecordingRulesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        prometheus = checked_kind(f"RecordingRules {name}", args["prometheus"])
        super().__init__("flexspot:index:RecordingRules", name, {**args}, opts)
        made = self._made(name, args, prometheus)
        self.series = made.id.apply(lambda _: [ALLOCATED, USED, MEASURED, IDLE])
        publish(self)

    def _made(self, name: str, args: RecordingRulesArgs, prometheus: PrometheusKind) -> pulumi.CustomResource:
        child = pulumi.ResourceOptions(parent=self)
        if prometheus is PrometheusKind.ANNOTATIONS:
            metadata = ObjectMetaArgs(name=GROUP, namespace=args["namespace"], labels=args["labels"])
            return ConfigMap(f"{name}-file", metadata=metadata, data={FILE: rules_yaml()}, opts=child)
        spec = rules_spec(rule_groups())
        if prometheus is PrometheusKind.MANAGED:
            metadata = ObjectMetaArgs(name=GROUP, labels=args["labels"])
            return CustomResource(f"{name}-rules", api_version=GOOGLE_API, kind="ClusterRules", metadata=metadata, spec=spec, opts=child)
        labels = {**args["labels"], **args.get("monitor_labels", {})}
        metadata = ObjectMetaArgs(name=GROUP, namespace=args["namespace"], labels=labels)
        return CustomResource(f"{name}-rules", api_version=OPERATOR_API, kind="PrometheusRule", metadata=metadata, spec=spec, opts=child)
