"""The recording rules of GPUs, where Prometheus reads rules from, and the kinds of its objects."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
from typing import NotRequired, TypedDict

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.core.v1 import ConfigMap
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from capacity.catalog.platform import PrometheusKind
from capacity.telemetry.recording_rules import ALLOCATED, GROUP, IDLE, MEASURED, USED, rule_groups, rules_yaml
from capacity.telemetry.rule_group import rules_spec

GOOGLE_API = "monitoring.googleapis.com/v1"
"""GoogleCloudPlatform/prometheus-engine, pkg/operator/apis/monitoring/v1; GKE brings the definitions with managed collection."""

OPERATOR_API = "monitoring.coreos.com/v1"
"""https://prometheus-operator.dev/docs/api-reference/api; the operator brings the definitions."""


def checked_kind(where: str, written: str) -> PrometheusKind:
    """The kind that is meant. Raises ValueError, beginning with `where`, for another word."""
    try:
        return PrometheusKind(written)
    except ValueError as error:
        allowed = ", ".join(PrometheusKind)
        raise ValueError(f"{where}: prometheus is {written}; it is {allowed}; use one of these") from error


FILE = f"{GROUP}.rules.yaml"
"""The key of the ConfigMap, which is the file's name where it is mounted."""


class RecordingRulesArgs(TypedDict):
    """Arguments of RecordingRules."""

    namespace: str
    """The namespace of the object, which exists; Google's is cluster-wide."""

    prometheus: str
    """Who evaluates them: `managed` (Google's managed service), `operator` (the Prometheus operator), or `annotations` (a file)."""

    labels: dict[str, str]
    """Labels of the object."""

    monitor_labels: NotRequired[dict[str, str]]
    """Further labels of the PrometheusRule, by which the operator's Prometheus selects it. Default: none."""


class RecordingRules(pulumi.ComponentResource):
    """GPUs allocated, used and idle, by team, project, workload type, environment and capacity type, evaluated every minute.

    An object of ClusterRules, a PrometheusRule, or a ConfigMap with a rules file that whoever runs Prometheus mounts and names in
    `rule_files`. Google's service asks only series of its own cluster by itself. Raises ValueError for an unknown `prometheus`.
    """

    series: pulumi.Output[list[str]]
    """Names of the recorded series that are there to be looked at, known once the rules are there."""

    def __init__(self, name: str, args: RecordingRulesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        prometheus = checked_kind(f"RecordingRules {name}", args["prometheus"])
        super().__init__("flexspot:index:RecordingRules", name, {**args}, opts)
        made = self._made(name, args, prometheus)
        self.series = made.id.apply(lambda _: [ALLOCATED, USED, MEASURED, IDLE])
        self.register_outputs({"series": self.series})

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
