"""CEL that is true if a violation is accepted."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from flexspot.policies.admission.cel import either, every
from flexspot.policies.admission.variables import NAMES
from flexspot.policies.values.finding import PREFIX, ConfiguredSuppression

if TYPE_CHECKING:
    from collections.abc import Iterable


def accepted(rule: str) -> str:
    """Return CEL that is true if an annotation of the object or its pod templates accepts a violation."""
    return NAMES.but(ignores=PREFIX + rule).cel("$accepted")


def accepted_in_settings(suppressions: Iterable[ConfiguredSuppression]) -> str:
    """Return CEL that is true if the settings suppress a rule for the object, without an expired date.

    `suppressions` are those of the rule.
    """
    return either(
        *(
            every(
                NAMES.but(pattern=_pattern(each.objects)).cel("$isNamed"),
                NAMES.but(until=f"{each.suppression.until}T99").cel("$created <= $until") if each.suppression.until else "true",
            )
            for each in suppressions
        )
    )


_SIGN = re.compile(r"(\[[^\]]+\]|[*?])")


def _pattern(objects: str) -> str:
    """Return a pattern of fnmatch as a regular expression of CEL."""
    made = {"*": ".*", "?": "."}
    # Splitting at a group returns the matches of the group as every second part.
    parts = enumerate(_SIGN.split(objects))
    return f"^(?:{''.join(made.get(part, part.replace('[!', '[^', 1)) if place % 2 else re.escape(part) for place, part in parts)})$"
