"""Helm releases, controllers of one pod, and reading objects that already exist in a cluster."""

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
    """Return a release named after its chart. `chart` is its name in `repository`, or the whole address (oci://...) without a repository.

    A release that fails halfway is rolled back, so that the next attempt starts clean. It fails after ten minutes.
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
    """Return the result of `read` for a part of a resource that the provider read, or for None if the provider left it out.

    In a preview the SDK treats what is left out as unknown.
    """
    return part.apply(lambda value: read(None if pulumi.contains_unknowns(value) else value), run_with_unknowns=True)


class ReadObject(pulumi.CustomResource):
    """An object of a cluster that is read and never changed. Its fields are as Kubernetes writes them.

    `token` is its API version and kind as the provider spells them, such as apps/v1:Deployment. A run ends if there is no such object or
    the API server cannot be reached. The provider's error then names this resource.
    """

    def __init__(self, name: str, token: str, identity: str, opts: pulumi.ResourceOptions) -> None:
        wanted = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(id=identity))
        super().__init__(f"kubernetes:{token}", name, {"metadata": None, "spec": None}, wanted)

    @property
    def metadata(self) -> pulumi.Output[Any]:
        """The object's metadata."""
        return pulumi.get(self, "metadata")

    @property
    def spec(self) -> pulumi.Output[Any]:
        """The object's spec."""
        return pulumi.get(self, "spec")


_UNPRIVILEGED_USER = 65534


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
    """Return the spec of a Deployment with one pod of `container`, which uses the service account `account`. Two pods never run at once.

    `selected` are the labels of the Deployment's selector, and `labels` the pod's other labels. `node_selector` and `tolerations` select
    the nodes for controllers. A change of `annotations`, which are the pod's, replaces the pod.
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
                    run_as_non_root=True, run_as_user=_UNPRIVILEGED_USER, seccomp_profile=SeccompProfileArgs(type="RuntimeDefault")
                ),
                containers=[container],
                volumes=[*volumes] or None,
            ),
        ),
    )


def unprivileged() -> SecurityContextArgs:
    """Return a security context for a container without any privileges."""
    return SecurityContextArgs(
        allow_privilege_escalation=False, read_only_root_filesystem=True, capabilities=CapabilitiesArgs(drop=["ALL"])
    )


def _toleration(written: Mapping[str, str]) -> TolerationArgs:
    return TolerationArgs(
        key=written.get("key"), operator=written.get("operator"), value=written.get("value"), effect=written.get("effect")
    )
