"""The resource option `ignore_changes` in a server-side apply."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

from lab.providers.values import is_object

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lab.cluster import KubeObject


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
