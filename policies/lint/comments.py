"""Comments that accept a violation, spelt as the annotation is: `# flexspot.dev/ignore-RULE: REASON; until=2027-03-31; by=team-a`."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from policies.values.finding import PREFIX, Suppression, check_suppression, read_annotation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import date

_COMMENT: Final = re.compile(rf"(?:^|\s)#\s*{re.escape(PREFIX)}(?P<rule>[\w-]+)\s*:?(?P<text>.*)$")
_ONLY_COMMENT: Final = re.compile(r"\s*#")


class Refused(NamedTuple):
    """A comment that accepts nothing: its line, and why."""

    line: int
    reason: str


class Comments:
    """The comments of files, looked for where there is a finding. `text_of` gives a file's text again, by the path in its manifests.

    `locked` says of every rule that there is whether it may be suppressed; a comment that ended before `today` counts no more.
    """

    def __init__(self, text_of: Callable[[str], bytes], locked: Mapping[str, bool], today: date) -> None:
        self._locked, self._today = locked, today

        def lines(path: str) -> list[str]:
            try:
                text = text_of(path)
            except OSError:
                return []
            return text.decode(errors="replace").splitlines() if PREFIX.encode() in text else []

        self._lines = cache(lines)

    def of(self, path: str, rule: str, *places: int) -> Suppression | Refused | None:
        """What is said of a rule at one of these lines: on it, or in the comments right above it. The first line is that of the finding."""
        lines = self._lines(path)
        refused: Refused | None = None
        for place in places if lines else ():
            for number in _around(lines, place):
                match = _COMMENT.search(lines[number - 1])
                if match is None or match["rule"] != rule:
                    continue
                try:
                    suppression = read_annotation(match["text"])
                    check_suppression(rule, suppression, self._locked, self._today)
                except ValueError as error:
                    refused = refused or Refused(number, f"comment {PREFIX}{rule}: {error}")
                else:
                    return suppression
        return refused

    def misspelt(self, path: str) -> list[Refused]:
        """The comments of a file that name no rule."""
        found: list[Refused] = []
        for number, line in enumerate(self._lines(path), start=1):
            match = _COMMENT.search(line)
            if match and match["rule"] not in self._locked:
                try:
                    check_suppression(match["rule"], Suppression("any"), self._locked, self._today)
                except ValueError as error:
                    found.append(Refused(number, f"comment {PREFIX}{match['rule']}: {error}"))
        return found


def _around(lines: list[str], place: int) -> list[int]:
    """A line and the lines of comments right above it, by number."""
    if not 0 < place <= len(lines):
        return []
    found = [place]
    while found[-1] > 1 and _ONLY_COMMENT.match(lines[found[-1] - 2]):
        found.append(found[-1] - 1)
    return found
