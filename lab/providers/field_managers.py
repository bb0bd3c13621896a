"""Whose a field is in a server-side apply: fields handed over to a resource's manager, and those it ignores."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

from lab.providers.state import SHARED_FIELD_MANAGER
from lab.providers.values import is_object

if TYPE_CHECKING:
    from collections.abc import Iterable

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


def with_ignored(wanted: KubeObject, live: KubeObject, manager: str, ignored: Iterable[str]) -> KubeObject:
    """What to apply so that the ignored fields stay as they are.

    A field that others own and this resource does not is left out, so that there is no conflict; any other ignored field is sent
    with its live value, because what is not sent any more would be removed. As in the real provider, a path leads through objects
    alone: one with a list's position in it changes nothing here.
    """
    result = deepcopy(wanted)
    for written in ignored:
        path = written.split(".")
        if "[" in written or _at(result, path) is None:
            continue
        managers = {entry["manager"] for entry in live["metadata"].get("managedFields", []) if _owns(entry.get("fieldsV1", {}), path)}
        parent = _at(result, path[:-1])
        if managers and manager not in managers:
            parent.pop(path[-1])
        elif (value := _at(live, path)) is not None:
            parent[path[-1]] = deepcopy(value)
    return result


def _at(each: Any, path: list[str]) -> Any:
    for key in path:
        each = each.get(key) if is_object(each) else None
    return each


def _owns(fields: Any, path: list[str]) -> bool:
    return _at(fields, [f"f:{key}" for key in path]) is not None
