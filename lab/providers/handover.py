"""Handing fields that were set without server-side apply to the field manager of a resource.

Before a real update the official provider takes over what was set by kubectl in any way, by client-side apply before the first
server-side one, and by its own Create; so neither a conflict with its Create nor one with a person at a terminal ever stops an `up`.
Its rules are those of github.com/fluxcd/pkg/ssa (PatchReplaceFieldsManagers), the names are pulumi-kubernetes' (pkg/await/await.go).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lab.providers.state import SHARED_FIELD_MANAGER
from lab.providers.values import is_object

if TYPE_CHECKING:
    from lab.cluster import KubeObject

_APPLY = "Apply"
_UPDATE = "Update"

_GIVE_UP = (
    ("kubectl", _APPLY),
    ("kubectl", _UPDATE),
    ("before-first-apply", _UPDATE),
    (SHARED_FIELD_MANAGER, _UPDATE),
    ("pulumi-resource-kubernetes", _UPDATE),
)
"""How the names of managers begin that give up their fields, and for which operation."""

Entry = dict[str, Any]
"""An entry of `metadata.managedFields`."""


def handed_over(live: KubeObject, manager: str) -> list[Entry] | None:
    """The managed fields with those of the managers above given to `manager`; None when they have none."""
    entries: list[Entry] = live["metadata"].get("managedFields", [])
    giving = [each for each in entries if _gives_up(each)]
    own = next((each for each in entries if (each["manager"], each["operation"]) == (manager, _APPLY)), None)
    given = [each for each in giving if each is not own]
    if not given:
        return None
    kept = [each for each in entries if each is not own and not any(each is gone for gone in given)]
    first, *others = [own, *given] if own else given
    fields: Any = first.get("fieldsV1", {})
    for each in others:
        fields = _united(fields, each.get("fieldsV1", {}))
    return [*kept, {**first, "manager": manager, "operation": _APPLY, "fieldsV1": fields}]


def was_created_by_provider(live: KubeObject) -> bool:
    """Whether fields still stand as the provider's Create set them, so that a dry run of an update would meet a conflict with them."""
    names = {SHARED_FIELD_MANAGER, f"{SHARED_FIELD_MANAGER}.exe", "pulumi-resource-kubernetes"}
    return any(each["operation"] == _UPDATE and each["manager"] in names for each in live["metadata"].get("managedFields", []))


def _gives_up(entry: Entry) -> bool:
    return not entry.get("subresource") and any(
        entry["manager"].startswith(name) and entry["operation"] == operation for name, operation in _GIVE_UP
    )


def _united(one: Any, other: Any, *, is_root: bool = True) -> Any:
    """The fields of two managers. A field without children is owned; one with children is owned too if it has the child `.`."""
    if not is_object(one) or not is_object(other):
        return one
    united: dict[str, Any] = {
        key: _united(one[key], other[key], is_root=False) if key in one and key in other else one.get(key, other.get(key))
        for key in [*one, *(key for key in other if key not in one)]
    }
    if not is_root and united and (not one or not other):
        united = {".": {}, **united}
    return united
