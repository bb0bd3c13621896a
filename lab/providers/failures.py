"""What the stand-in Kubernetes provider tells the person and the engine when something does not work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lab.providers.api import Refusal, UnservedKindError
from lab.providers.objects import PATCH_FORCE, described

if TYPE_CHECKING:
    from lab.cluster import KubeObject
    from lab.providers.values import Properties

CONFLICT = 409
FORBIDDEN = 403
INVALID = 422
NOT_FOUND = 404


class ProviderError(Exception):
    """An operation failed and changed nothing."""


class PartialFailureError(Exception):
    """An operation left something behind that the state must keep: the object is there, but not as it should be."""

    def __init__(self, reason: str, identity: str, state: Properties, inputs: Properties | None = None) -> None:
        super().__init__(reason)
        self.identity = identity
        self.state = state
        self.inputs = inputs


def refused(operation: str, each: KubeObject, manager: str, cause: Refusal | UnservedKindError) -> str:
    """Why the API server did not do `operation` (such as "create") with an object, and what to do about it."""
    if isinstance(cause, UnservedKindError):
        return f"cannot {operation} {described(each)}: {cause}. Check that the CustomResourceDefinition is installed, and depend on it."
    text = f"cannot {operation} {described(each)}: the API server answered {cause.status} {cause.reason}: {cause.message}"
    if cause.namespace_is_missing:
        return f"{text}. Create the namespace first, and depend on it."
    if cause.status == CONFLICT and "conflict" in cause.message and operation != "delete":
        return (
            f"{text}. Another field manager than this resource's own ({manager}) set these fields: leave them out, use the option "
            f'ignore_changes, or take them over with the annotation {PATCH_FORCE}: "true".'
        )
    if cause.status == INVALID and "immutable" in cause.message:
        return f"{text}. Replace the object: change its name, or use the option replace_on_changes."
    return text
