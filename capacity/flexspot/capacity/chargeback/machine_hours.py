"""Number of running machines of each type, by clock-hour: from Prometheus, or from a file of such hours."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.chargeback.ledger import MOVING_SECONDS
from flexspot.capacity.chargeback.nodes import UNKNOWN, KnownLabels, NameConflicts
from flexspot.capacity.chargeback.queries import Question, allow_list, queries
from flexspot.capacity.chargeback.samples import BRIDGED_STEPS, Matrix, SpanReader, merged
from flexspot.capacity.values.errors import ExitCode, ExplainedError
from flexspot.capacity.values.quantities import SECONDS_OF_AN_HOUR, as_decimal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from flexspot.capacity.chargeback.queries import Query
    from flexspot.capacity.chargeback.samples import Period, Seconds


@dataclass(frozen=True, order=True)
class MachineKind:
    """A machine type in a region, and how it was bought: a capacity type, or (unknown)."""

    machine: str
    region: str
    bought_as: str

    def __str__(self) -> str:
        return f"{self.bought_as} {self.machine} in {self.region}"


@dataclass
class MachineHours:
    """The nodes of each kind in the observed hours."""

    hours: tuple[Seconds, ...]
    """Starts of the clock-hours that were observed from end to end, in order."""

    nodes: dict[MachineKind, dict[Seconds, Fraction]]
    """Average number of nodes in each hour; an hour without an entry had none."""

    notes: list[str] = field(default_factory=list[str])
    """Explains to the reader how they were counted."""

    def of(self, kind: MachineKind) -> list[Fraction]:
        """Return the number of nodes of a kind in each of the hours."""
        found = self.nodes.get(kind, {})
        return [found.get(hour, Fraction(0)) for hour in self.hours]

    @property
    def span(self) -> int:
        """Number of hours from the first observed one to the last, both included."""
        return (self.hours[-1] - self.hours[0]) // SECONDS_OF_AN_HOUR + 1 if self.hours else 0

    @property
    def missing(self) -> int:
        """Number of hours between the first and the last that were not observed from end to end."""
        return self.span - len(self.hours)


def node_queries(match: str = "") -> tuple[Query, ...]:
    """Return the chargeback queries about nodes and their labels."""
    return tuple(each for each in queries(match) if each.question in {Question.NODES, Question.NODE_LABELS})


class MachineHoursReader:
    """Takes the answers to `node_queries` slice by slice in order, then is closed.

    An hour counts as observed if a node was seen at each of its moments. A cluster without nodes looks like a Prometheus that was not
    running, so its hours are not counted.
    """

    def __init__(self, period: Period, step: Seconds, bridged_steps: int = BRIDGED_STEPS) -> None:
        self._step = step
        self._labels = KnownLabels()
        self._spans = SpanReader[tuple[str, ...]](step, bridged_steps, period.end)
        self._seconds: dict[MachineKind, dict[Seconds, Seconds]] = {}
        self._looked: list[tuple[Seconds, Seconds]] = []
        self._doubled = NameConflicts()

    def take(self, answers: Mapping[Question, Matrix]) -> None:
        """Add the answers of one slice."""
        found = {question: answers.get(question, Matrix()).series for question in Question}
        self._labels.learn(found)
        nodes = merged(found[Question.NODES], "node", "provider_id", "system_uuid")
        self._doubled.see("node", ((key[0], key[1:], [moment for moment, _ in samples]) for key, samples in nodes.items()))
        looked = self._looked
        for key, samples in nodes.items():
            for span in self._spans.read(key, samples):
                looked.append((span.start, span.end))
                for facts, piece, _ in self._labels.of_node(key[0], span):
                    seconds = self._seconds.setdefault(MachineKind(facts.machine, facts.region, facts.bought_as), {})
                    for hour, part in _by_hour(piece.start, piece.end):
                        seconds[hour] = seconds.get(hour, 0) + part
        self._looked = _joined(looked)

    def close(self) -> MachineHours:
        """Return the machine hours after the last slice."""
        looked: dict[Seconds, Seconds] = {}
        for start, end in self._looked:
            for hour, part in _by_hour(start, end):
                looked[hour] = looked.get(hour, 0) + part
        hours = tuple(sorted(hour for hour, seconds in looked.items() if seconds == SECONDS_OF_AN_HOUR))
        whole = frozenset(hours)
        nodes = {
            kind: {hour: Fraction(part, SECONDS_OF_AN_HOUR) for hour, part in sorted(seconds.items()) if hour in whole}
            for kind, seconds in sorted(self._seconds.items())
        }
        return MachineHours(hours, {kind: each for kind, each in nodes.items() if each}, self._notes())

    def _notes(self) -> list[str]:
        doubled = self._labels.doubled.longer_than(MOVING_SECONDS, self._step) | self._doubled.longer_than(MOVING_SECONDS, self._step)
        notes = [f"{name} was reported as two things at once for {seconds / 60:.0f} minutes." for name, seconds in doubled.items()]
        if any(kind.machine == UNKNOWN for kind in self._seconds):
            notes.append(f"Some nodes had no label of their machine. Start kube-state-metrics with {allow_list()}")
        return notes


def _joined(spans: list[tuple[Seconds, Seconds]]) -> list[tuple[Seconds, Seconds]]:
    """Join spans that touch or overlap, in order."""
    joined: list[tuple[Seconds, Seconds]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


def _by_hour(start: Seconds, end: Seconds) -> Iterator[tuple[Seconds, Seconds]]:
    """Yield the clock-hours of a span, and its seconds in each."""
    while start < end:
        hour = start - start % SECONDS_OF_AN_HOUR
        until = min(end, hour + SECONDS_OF_AN_HOUR)
        yield hour, until - start
        start = until


COLUMNS = ("hour", "region", "machine", "capacity_type", "nodes")
"""Columns of a file of machine hours."""

_BOUGHT_AS = (*CapacityType, UNKNOWN)
_MOST_NODES = 1_000_000


def machine_hours_csv(found: MachineHours) -> str:
    """Return the hours as a CSV file that `read_machine_hours` reads, to the second."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for hour in found.hours:
        moment = datetime.fromtimestamp(hour, UTC).strftime("%Y-%m-%dT%H:%MZ")
        for kind, nodes in found.nodes.items():
            if hour in nodes:
                # A second is 0.00028 of an hour.
                shown = f"{as_decimal(nodes[hour]):.6f}".rstrip("0").rstrip(".")
                writer.writerow((moment, kind.region, kind.machine, kind.bought_as, shown))
    return text.getvalue()


def read_machine_hours(paths: Iterable[Path]) -> MachineHours:
    """Read the hours of CSV files with these COLUMNS together, such as a file for each month.

    `hour` is the start of a clock-hour in ISO 8601, in UTC unless it has an offset. Every hour in a row was observed, and has no nodes of
    the kinds without a row. `nodes` may be fractional, to the second. Raises ExplainedError with the line of the problem.
    """
    nodes: dict[MachineKind, dict[Seconds, Fraction]] = {}
    for path in paths:
        for number, row in _rows(path):
            where = f"{path}, line {number}"
            hour, kind = _hour(where, row["hour"]), MachineKind(row["machine"], row["region"], row["capacity_type"])
            if not kind.machine or not kind.region or kind.bought_as not in _BOUGHT_AS:
                raise _wrong(
                    f"{where}: {kind.machine!r}, {kind.region!r}, {kind.bought_as!r} are not machine, region and capacity type.",
                    f"give all three; capacity types are {', '.join(_BOUGHT_AS)}.",
                )
            if hour in nodes.setdefault(kind, {}):
                raise _wrong(f"{where}: the hour {row['hour']} of {kind} appears twice.", "leave one of the two rows out.")
            nodes[kind][hour] = _nodes(where, row["nodes"])
    hours = sorted({hour for each in nodes.values() for hour in each})
    if not hours:
        raise _wrong("there are no hours in the files of --history.", "give at least a row for each hour.")
    return MachineHours(tuple(hours), dict(sorted(nodes.items())))


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise _wrong(f"{path} cannot be read: {error}.", "name a CSV file.") from error
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        if sorted(reader.fieldnames or ()) != sorted(COLUMNS):
            raise _wrong(f"{path} has other columns.", f"its first line must be {','.join(COLUMNS)}.")
        for row in reader:
            if None in row or None in row.values():
                raise _wrong(f"{path}, line {reader.line_num}: it has not {len(COLUMNS)} fields.", "fix the row.")
            yield reader.line_num, {name: value.strip() for name, value in row.items()}
    except csv.Error as error:
        raise _wrong(f"{path}, line {reader.line_num}: {error}.", "fix it; it must be CSV.") from error


def _hour(where: str, text: str) -> Seconds:
    try:
        moment = datetime.fromisoformat(text)
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        seconds = 1.0
    if seconds % SECONDS_OF_AN_HOUR:
        raise _wrong(f"{where}: {text[:40]!r} is no start of a clock-hour.", "write it as in 2026-10-01T08:00Z.")
    return int(seconds)


def _nodes(where: str, text: str) -> Fraction:
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal("NaN")
    if not (number.is_finite() and 0 <= number <= _MOST_NODES):
        raise _wrong(f"{where}: {text[:40]!r} is not a number of nodes.", f"give one from 0 to {_MOST_NODES:,}, such as 4 or 2.5.")
    return Fraction(round(number * SECONDS_OF_AN_HOUR), SECONDS_OF_AN_HOUR)


def _wrong(problem: str, remedy: str) -> ExplainedError:
    return ExplainedError(problem, remedy, exit_code=ExitCode.BAD_USAGE)
