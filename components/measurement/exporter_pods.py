"""The pods of kube-state-metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulumi_kubernetes.apps.v1 import DeploymentSpecArgs, DeploymentStrategyArgs
from pulumi_kubernetes.core.v1 import (
    CapabilitiesArgs,
    ContainerArgs,
    ContainerPortArgs,
    HTTPGetActionArgs,
    PodSecurityContextArgs,
    PodSpecArgs,
    PodTemplateSpecArgs,
    ProbeArgs,
    ResourceRequirementsArgs,
    SeccompProfileArgs,
    SecurityContextArgs,
    TolerationArgs,
)
from pulumi_kubernetes.meta.v1 import LabelSelectorArgs, ObjectMetaArgs

from capacity.chargeback.labels import allow_list
from capacity.chargeback.queries import kube_state_resources, kube_state_series

if TYPE_CHECKING:
    from components.measurement.kube_state_metrics_args import KubeStateMetricsArgs

NAME = "kube-state-metrics"
VERSION = "2.20.0"
IMAGE = f"registry.k8s.io/kube-state-metrics/kube-state-metrics:v{VERSION}"
"""The image that the release's own manifests name (examples/standard/deployment.yaml)."""

SELECTED = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/instance": "flexspot"}
"""What these pods are found by; the second tells them from those of another kube-state-metrics."""

PORT_NAME, METRICS_PORT = "http-metrics", 8080
_SELF_NAME, _SELF_PORT = "telemetry", 8081
_NOBODY = 65534


def exporter_arguments() -> list[str]:
    """What is shown: of the resources that the report reads, its series alone, with its labels."""
    return [
        f"--resources={','.join(kube_state_resources())}",
        f"--metric-allowlist={','.join(kube_state_series())}",
        allow_list(),
    ]


def exporter_deployment(args: KubeStateMetricsArgs) -> DeploymentSpecArgs:
    """The spec of the Deployment, which fits into a namespace of Pod Security `restricted`."""
    return DeploymentSpecArgs(
        replicas=1,
        # Two at once would tell everything twice.
        strategy=DeploymentStrategyArgs(type="Recreate"),
        selector=LabelSelectorArgs(match_labels=SELECTED),
        template=PodTemplateSpecArgs(
            metadata=ObjectMetaArgs(labels={**args["labels"], **SELECTED, "app.kubernetes.io/version": VERSION}),
            spec=PodSpecArgs(
                service_account_name=NAME,
                automount_service_account_token=True,
                node_selector={"kubernetes.io/os": "linux", **args.get("node_selector", {})},
                tolerations=[_toleration(each) for each in args.get("tolerations", [])] or None,
                security_context=PodSecurityContextArgs(
                    run_as_non_root=True, run_as_user=_NOBODY, seccomp_profile=SeccompProfileArgs(type="RuntimeDefault")
                ),
                containers=[_container(args.get("memory", "512Mi"))],
            ),
        ),
    )


def _container(memory: str) -> ContainerArgs:
    """Ports, probes and user are those of the release's own manifests."""
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
        # More memory than it asked for would end it, or whatever else is on the node; without more cpu it is only slower.
        resources=ResourceRequirementsArgs(requests={"cpu": "100m", "memory": memory}, limits={"cpu": "500m", "memory": memory}),
        security_context=SecurityContextArgs(
            allow_privilege_escalation=False, read_only_root_filesystem=True, capabilities=CapabilitiesArgs(drop=["ALL"])
        ),
    )


def _toleration(written: dict[str, str]) -> TolerationArgs:
    return TolerationArgs(
        key=written.get("key"), operator=written.get("operator"), value=written.get("value"), effect=written.get("effect")
    )


def _probe(path: str, port: str) -> ProbeArgs:
    return ProbeArgs(http_get=HTTPGetActionArgs(path=path, port=port), initial_delay_seconds=5, timeout_seconds=5)
