"""kube-state-metrics, which tells Prometheus of nodes, namespaces and pods what the report reads."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types.
import pulumi
from pulumi_kubernetes.apps.v1 import Deployment
from pulumi_kubernetes.core.v1 import Service, ServiceAccount, ServicePortArgs, ServiceSpecArgs
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs
from pulumi_kubernetes.rbac.v1 import ClusterRole, ClusterRoleBinding, PolicyRuleArgs, RoleRefArgs, SubjectArgs

from capacity.catalog.platform import PrometheusKind
from capacity.chargeback.queries import kube_state_resources
from components.measurement.exporter_pods import METRICS_PORT, NAME, PORT_NAME, SELECTED, exporter_deployment
from components.measurement.kube_state_metrics_args import KubeStateMetricsArgs
from components.measurement.prometheus_kinds import checked_kind
from components.measurement.scraping import INTERVAL_SECONDS, scraped

CLUSTER_ROLE = "flexspot-kube-state-metrics"
"""Cluster-wide names are this one's own, beside a kube-state-metrics that is there already."""

_RBAC = "rbac.authorization.k8s.io"
_INTERVAL = (5, 300)


class KubeStateMetrics(pulumi.ComponentResource):
    """kube-state-metrics 2.20 with the labels that the report needs, and what has it scraped.

    It lists nodes, namespaces and pods and nothing else, shows the series that the report reads and no others, and keeps the labels that it
    gives (honorLabels). One copy is enough: while it is replaced, a sample or two are missing, which the report bridges.

    Raises ValueError for an unknown `prometheus`, monitor labels that nobody would read, and an interval out of bounds.
    """

    service: pulumi.Output[str]
    """Where it answers in the cluster, as HOST:PORT, known once it does."""

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
        self.register_outputs({"service": self.service})


def _checked(name: str, args: KubeStateMetricsArgs) -> PrometheusKind:
    where = f"KubeStateMetrics {name}"
    prometheus = checked_kind(where, args["prometheus"])
    seconds, (least, most) = args.get("interval_seconds", INTERVAL_SECONDS), _INTERVAL
    if not least <= seconds <= most:
        raise ValueError(f"{where}: interval_seconds is {seconds}; it is {least} to {most}; leave it out for {INTERVAL_SECONDS}")
    if args.get("monitor_labels") and prometheus is not PrometheusKind.OPERATOR:
        raise ValueError(f"{where}: monitor_labels are given; with prometheus {prometheus} nobody selects by them; leave them out")
    return prometheus
