"""How a controller of the platform's own is deployed: one pod that fits into a namespace of Pod Security `restricted`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulumi_kubernetes.apps.v1 import DeploymentSpecArgs, DeploymentStrategyArgs
from pulumi_kubernetes.core.v1 import (
    CapabilitiesArgs,
    PodSecurityContextArgs,
    PodSpecArgs,
    PodTemplateSpecArgs,
    SeccompProfileArgs,
    SecurityContextArgs,
    TolerationArgs,
)
from pulumi_kubernetes.meta.v1 import LabelSelectorArgs, ObjectMetaArgs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi_kubernetes.core.v1 import ContainerArgs

_NOBODY = 65534


def single_pod(  # noqa: PLR0913 -- what differs between controllers, given by name
    container: ContainerArgs,
    *,
    account: str,
    selected: Mapping[str, str],
    labels: Mapping[str, str],
    node_selector: Mapping[str, str],
    tolerations: Sequence[Mapping[str, str]],
) -> DeploymentSpecArgs:
    """The spec of a Deployment of one pod with `container`, which acts in the cluster as `account`; never two of them at once.

    `selected` are the labels that it is found by, `labels` those beside them. `node_selector` and `tolerations` lead to the nodes for
    controllers.
    """
    return DeploymentSpecArgs(
        replicas=1,
        strategy=DeploymentStrategyArgs(type="Recreate"),
        selector=LabelSelectorArgs(match_labels=dict(selected)),
        template=PodTemplateSpecArgs(
            metadata=ObjectMetaArgs(labels={**labels, **selected}),
            spec=PodSpecArgs(
                service_account_name=account,
                automount_service_account_token=True,
                node_selector={"kubernetes.io/os": "linux", **node_selector},
                tolerations=[_toleration(each) for each in tolerations] or None,
                security_context=PodSecurityContextArgs(
                    run_as_non_root=True, run_as_user=_NOBODY, seccomp_profile=SeccompProfileArgs(type="RuntimeDefault")
                ),
                containers=[container],
            ),
        ),
    )


def without_rights() -> SecurityContextArgs:
    """The security context of its container."""
    return SecurityContextArgs(
        allow_privilege_escalation=False, read_only_root_filesystem=True, capabilities=CapabilitiesArgs(drop=["ALL"])
    )


def _toleration(written: Mapping[str, str]) -> TolerationArgs:
    return TolerationArgs(
        key=written.get("key"), operator=written.get("operator"), value=written.get("value"), effect=written.get("effect")
    )
