"""What the cloud and the cluster answer about what somebody else made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import pulumi

if TYPE_CHECKING:
    from collections.abc import Callable

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
