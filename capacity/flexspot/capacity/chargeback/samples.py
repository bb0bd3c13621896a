"""The period of a report, and Prometheus' answers about it as plain data."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence


_YEARS = range(1971, 3000)
_MONTH = re.compile(r"(?P<year>\d{4})-(?P<month>0[1-9]|1[0-2])")


class PeriodError(ValueError):
    """An unusable month, moment or time zone. The text says what is allowed."""


@dataclass(frozen=True)
class Period:
    """A time from `start` until before `end`, in seconds since 1970 UTC; `name` is its name for readers, in `timezone`."""

    start: Seconds
    end: Seconds
    name: str
    timezone: str

    @property
    def seconds(self) -> Seconds:
        """Length in seconds. A month in which clocks change is an hour longer or shorter than its days."""
        return self.end - self.start

    def until(self, moment: Seconds) -> Period:
        """Return the part before `moment`. Raises PeriodError if nothing is left."""
        if moment <= self.start:
            raise PeriodError(f"{self.name} has not begun: nothing has been recorded of it; choose a month that has")
        return Period(self.start, min(self.end, moment), self.name, self.timezone)

    def slices(self, seconds: Seconds) -> Iterator[tuple[Seconds, Seconds]]:
        """Yield the period in pieces of `seconds`, the last one shorter."""
        for start in range(self.start, self.end, seconds):
            yield start, min(start + seconds, self.end)


def zone_of(name: str) -> ZoneInfo:
    """Return the time zone. Raises PeriodError for a name that is not in the IANA database."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise PeriodError(f"time zone {name!r} is not known; write one of the IANA database, such as UTC or Europe/Berlin") from error


def month_period(month: str, timezone: str) -> Period:
    """Return a calendar month such as 2026-10, from midnight to midnight in `timezone`. Raises PeriodError."""
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
    """Return the period between two moments: dates, or dates and times of ISO 8601; without an offset they are in `timezone`.

    Raises PeriodError for anything else, and for an end that is not after the start.
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


Seconds = int
"""Seconds since 1970 UTC, or a number of seconds."""

Labels = dict[str, str]


class MalformedReplyError(ValueError):
    """A reply that does not have the form of Prometheus' API."""


@dataclass(frozen=True)
class Series:
    """The samples of one set of labels, oldest first."""

    labels: Labels
    samples: list[tuple[Seconds, float]]


@dataclass
class Matrix:
    """The result of a range query. `dropped` counts samples that are not numbers (NaN, Inf) and are ignored."""

    series: list[Series] = field(default_factory=list[Series])
    dropped: int = 0


def read_matrix(result: object) -> Matrix:
    """Parse the `data.result` of a range query. Raises MalformedReplyError."""
    matrix = Matrix()
    try:
        for each in cast("list[dict[str, Any]]", result):
            labels = {str(key): str(value) for key, value in each["metric"].items()}
            read = [(round(moment), float(text)) for moment, text in each["values"]]
            samples = [sample for sample in read if math.isfinite(sample[1])]
            matrix.dropped += len(read) - len(samples)
            samples.sort()
            if samples:
                matrix.series.append(Series(labels, samples))
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
        raise MalformedReplyError("a series without labels and values") from error
    return matrix


def named(labels: Mapping[str, str], name: str) -> str:
    """Return a label as the exporter set it. Prometheus renames it if it conflicts with its own: honor_labels is false by default.

    https://prometheus.io/docs/prometheus/latest/configuration/configuration/#scrape_config
    """
    return labels.get(f"exported_{name}") or labels.get(name, "")


def merged(series: list[Series], *names: str) -> dict[tuple[str, ...], list[tuple[Seconds, float]]]:
    """Return the samples by the values of `names`. Two series with the same moment are replicas of one object: the greater value counts."""
    found: dict[tuple[str, ...], list[list[tuple[Seconds, float]]]] = {}
    for each in series:
        found.setdefault(tuple(named(each.labels, name) for name in names), []).append(each.samples)
    return {key: parts[0] if len(parts) == 1 else _greatest(parts) for key, parts in found.items()}


def _greatest(parts: list[list[tuple[Seconds, float]]]) -> list[tuple[Seconds, float]]:
    values: dict[Seconds, float] = {}
    for samples in parts:
        for moment, value in samples:
            values[moment] = max(value, values.get(moment, value))
    return sorted(values.items())


KeyT = TypeVar("KeyT", bound="Hashable")
ValueT = TypeVar("ValueT")

BRIDGED_STEPS = 5
"""Default number of missing samples that are assumed to equal the sample before."""


@dataclass(frozen=True)
class Span:
    """`value` from `start` until before `end`."""

    start: Seconds
    end: Seconds
    value: float

    @property
    def seconds(self) -> Seconds:
        """Length in seconds."""
        return self.end - self.start


@dataclass(frozen=True)
class Gap:
    """A time between two samples of `name`, longer than is bridged. It is not counted."""

    name: str
    start: Seconds
    end: Seconds


class SpanReader(Generic[KeyT]):
    """Turns samples into spans, slice by slice, and keeps only the last sample of each key.

    A sample at t stands for t until before t + `step`, so n samples are n steps: a start and an end are each off by less than a step. Up to
    `bridged_steps` missing samples are assumed to equal the one before. More end the span and are reported as a gap. `end` clips spans.
    """

    def __init__(self, step: Seconds, bridged_steps: int, end: Seconds) -> None:
        self._step = step
        self._bridged = step * (bridged_steps + 1)
        self._end = end
        self._last: dict[KeyT, tuple[Seconds, float]] = {}
        self.gaps: list[tuple[KeyT, Seconds, Seconds]] = []

    def read(self, key: KeyT, samples: Sequence[tuple[Seconds, float]]) -> Iterator[Span]:
        """Yield the spans of more samples of `key`, oldest first; they touch where nothing is missing."""
        start: Seconds | None = None
        reached, value = self._last.get(key, (None, 0.0))
        reached = None if reached is None else reached + self._step
        for moment, found in samples:
            missing = 0 if reached is None else moment - reached
            if missing < 0:
                # Counted already.
                continue
            if missing > 0:
                if missing + self._step <= self._bridged:
                    if start is None:
                        start = reached
                    reached = moment
                else:
                    self.gaps.append((key, moment - missing, moment))
            if start is None:
                start = moment
            elif found != value or reached != moment:
                yield from self._clipped(start, reached or moment, value)
                start = moment
            reached, value = moment + self._step, found
        if start is not None and reached is not None:
            yield from self._clipped(start, reached, value)
            self._last[key] = (reached - self._step, value)

    def _clipped(self, start: Seconds, end: Seconds, value: float) -> Iterator[Span]:
        if start < min(end, self._end):
            yield Span(start, min(end, self._end), value)


class Timeline(Generic[ValueT]):
    """Values of something over time."""

    def __init__(self) -> None:
        self._moments: list[Seconds] = []
        self._values: list[ValueT] = []

    def learn(self, moment: Seconds, value: ValueT) -> None:
        """Set the value from `moment` on. Moments must rise."""
        if not self._values or self._values[-1] != value:
            self._moments.append(moment)
            self._values.append(value)

    @property
    def last(self) -> ValueT | None:
        """The last known value; None before the first."""
        return self._values[-1] if self._values else None

    def at(self, moment: Seconds) -> ValueT:
        """Return the value at a moment: the newest before, or else the first. An object exists before its labels are seen."""
        return self._values[max(0, bisect_right(self._moments, moment) - 1)]

    def cut(self, span: Span) -> Iterator[Span]:
        """Split the span at the moments at which the sampled value changes."""
        start = span.start
        for moment in self._moments[bisect_right(self._moments, span.start) :]:
            if moment >= span.end:
                break
            # The first sample also covers the time before it, so it is no split point.
            if moment != self._moments[0]:
                yield Span(start, moment, span.value)
                start = moment
        yield Span(start, span.end, span.value)

    def keep_last(self) -> None:
        """Forget all but the last value, for the next slice."""
        del self._moments[:-1], self._values[:-1]
