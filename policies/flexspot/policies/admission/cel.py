"""Writing CEL: literals, fields that may be missing, sentences.

What is written keeps to what every evaluator of CEL has: has, all, exists, filter, map, in, the ternary operator, optional fields, the
functions of strings, and of Kubernetes' own library quantity, isQuantity, and min and max of whole numbers alone.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_FIELD = re.compile(r"\{(\w+)\}")

FEW_PLACES, MOST_PLACES = 64, 256
"""How long nearly all lists of a pod or of a job are, and how long one may be whose elements are looked at by place; in teams' namespaces a
longer one is refused."""


def text(value: str) -> str:
    """A literal."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"'{escaped}'"


def texts(values: Iterable[str]) -> str:
    """A literal list."""
    return f"[{', '.join(map(text, values))}]"


def mapping(entries: Mapping[str, str]) -> str:
    """A literal mapping of texts."""
    return "{" + ", ".join(f"{text(key)}: {text(value)}" for key, value in entries.items()) + "}"


def optional(base: str, *steps: str) -> str:
    """The field below `base`, as an optional: any of the steps may be missing."""
    return base + "".join(f".?{step}" for step in steps)


def text_at(base: str, *steps: str) -> str:
    """The text below `base`, empty where there is none."""
    return f"{optional(base, *steps)}.orValue('')"


def list_at(base: str, *steps: str) -> str:
    """The list below `base`, empty where there is none."""
    return f"{optional(base, *steps)}.orValue([])"


def mapping_at(base: str, *steps: str) -> str:
    """The mapping below `base`, empty where there is none."""
    return f"{optional(base, *steps)}.orValue({{}})"


def entry(mapping: str, key: str) -> str:
    """The text under `key`, which is an expression; empty where there is none."""
    return f"{mapping}[?{key}].orValue('')"


def places_between(first: int, end: int) -> str:
    """The places from `first` up to `end`, which is none of them."""
    return f"[{', '.join(map(str, range(first, end)))}]"


PLACES = places_between(0, FEW_PLACES)
"""The places of a list: CEL's macros give elements without saying where they stand."""

FURTHER_PLACES = places_between(FEW_PLACES, MOST_PLACES)
"""Those of a long list, for which long lists alone pay."""


def all_places(listed: str) -> str:
    """As many places as the list may have, or more; of the variables `places` and `furtherPlaces`."""
    return f"(size({listed}) > {FEW_PLACES} ? variables.places + variables.furtherPlaces : variables.places)"


def places(listed: str) -> str:
    """The places of a list."""
    return f"{all_places(listed)}.filter(i, i < size({listed}))"


def either(*conditions: str) -> str:
    """Whether one of the conditions holds."""
    return " || ".join(f"({each})" for each in conditions) or "false"


def every(*conditions: str) -> str:
    """Whether all conditions hold."""
    return " && ".join(f"({each})" for each in conditions) or "true"


def let(name: str, value: str, body: str) -> str:
    """`body` with a name for a value that is long to write."""
    return f"[{value}].map({name}, {body})[0]"


def first_of(*cases: tuple[str, str], otherwise: str = "''") -> str:
    """The value of the first case, a condition and a value, whose condition holds."""
    return "".join(f"({condition}) ? ({value}) : " for condition, value in cases) + f"({otherwise})"


def sentence(pattern: str, **parts: str) -> str:
    """A text with fields in braces, as CEL that puts the parts, expressions of texts, into their places."""
    pieces: list[str] = []
    end = 0
    for field in _FIELD.finditer(pattern):
        pieces += [text(pattern[end : field.start()]), as_text(parts[field[1]])]
        end = field.end()
    pieces.append(text(pattern[end:]))
    return " + ".join(piece for piece in pieces if piece != "''")


def as_text(expression: str) -> str:
    """What stands there as a text, whatever it is.

    The API server takes the value of an optional field for a text where a text is asked for, and then has no way to make one of a number,
    which is how kinds of Kubernetes' own never write an amount, and all others may.
    """
    return f"string(dyn({expression}))"


def amount(expression: str) -> str:
    """The quantity that stands there as a number or a text."""
    return f"quantity({as_text(expression)})"


def is_positive(expression: str) -> str:
    """Whether a quantity stands there that is above nothing."""
    return f"isQuantity({as_text(expression)}) && {amount(expression)}.compareTo(quantity('0')) > 0"
