"""How something is put on a cluster, as a chart or as a pod of a controller; and how objects that are there already are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import pulumi
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
from pulumi_kubernetes.helm.v3 import Release, ReleaseArgs, RepositoryOptsArgs
from pulumi_kubernetes.meta.v1 import LabelSelectorArgs, ObjectMetaArgs

from flexspot.components.cloud_names import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pulumi_kubernetes.core.v1 import ContainerArgs, VolumeArgs


_TIMEOUT_SECONDS = 600


def chart_release(  # noqa: PLR0913 -- each is one of Helm's own options
    name: str,
    chart: str,
    version: str,
    values: Mapping[str, Any],
    opts: pulumi.ResourceOptions,
    *,
    repository: str | None = None,
    namespace: str = NAMESPACE,
    create_namespace: bool | None = None,
    skip_crds: bool | None = None,
) -> Release:
    """A release named after its chart, of which `chart` is the name in `repository` or else the whole address (oci://...).

    A release that fails half-way is taken back, so that the next try begins clean; it fails after ten minutes.
    """
    return Release(
        name,
        ReleaseArgs(
            chart=chart,
            version=version,
            repository_opts=None if repository is None else RepositoryOptsArgs(repo=repository),
            name=chart.rpartition("/")[2],
            namespace=namespace,
            create_namespace=create_namespace,
            atomic=True,
            timeout=_TIMEOUT_SECONDS,
            skip_crds=skip_crds,
            values=values,
        ),
        opts,
    )


PartT = TypeVar("PartT")
ReadT = TypeVar("ReadT")


def answered(part: pulumi.Output[PartT | None], read: Callable[[PartT | None], ReadT]) -> pulumi.Output[ReadT]:
    """What the provider answered of something that was read. It leaves out what is off, and in a preview the SDK takes what is left out for
    unknown.
    """
    return part.apply(lambda told: read(None if pulumi.contains_unknowns(told) else told), run_with_unknowns=True)


class ReadObject(pulumi.CustomResource):
    """An object of a cluster that is read and never changed: its fields as Kubernetes writes them.

    `token` is its API version and kind as the provider has them, such as apps/v1:Deployment. A run ends where there is no such object,
    or the API server is not reached; the provider then names this resource.
    """

    def __init__(self, name: str, token: str, identity: str, opts: pulumi.ResourceOptions) -> None:
        wanted = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(id=identity))
        super().__init__(f"kubernetes:{token}", name, {"metadata": None, "spec": None}, wanted)

    @property
    def metadata(self) -> pulumi.Output[Any]:
        """Its metadata."""
        return pulumi.get(self, "metadata")

    @property
    def spec(self) -> pulumi.Output[Any]:
        """Its spec."""
        return pulumi.get(self, "spec")


_NOBODY = 65534


def single_pod(  # noqa: PLR0913 -- what differs between controllers, given by name
    container: ContainerArgs,
    *,
    account: str,
    selected: Mapping[str, str],
    labels: Mapping[str, str],
    node_selector: Mapping[str, str],
    tolerations: Sequence[Mapping[str, str]],
    annotations: Mapping[str, str] | None = None,
    volumes: Sequence[VolumeArgs] = (),
) -> DeploymentSpecArgs:
    """The spec of a Deployment of one pod with `container`, which acts in the cluster as `account`; never two of them at once.

    `selected` are the labels that it is found by, `labels` those beside them. `node_selector` and `tolerations` lead to the nodes for
    controllers. A change of `annotations`, which are the pod's, replaces the pod.
    """
    return DeploymentSpecArgs(
        replicas=1,
        strategy=DeploymentStrategyArgs(type="Recreate"),
        selector=LabelSelectorArgs(match_labels=dict(selected)),
        template=PodTemplateSpecArgs(
            metadata=ObjectMetaArgs(labels={**labels, **selected}, annotations=annotations),
            spec=PodSpecArgs(
                service_account_name=account,
                automount_service_account_token=True,
                node_selector={"kubernetes.io/os": "linux", **node_selector},
                tolerations=[_toleration(each) for each in tolerations] or None,
                security_context=PodSecurityContextArgs(
                    run_as_non_root=True, run_as_user=_NOBODY, seccomp_profile=SeccompProfileArgs(type="RuntimeDefault")
                ),
                containers=[container],
                volumes=[*volumes] or None,
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
