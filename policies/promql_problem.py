"""Why an expression is no PromQL, in the parser's words, as far as the parser can be trusted to know."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from policies.promql import parsed, too_long
from policies.unknown import UNKNOWN

if TYPE_CHECKING:
    from policies.unknown import Unknown

_WORDS: Final = 120

# Prometheus behind a feature flag takes more than the parser (promql-parser 0.12): calculated durations and modifiers of ranges.
_EXPERIMENTAL = re.compile(r"\[[^\]\"']*[-+*/%^][^\]\"']*\]|\b(?:anchored|smoothed|fill)\b")


def promql_problem(text: str) -> str | Unknown:
    """What is wrong with an expression, empty for one that can be read.

    UNKNOWN for one that is too long to be read, and for what another Prometheus may take: functions that came or went with a release, and
    syntax that has to be turned on.
    """
    if too_long(text):
        return UNKNOWN
    if parsed(text) is not None:
        return ""
    import promql_parser  # noqa: PLC0415 -- only where there is an expression

    try:
        promql_parser.parse(text)
    except ValueError as error:
        said = " ".join(str(error).split())[:_WORDS]
        return UNKNOWN if said.startswith("unknown function") or _EXPERIMENTAL.search(text) else said
    except BaseException as error:  # as in policies.promql: a panic of the parser's is a defect of the parser
        if type(error).__name__ != "PanicException":
            raise
    return UNKNOWN
