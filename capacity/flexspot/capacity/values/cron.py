"""Validation of cron schedules as Karpenter parses them: five fields, each within its bounds, no range from high to low.

Karpenter uses the standard parser of github.com/robfig/cron v3 (read 2026-11-24: parser.go, spec.go). The API server's pattern is looser. A
schedule that passes the pattern and not the parser keeps the whole NodePool from being disrupted, and no event of the API server reports
it.
"""

from __future__ import annotations

import re

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")

_FIELDS = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of the month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    # The parser does not accept 7 for Sunday.
    ("day of the week", 0, 6, _DAYS),
)

_PART = re.compile(r"(?:(?P<all>[*?])|(?P<low>\w+)(?:-(?P<high>\w+))?)(?:/(?P<step>\d+))?")


def cron_problem(schedule: str) -> str | None:
    """Return the problem of a schedule of five fields, such as `0 8 * * mon-fri`, or None if it is valid."""
    fields = schedule.split()
    if len(fields) != len(_FIELDS):
        found = "1 field" if len(fields) == 1 else f"{len(fields)} fields"
        return f"it has {found}; cron has five: minute, hour, day of the month, month, day of the week"
    for written, (field, least, most, names) in zip(fields, _FIELDS, strict=True):
        for part in written.split(","):
            if problem := _part_problem(part, least, most, names):
                return f"its {field} {written} {problem}"
    return None


def _part_problem(part: str, least: int, most: int, names: tuple[str, ...]) -> str | None:
    match = _PART.fullmatch(part)
    if match is None:
        return "is not a value, range or step, such as 8, 8-18 or */2"
    if match["step"] is not None and int(match["step"]) == 0:
        return "has a step of 0; a step is 1 or more"
    ends = [_number(written, least, names) for written in (match["low"], match["high"]) if written is not None]
    if any(end is None or not least <= end <= most for end in ends):
        named = f" or {names[0]} to {names[-1]}" if names else ""
        return f"is not within {least} to {most}{named}"
    known = [end for end in ends if end is not None]
    if known != sorted(known):
        return f"goes from high to low; write two, such as {match['low']},{match['high']}"
    return None


def _number(written: str, least: int, names: tuple[str, ...]) -> int | None:
    if written.lower() in names:
        return names.index(written.lower()) + least
    return int(written) if written.isascii() and written.isdigit() else None
