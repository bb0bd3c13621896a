"""Functions that write CEL: literals, optional fields, sentences.

Uses only what every evaluator of CEL has: has, all, exists, filter, map, in, the ternary operator, optional fields and string functions.
From Kubernetes' own library: quantity, isQuantity, and min and max of whole numbers.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_FIELD = re.compile(r"\{(\w+)\}")

FEW_PLACES, MOST_PLACES = 8, 64
"""Usual and largest length of lists in pods and jobs whose elements are read by index. Teams' namespaces refuse longer lists."""


def text(value: str) -> str:
    """Return a string literal."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"


def texts(values: Iterable[str]) -> str:
    """Return a list literal of strings."""
    return f"[{', '.join(map(text, values))}]"


def mapping(entries: Mapping[str, str]) -> str:
    """Return a map literal of strings."""
    return "{" + ", ".join(f"{text(key)}: {text(value)}" for key, value in entries.items()) + "}"


def optional(base: str, *steps: str) -> str:
    """Return the field below `base` as an optional. Any of the steps may be missing."""
    return base + "".join(f".?{step}" for step in steps)


def text_at(base: str, *steps: str) -> str:
    """Return the string below `base`. Default: empty."""
    return f"{optional(base, *steps)}.orValue('')"


def list_at(base: str, *steps: str) -> str:
    """Return the list below `base`. Default: empty."""
    return f"{optional(base, *steps)}.orValue([])"


def mapping_at(base: str, *steps: str) -> str:
    """Return the map below `base`. Default: empty."""
    return f"{optional(base, *steps)}.orValue({{}})"


def places_between(first: int, end: int) -> str:
    """Return the indexes from `first` to `end`, exclusive."""
    return f"[{', '.join(map(str, range(first, end)))}]"


def places(listed: str) -> str:
    """Return the indexes of a list, from the variables `fewPlaces` and `places`. CEL's macros pass elements without their index."""
    return f"(size({listed}) > {FEW_PLACES} ? variables.places : variables.fewPlaces).filter(i, i < size({listed}))"


def either(*conditions: str) -> str:
    """Return CEL that is true if any condition is."""
    return " || ".join(f"({each})" for each in conditions) or "false"


def every(*conditions: str) -> str:
    """Return CEL that is true if all conditions are."""
    return " && ".join(f"({each})" for each in conditions) or "true"


def let(name: str, value: str, body: str) -> str:
    """Return `body` with `name` bound to a value that is long to write."""
    return f"[{value}].map({name}, {body})[0]"


def first_of(*cases: tuple[str, str], otherwise: str = "''") -> str:
    """Return the value of the first case, a pair of condition and value, whose condition is true."""
    return "".join(f"({condition}) ? ({value}) : " for condition, value in cases) + f"({otherwise})"


def sentence(pattern: str, **parts: str) -> str:
    """Return CEL for a text with fields in braces, which are replaced by `parts`, expressions of strings."""
    pieces: list[str] = []
    end = 0
    for field in _FIELD.finditer(pattern):
        pieces += [text(pattern[end : field.start()]), as_text(parts[field[1]])]
        end = field.end()
    pieces.append(text(pattern[end:]))
    return " + ".join(piece for piece in pieces if piece != "''")


def as_text(expression: str) -> str:
    """Return the value as a string, whatever its type is.

    Where a string is required, the API server assumes that an optional field is one and then cannot convert a number. Kubernetes' own kinds
    never write amounts as numbers, but other kinds may.
    """
    return f"string(dyn({expression}))"


def is_positive(expression: str) -> str:
    """Return CEL that is true if the value is a quantity above zero."""
    return f"isQuantity({as_text(expression)}) && quantity({as_text(expression)}).compareTo(quantity('0')) > 0"
