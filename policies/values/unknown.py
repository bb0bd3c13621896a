"""Values that are known only later, and plain data in which they can be told from the rest."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

from capacity.values.engine_marks import OUTPUT, SECRET, SIGNATURE, UNKNOWNS

if TYPE_CHECKING:
    from collections.abc import Iterable


class Unknown(Enum):
    """The one object that stands for a value that the engine will know only later. It is neither true nor false."""

    UNKNOWN = "unknown"

    def __bool__(self) -> NoReturn:
        raise TypeError("an unknown value is neither true nor false: ask `is UNKNOWN` first")


UNKNOWN: Final = Unknown.UNKNOWN

Tri = bool | Unknown
"""Yes, no, or not known yet."""


def plain(value: Any) -> Any:
    """`value` as dicts, lists, str, int, float, bool, None and UNKNOWN.

    The engine's marks of unknown values become UNKNOWN. Whole floats become int, because every number of the engine arrives as a float and
    `limits: 8.0` helps nobody. The envelopes of secrets and outputs are opened: rules judge the value inside, and policies.values.secrecy
    keeps it out of messages.
    """
    match value:
        case str():
            return UNKNOWN if value in UNKNOWNS else value
        case float():
            return int(value) if value.is_integer() else value
        case dict():
            fields = cast("dict[str, Any]", value)
            if fields.get(SIGNATURE) in (SECRET, OUTPUT):
                return plain(fields["value"]) if "value" in fields else UNKNOWN
            return {key: plain(each) for key, each in fields.items()}
        case list():
            return [plain(each) for each in cast("list[Any]", value)]
        case _:
            return value


def any_of(answers: Iterable[Tri]) -> Tri:
    """Yes if one is yes, whatever the unknown ones turn out to be."""
    seen = list(answers)
    if any(each is True for each in seen):
        return True
    return UNKNOWN if any(each is UNKNOWN for each in seen) else False


def all_of(answers: Iterable[Tri]) -> Tri:
    """No if one is no, whatever the unknown ones turn out to be."""
    seen = list(answers)
    if any(each is False for each in seen):
        return False
    return UNKNOWN if any(each is UNKNOWN for each in seen) else True


def negated(answer: Tri) -> Tri:
    """Yes for no, no for yes, unknown for unknown."""
    return UNKNOWN if answer is UNKNOWN else not answer
