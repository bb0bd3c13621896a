"""What rules see of a shipped stack: everything that the program declares for it, read as the policy pack reads it. Not a test."""

from __future__ import annotations

from functools import cache
from typing import Any, cast

from program_declarations import as_shipped

from policies.core import Reading, read_source
from policies.inventory.reading.source import from_pulumi
from policies.values.field import UNKNOWN

_UNKNOWN = {"$unknown": True}


@cache
def readings_of(stack: str) -> tuple[Reading, ...]:
    """The readings of what a shipped stack declares."""
    found = (read_source(from_pulumi(each.type, each.name, _unmarked(each.inputs))) for each in as_shipped(stack).made.values())
    return tuple(reading for reading in found if reading.views)


def _unmarked(value: Any) -> Any:
    """The inputs of a declared resource, in which a mark stands for what is not known yet."""
    if value == _UNKNOWN:
        return UNKNOWN
    if isinstance(value, dict):
        return {key: _unmarked(each) for key, each in cast("dict[str, Any]", value).items()}
    return [_unmarked(each) for each in cast("list[Any]", value)] if isinstance(value, list) else value
