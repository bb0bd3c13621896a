"""The version of an add-on that AWS has as its default for a version of Kubernetes, by the provider's own data source."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pulumi
from pulumi_aws import eks

if TYPE_CHECKING:
    from pulumi_aws.eks import GetAddonVersionResult


def recommended_version(addon: str, kubernetes: str, parent: pulumi.Resource) -> pulumi.Output[str]:
    """What AWS recommends; unknown where nobody was asked, as in an offline preview.

    Without `most_recent` the provider answers the version that EKS's DescribeAddonVersions calls the default of this Kubernetes, and a run
    ends where EKS has no version of the add-on for it (terraform-provider-aws, internal/service/eks/addon_version_data_source.go).
    """
    answer = eks.get_addon_version_output(
        addon_name=addon, kubernetes_version=kubernetes, most_recent=False, opts=pulumi.InvokeOutputOptions(parent=parent)
    )
    return answer.apply(_told)


def _told(answer: GetAddonVersionResult) -> pulumi.Output[str]:
    version: str | None = answer.version
    return pulumi.Output.from_input(version) if version else _unknown()


def _unknown() -> pulumi.Output[str]:
    """A value that a preview shows as one that is not known yet."""
    value, known, secret = asyncio.Future[str](), asyncio.Future[bool](), asyncio.Future[bool]()
    value.set_result("")
    known.set_result(False)
    secret.set_result(False)
    return pulumi.Output(set(), value, known, secret)
