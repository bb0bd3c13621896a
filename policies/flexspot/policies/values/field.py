"""Fields of an object's tree, where values known only later differ from absent ones; quantities as people write them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

from flexspot.capacity.values.engine_marks import OUTPUT, SECRET, SIGNATURE, UNKNOWNS
from flexspot.capacity.values.quantities import quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from decimal import Decimal


class Unknown(Enum):
    """The single object that represents a value the engine will know only later. It is neither true nor false."""

    UNKNOWN = "unknown"

    def __bool__(self) -> NoReturn:
        raise TypeError("an unknown value is neither true nor false: ask `is UNKNOWN` first")


UNKNOWN: Final = Unknown.UNKNOWN

Tri = bool | Unknown
"""True, false, or not known yet."""


def plain(value: Any) -> Any:
    """Return `value` as dicts, lists, str, int, float, bool, None and UNKNOWN.

    The engine's marks of unknown values become UNKNOWN. Whole floats become int, because the engine sends every number as a float and
    `limits: 8.0` reads badly. Envelopes of secrets and outputs are opened: rules judge the value inside, and
    flexspot.policies.values.finding keeps it out of messages.
    """
    # Compares types instead of using match, and handles scalars without a call: a linter does this to every value of every file.
    if isinstance(value, str):
        return UNKNOWN if value in UNKNOWNS else value
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        if SIGNATURE in fields and fields[SIGNATURE] in (SECRET, OUTPUT):
            return plain(fields["value"]) if "value" in fields else UNKNOWN
        return {
            key: each if (type(each) is str and each not in UNKNOWNS) or type(each) in _AS_THEY_ARE else plain(each)
            for key, each in fields.items()
        }
    if isinstance(value, list):
        return [
            each if (type(each) is str and each not in UNKNOWNS) or type(each) in _AS_THEY_ARE else plain(each)
            for each in cast("list[Any]", value)
        ]
    return value


_AS_THEY_ARE: Final = frozenset({int, bool, type(None)})


def mapping_of(value: Any) -> dict[str, Any]:
    """Return the value if it is a mapping, else an empty mapping."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def list_of(value: Any) -> list[Any]:
    """Return the value if it is a list, else an empty list."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def any_of(answers: Iterable[Tri]) -> Tri:
    """Return True if one answer is True, whatever the unknown ones turn out to be."""
    unknown = False
    for each in answers:
        if each is True:
            return True
        unknown = unknown or each is UNKNOWN
    return UNKNOWN if unknown else False


def all_of(answers: Iterable[Tri]) -> Tri:
    """Return False if one answer is False, whatever the unknown ones turn out to be."""
    unknown = False
    for each in answers:
        if each is False:
            return False
        unknown = unknown or each is UNKNOWN
    return UNKNOWN if unknown else True


def negated(answer: Tri) -> Tri:
    """Return the opposite of `answer`. UNKNOWN stays UNKNOWN."""
    return UNKNOWN if answer is UNKNOWN else not answer


def product(one: Decimal | Unknown | None, other: Decimal | Unknown | None) -> Decimal | Unknown | None:
    """Return one number times another. UNKNOWN if either is unknown, else None if either is missing."""
    if one is UNKNOWN or other is UNKNOWN:
        return UNKNOWN
    return None if one is None or other is None else one * other


@dataclass(frozen=True, init=False)
class Field:
    """A place in an object: a value, nothing (None), or UNKNOWN.

    In a `partial` object, such as a patch, nothing is ever absent: a field missing here may be written elsewhere, so it is UNKNOWN.
    """

    value: Any  # pyrefly: ignore[uninitialized-instance-variable] -- see __init__
    partial: bool  # pyrefly: ignore[uninitialized-instance-variable] -- likewise

    def __init__(self, value: Any, partial: bool = False) -> None:  # noqa: FBT001, FBT002 -- as the other dataclasses have it
        # Twice as fast as the generated __init__ of a frozen dataclass, in a linter's most frequent step.
        fields = self.__dict__
        fields["value"] = value
        fields["partial"] = partial

    def at(self, *path: str) -> Field:
        """Return the place below this one. Below UNKNOWN everything is UNKNOWN; below a value of another shape everything is absent."""
        here = self.value
        for step in path:
            if here is UNKNOWN:
                break
            here = here.get(step) if isinstance(here, dict) else None
        return Field(UNKNOWN, self.partial) if here is None and self.partial else Field(here, self.partial)

    @property
    def known(self) -> bool:
        """True if the value, or its absence, is certain."""
        return self.value is not UNKNOWN

    @property
    def absent(self) -> bool:
        """True if it is certain that nothing is written here."""
        return self.value is None

    def text(self) -> str | Unknown | None:
        """Return the text here, with numbers and truth values spelled as in YAML. None for anything else."""
        value = self.value
        if isinstance(value, str):
            return value
        if value is UNKNOWN:
            return UNKNOWN
        if isinstance(value, bool):
            return str(value).lower()
        return str(value) if isinstance(value, int) else None

    def number(self) -> Decimal | Unknown | None:
        """Return the quantity here. None if there is nothing, or no quantity."""
        if self.value is UNKNOWN:
            return UNKNOWN
        return quantity(self.value) if isinstance(self.value, str | int | float) and not isinstance(self.value, bool) else None

    def equals(self, *wanted: str) -> Tri:
        """Return whether the text here is one of `wanted`."""
        text = self.text()
        return UNKNOWN if text is UNKNOWN else text in wanted

    def parts(self) -> Parts:
        """Return the elements of the list here, or the entries of the mapping by key."""
        value, partial = self.value, self.partial
        if value is None and not partial:
            return _NO_PARTS
        if value is UNKNOWN:
            return Parts((), complete=False)
        named: list[tuple[str, Field]] = []
        if isinstance(value, list):
            named = [(str(place), Field(each, partial)) for place, each in enumerate(cast("list[Any]", value))]
        elif isinstance(value, dict):
            named = [(key, Field(each, partial)) for key, each in cast("dict[str, Any]", value).items()]
        return Parts(tuple(named), complete=not partial)


@dataclass(frozen=True)
class Parts:
    """The elements of a list or the entries of a mapping, by key."""

    named: tuple[tuple[str, Field], ...]
    """Pairs of key or index, and value."""
    complete: bool
    """False if there may be more parts than are known yet."""

    @property
    def fields(self) -> tuple[Field, ...]:
        """The values without their keys."""
        return tuple(field for _, field in self.named)

    def any(self, holds: Callable[[Field], Tri]) -> Tri:
        """Return whether `holds` is true for one part, counting parts that are not known yet as UNKNOWN."""
        return any_of(chain((holds(each) for _, each in self.named), () if self.complete else (UNKNOWN,)))

    def every(self, holds: Callable[[Field], Tri]) -> Tri:
        """Return whether `holds` is true for all parts, counting parts not known yet as UNKNOWN. False if there are no parts."""
        return all_of(chain((holds(each) for _, each in self.named), (bool(self.named) if self.complete else UNKNOWN,)))


_NO_PARTS: Final = Parts((), complete=True)
