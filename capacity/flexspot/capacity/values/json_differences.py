"""Differences of two JSON values, and notation of their paths."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Path: TypeAlias = tuple[str | int, ...]
"""Keys and positions that lead to a value."""


class Absent:
    """The absence of a value, as distinct from null."""


ABSENT: Final = Absent()


def same(old: Any, new: Any) -> bool:
    """Return whether two values are the same JSON: 1 and 1.0 are, 1 and true are not."""
    return bool(old == new) and isinstance(old, bool) == isinstance(new, bool)


def differences(old: Any, new: Any, alike: Callable[[Any, Any], bool] = same, path: Path = ()) -> Iterator[tuple[Path, Any, Any]]:
    """Yield each path at which two values differ, with both values. A value is ABSENT if only the other one has the path.

    Lists are compared by position. `alike` decides whether two values that are not both objects or both lists are the same.
    """
    if isinstance(old, dict) and isinstance(new, dict):
        before, after = cast("dict[str, Any]", old), cast("dict[str, Any]", new)
        for key in dict.fromkeys([*before, *after]):
            yield from differences(before.get(key, ABSENT), after.get(key, ABSENT), alike, (*path, key))
    elif isinstance(old, list) and isinstance(new, list):
        pairs = zip_longest(cast("list[Any]", old), cast("list[Any]", new), fillvalue=ABSENT)
        for position, (before, after) in enumerate(pairs):
            yield from differences(before, after, alike, (*path, position))
    elif old is ABSENT or new is ABSENT or not alike(old, new):
        yield path, old, new


def written_path(path: Path) -> str:
    """Return a path in Pulumi's notation, such as `spec.containers[0].image` or `metadata.labels["app.kubernetes.io/name"]`."""
    text = ""
    for key in path:
        if isinstance(key, int):
            text += f"[{key}]"
        elif set(key) & set('."[]'):
            quoted = key.replace('"', '\\"')
            text += f'["{quoted}"]'
        else:
            text += f".{key}" if text else key
    return text
