"""The time that a report is of, in whole seconds of UTC; calendars and daylight saving are met here alone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from capacity.chargeback.samples import Seconds

_YEARS = range(1971, 3000)
_MONTH = re.compile(r"(?P<year>\d{4})-(?P<month>0[1-9]|1[0-2])")


class PeriodError(ValueError):
    """A month, moment or time zone that cannot be used; the text says what is allowed."""


@dataclass(frozen=True)
class Period:
    """From `start` until before `end`, in seconds since 1970 UTC; `name` is what a reader calls it, in `timezone`."""

    start: Seconds
    end: Seconds
    name: str
    timezone: str

    @property
    def seconds(self) -> Seconds:
        """How long it is. A month in which clocks change is an hour longer or shorter than its days."""
        return self.end - self.start

    def until(self, moment: Seconds) -> Period:
        """What of it lies before `moment`. Raises PeriodError where nothing does."""
        if moment <= self.start:
            raise PeriodError(f"{self.name} has not begun: nothing has been recorded of it; choose a month that has")
        return Period(self.start, min(self.end, moment), self.name, self.timezone)

    def slices(self, seconds: Seconds) -> Iterator[tuple[Seconds, Seconds]]:
        """The period in pieces of `seconds`, the last one shorter."""
        for start in range(self.start, self.end, seconds):
            yield start, min(start + seconds, self.end)


def zone_of(name: str) -> ZoneInfo:
    """The time zone. Raises PeriodError for a name that the IANA database does not have."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise PeriodError(f"time zone {name!r} is not known; write one of the IANA database, such as UTC or Europe/Berlin") from error


def month_period(month: str, timezone: str) -> Period:
    """A calendar month such as 2026-10, from midnight to midnight in `timezone`. Raises PeriodError."""
    found = _MONTH.fullmatch(month)
    if found is None:
        raise PeriodError(f"month {month!r} is not a month; write YYYY-MM, such as 2026-10")
    zone = zone_of(timezone)
    year, number = int(found["year"]), int(found["month"])
    if year not in _YEARS:
        raise PeriodError(f"month {month!r} is outside of what can be reckoned with; write a year from {_YEARS[0]} to {_YEARS[-1]}")
    after = (year + 1, 1) if number == 12 else (year, number + 1)  # noqa: PLR2004 -- the months of a year
    start, end = (int(datetime(*each, 1, tzinfo=zone).timestamp()) for each in ((year, number), after))
    return Period(start, end, month, timezone)


def period_between(start: str, end: str, timezone: str) -> Period:
    """From one moment to another, each a date or a date and time of ISO 8601; one without an offset is in `timezone`.

    Raises PeriodError for what is no moment, and for an end that is not after the start.
    """
    zone = zone_of(timezone)
    first, last = _moment(start, zone), _moment(end, zone)
    if last <= first:
        raise PeriodError(f"{end} is not after {start}; give an end after the start")
    return Period(first, last, f"{start} to {end}", timezone)


def _moment(written: str, zone: ZoneInfo) -> Seconds:
    try:
        moment = datetime.fromisoformat(written)
    except ValueError as error:
        raise PeriodError(f"{written!r} is not a moment; write a date or time of ISO 8601, such as 2026-10-01T08:00") from error
    return int((moment if moment.tzinfo else moment.replace(tzinfo=zone)).timestamp())
