"""What the Kubernetes provider tells the person and the engine when something does not work, in the official provider's words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lab.providers.api import Refusal, UnservedKindError
from lab.providers.objects import object_id, type_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lab.cluster import KubeObject
    from lab.providers.values import Properties

_ALREADY_EXISTS = "AlreadyExists"
_CONFLICT = "Conflict"

_IT_EXISTS = """

The resource already exists in the cluster. This can happen when:

  - Renaming a Pulumi resource: use an alias to preserve the identity,
    or use deleteBeforeReplace if the resource needs replacement.
  - Managing an existing resource: use a Patch resource (e.g. NamespacePatch)
    to manage specific fields without owning the resource lifecycle.
  - Adopting a resource into Pulumi: use `pulumi import`. Note that
    protected resources (e.g. kube-system) cannot be deleted on destroy.
  - Intentional upsert: set upsertExistingObjects on the provider to allow
    server-side apply to update existing objects on create."""

_CONFLICTS = (
    "https://www.pulumi.com/registry/packages/kubernetes/how-to-guides/managing-resources-with-server-side-apply/"
    "#handle-field-conflicts-on-existing-resources"
)


class ProviderError(Exception):
    """An operation failed, and the state stays as it is."""


class PartialFailureError(Exception):
    """An operation left something behind that the state must keep: the object is there, but not as it should be.

    `reasons` are what the state keeps as the resource's errors: the text, and what is known beside it.
    """

    def __init__(
        self, text: str, identity: str, state: Properties, inputs: Properties | None = None, *, details: Sequence[str] = ()
    ) -> None:
        super().__init__(text)
        self.identity = identity
        self.state = state
        self.inputs = inputs
        self.reasons = [text, *details]


def quoted(text: str) -> str:
    """A name in double quotes."""
    return f'"{text}"'


def not_created(urn: str, manager: str, cause: Refusal | UnservedKindError) -> str:
    """Why there is no new object, and what to do about it."""
    if isinstance(cause, UnservedKindError):
        _, api_version, kind = type_of(urn).split(":")
        return f"creation of resource {quoted(urn)} with kind {api_version.removeprefix('core/')}/{kind} failed because {_NO_KIND}: {cause}"
    advice = _IT_EXISTS if cause.reason == _ALREADY_EXISTS else ""
    return f"resource {quoted(urn)} was not successfully created by the Kubernetes API server: {said(cause, manager)}{advice}"


def not_ready_after_creation(urn: str, why: str) -> str:
    """A new object is there, but not as it should be."""
    return (
        f"resource {quoted(urn)} was successfully created, but the Kubernetes API server reported that it failed to fully initialize "
        f"or become live: {why}"
    )


def not_updated(live: KubeObject, why: str) -> str:
    """An object is there, but not as the update wanted it, or not ready."""
    return f"the Kubernetes API server reported that {quoted(object_id(live))} failed to fully initialize or become live: {why}"


def nothing_to_update(urn: str, why: str, cause: Refusal) -> str:
    """An update failed, and the object cannot be read either."""
    return f"update of resource {quoted(urn)} failed: {why}\nunable to get cluster state: {cause.message}"


def no_kind_to_update(urn: str, cause: UnservedKindError) -> str:
    """An update failed because its kind is not served."""
    return f"update of resource {quoted(urn)} failed because {_NO_KIND}: {cause}"


_NO_KIND = (
    "the Kubernetes API server reported that the apiVersion for this resource does not exist. "
    "Verify that any required CRDs have been created"
)


def said(cause: Refusal, manager: str) -> str:
    """The API server's words; of a conflict also whose it is."""
    if cause.reason != _CONFLICT:
        return cause.message
    return (
        f"server-side apply field conflict detected, see {_CONFLICTS} for troubleshooting help\n"
        f"The resource managed by field manager {quoted(manager)} had an apply conflict: {cause.message}"
    )
