"""Values that are known only later, and plain data in which they can be told from the rest."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

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

SENTINELS: Final = frozenset(
    {
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",  # boolean
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",  # number
        "04da6b54-80e4-46f7-96ec-b56ff0331ba9",  # string
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",  # array
        "030794c1-ac77-496b-92df-f27374a8bd58",  # asset
        "e48ece36-62e2-4504-bad9-02848725956a",  # archive
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",  # object
    }
)
"""What Pulumi's engine sends in place of an unknown value, one string for each type (pulumi-policy 1.21, proxy.py)."""

SIGNATURE: Final = "4dabf18193072939515e22adb298388d"
SECRET: Final = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 -- marks an envelope
"""The key and the value that make a mapping the envelope of a secret, which stands under `value`."""

_OUTPUT = "d0e6a833031e9bbcd3f4e8bde6ca49a4"


def plain(value: Any) -> Any:
    """`value` as dicts, lists, str, int, float, bool, None and UNKNOWN.

    Sentinels become UNKNOWN. Whole floats become int, because every number of the engine arrives as a float and `limits: 8.0` helps
    nobody. The envelopes of secrets and outputs are opened: rules judge the value inside, and policies.values.secrecy keeps it out of
    messages.
    """
    match value:
        case str():
            return UNKNOWN if value in SENTINELS else value
        case float():
            return int(value) if value.is_integer() else value
        case dict():
            fields = cast("dict[str, Any]", value)
            if fields.get(SIGNATURE) in (SECRET, _OUTPUT):
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
