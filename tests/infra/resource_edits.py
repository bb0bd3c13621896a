"""What has to be done to one resource's inputs so that they become another's. Not a test."""

from __future__ import annotations

from typing import Any, cast

Path = tuple[str | int, ...]


def edits(before: Any, after: Any, path: Path = ()) -> list[dict[str, Any]]:
    """`{"path", "value"}` for what is set, and `{"path"}` for what is dropped. Lists of another length are set as a whole."""
    if before == after:
        return []
    if isinstance(before, dict) and isinstance(after, dict):
        old, new = cast("dict[str, Any]", before), cast("dict[str, Any]", after)
        dropped = [{"path": (*path, key)} for key in sorted(old.keys() - new.keys())]
        return [*dropped, *(each for key in sorted(new) for each in edits(old.get(key), new[key], (*path, key)))]
    if isinstance(before, list) and isinstance(after, list):
        listed, wanted = cast("list[Any]", before), cast("list[Any]", after)
        if len(listed) == len(wanted):
            pairs = enumerate(zip(listed, wanted, strict=True))
            return [each for place, (one, other) in pairs for each in edits(one, other, (*path, place))]
    return [{"path": path, "value": after}]
