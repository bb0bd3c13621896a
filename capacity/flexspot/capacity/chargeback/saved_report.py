"""Reads reports from the JSON that `flexspot chargeback report --format json` writes, and compares the months of one cluster."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from flexspot.capacity.chargeback.samples import Period, PeriodError, month_period
from flexspot.capacity.values.errors import ExitCode, ExplainedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path


MAX_REPORT_BYTES = 256 * 2**20
"""Largest size of a report, which contains only sums."""


class ReportError(ValueError):
    """A report that cannot be used, and why."""


class SavedPart(BaseModel):
    """A part of a report. Keys that are not needed are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


Cents = Annotated[Decimal, Field(ge=0, le=10**15, decimal_places=2)]


def _unix_seconds(written: Any) -> int:
    return int(datetime.fromisoformat(written).timestamp())


Moment = Annotated[int, BeforeValidator(_unix_seconds)]
"""Seconds of Unix time, which a report has in ISO 8601."""


class SavedPeriod(SavedPart):
    """The time from `start` until before `end`."""

    name: str
    start: Moment = Field(alias="from")
    end: Moment = Field(alias="to")


class SavedReport(SavedPart):
    """The part of a report that every reader needs."""

    period: SavedPeriod
    complete: bool
    node_usd: Cents

    def refuse_another_sum(self, parts: str, amounts: Iterable[Decimal]) -> None:
        """Raise ReportError if the `parts` of a report, such as its lines, do not sum to the cost of its nodes."""
        if (summed := sum(amounts, Decimal(0))) != self.node_usd:
            mismatch = f"{summed} USD and not to its {self.node_usd} USD"
            raise ReportError(f"its {parts} sum to {mismatch}: it was changed by hand, or is cut off")


ReportT = TypeVar("ReportT", bound=SavedReport)


def _read_saved(path: Path, model: type[ReportT]) -> ReportT:
    """Read a report. Raises ReportError for a file that is not such a report, OSError for a missing one."""
    if path.stat().st_size > MAX_REPORT_BYTES:
        raise ReportError(f"it is longer than {MAX_REPORT_BYTES // 2**20} MiB, as no report is")
    try:
        return model.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, each['loc'])) or 'it'}: {each['msg']}" for each in error.errors()[:5])
        raise ReportError(f"it is not a report of flexspot chargeback report --format json: {problems}") from error
    except (ValueError, TypeError, RecursionError, OverflowError) as error:
        raise ReportError(f"it is not a report of flexspot chargeback report --format json: {error}") from error


Whole = Annotated[int, Field(ge=0, le=10**15)]


class ReportedNodes(SavedPart):
    """A NodeGroup."""

    cloud: str
    region: str
    machine: str
    capacity_type: str
    nodes: Whole
    node_seconds: Whole
    unpriced_seconds: Whole
    unused_seconds: Whole
    usd: Cents


class ReportedMonth(SavedReport):
    """The nodes of a report, whose cents sum to `node_usd`."""

    step_seconds: Annotated[int, Field(ge=1, le=3600)]
    nodes: list[ReportedNodes]


def read_report(path: Path) -> ReportedMonth:
    """Read the nodes of a report.

    Raises ReportError for a file that is not such a report or whose nodes do not sum to it; OSError for one that cannot be read.
    """
    report = _read_saved(path, ReportedMonth)
    report.refuse_another_sum("nodes", (each.usd for each in report.nodes))
    if report.period.end <= report.period.start:
        raise ReportError("its period ends before it begins")
    return report


class _Period(SavedPeriod):
    timezone: str


class _Line(SavedPart):
    team: str
    total_usd: Cents


class _Of(SavedPart):
    prometheus: str
    match: str


class ReportedTeams(SavedReport):
    """Payments of each team, or payer such as (central), for nodes in a month up to the period's end. `of` identifies the cluster."""

    period: _Period
    idle_policy: str
    extra_usd: Cents
    credit_usd: Cents
    lines: list[_Line]
    unknown_prices: list[Any]
    gaps: list[Any]
    unmatched: list[Any]
    uncommitted: list[Any]
    doubled: list[Any]
    of: _Of

    @property
    def month(self) -> Period:
        """The whole month. Raises PeriodError if the period is not a calendar month."""
        return month_period(self.period.name, self.period.timezone)

    @property
    def teams(self) -> dict[str, Decimal]:
        """Payment of each team."""
        found: dict[str, Decimal] = {}
        for line in self.lines:
            found[line.team] = found.get(line.team, Decimal(0)) + line.total_usd
        return found

    @property
    def missing(self) -> bool:
        """True if something is missing from the sums, so that amounts are "at least"."""
        # A later version may have another reason to be incomplete: its `complete` is trusted.
        gaps = self.unknown_prices or self.gaps or self.unmatched or self.uncommitted or self.doubled
        return bool(gaps) or (self.over and not self.complete)

    @property
    def over(self) -> bool:
        """True if the whole month is in it."""
        return self.period.end == self.month.end

    @property
    def usable(self) -> bool:
        """True if the month can be compared with others: it is over, and nothing is missing."""
        return self.over and not self.missing


def read_teams(path: Path) -> ReportedTeams:
    """Read the team lines of a report.

    Raises ReportError for a file that is not such a report, is not of a calendar month or whose lines do not sum; OSError for a missing
    file.
    """
    report = _read_saved(path, ReportedTeams)
    period = report.period
    try:
        month = report.month
    except PeriodError as error:
        raise ReportError(f"it is of {period.name}, which is not a calendar month: make it with --month") from error
    if period.start != month.start or not period.start < period.end <= month.end:
        raise ReportError(f"its times are not those of {month.name} in {month.timezone}: it was changed by hand")
    report.refuse_another_sum("lines", (line.total_usd for line in report.lines))
    return report


@dataclass(frozen=True)
class MonthOf:
    """A team in a month."""

    usd: Decimal
    change: Decimal | None
    """Change from the month before. None unless both months are usable."""

    change_share: float | None


@dataclass(frozen=True)
class Row:
    """A team, or all of them, month by month."""

    team: str
    months: tuple[MonthOf, ...]


@dataclass(frozen=True)
class Trend:
    """Costs of teams over several months."""

    months: tuple[ReportedTeams, ...]
    rows: tuple[Row, ...]
    """By the cost of the last month, the most expensive first."""

    total: Row
    """Sum of all teams."""

    missing: tuple[str, ...]
    """Months between without a report."""

    notes: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """True if every month exists and is complete, except that the last one may not be over."""
        return not self.missing and all(each.usable for each in self.months[:-1]) and not self.months[-1].missing


def trend_of(reports: Iterable[ReportedTeams]) -> Trend:
    """Compare the months of reports.

    Raises ExplainedError for two reports of one month, and for reports of several clusters, time zones or idle policies.
    """
    months = tuple(sorted(reports, key=lambda each: each.month.start))
    _refuse_mixed(months)
    teams = sorted({team for each in months for team in each.teams})
    nothing = Decimal("0.00")
    amounts = {team: tuple(each.teams.get(team, nothing) for each in months) for team in teams}
    total = Row("total", _months_of(months, [each.node_usd for each in months]))
    rows = (Row(team, _months_of(months, of)) for team, of in amounts.items())
    missing = tuple(name for before, after in pairwise(months) for name in _between(before.month.name, after.month.name))
    ranked = sorted(rows, key=lambda row: (*(-each.usd for each in reversed(row.months)), row.team))
    return Trend(months, tuple(ranked), total, missing, tuple(_notes(months)))


def _refuse_mixed(months: Sequence[ReportedTeams]) -> None:
    for before, after in pairwise(months):
        if before.month.name == after.month.name:
            raise _wrong(f"two reports are of {after.month.name}, which would count twice", "give one of each month")
    mixed = {
        "time zones, so that their months overlap": {each.month.timezone for each in months},
        "ways to pay for idle GPUs (--idle), so that teams' amounts are not the same thing": {each.idle_policy for each in months},
        "clusters (--match)": {each.of.match for each in months},
    }
    for what, values in mixed.items():
        if len(values) > 1:
            named = ", ".join(each or "none" for each in sorted(values))
            raise _wrong(f"the reports have several {what}: {named}", "give reports that were made in one way")


def _wrong(problem: str, remedy: str) -> ExplainedError:
    return ExplainedError(f"{problem}.", f"{remedy}.", exit_code=ExitCode.BAD_USAGE)


def _notes(months: Sequence[ReportedTeams]) -> Iterator[str]:
    urls = sorted({each.of.prometheus for each in months})
    if len(urls) > 1:
        yield f"The reports were read from several addresses, which may be of several clusters: {', '.join(urls)}."
    for each in months:
        if each.missing:
            yield f"{each.month.name} is not complete: its amounts are lower bounds, and no change is calculated from it."
    for each in months[:-1]:
        if not each.over:
            yield f"{each.month.name} was not over when its report was created: create it again. No change is calculated from it."
    if extra := [each.month.name for each in months if each.extra_usd]:
        yield f"Storage and egress of {', '.join(extra)} are not in it: these are amounts of nodes."
    if credits_of := [each.month.name for each in months if each.credit_usd]:
        yield f"Credits of {', '.join(credits_of)} are not in it: these are amounts of nodes."


def _between(before: str, after: str) -> Iterator[str]:
    year, month = map(int, before.split("-"))
    while True:
        year, month = (year + 1, 1) if month == 12 else (year, month + 1)  # noqa: PLR2004 -- the months of a year
        name = date(year, month, 1).strftime("%Y-%m")
        if name == after:
            return
        yield name


def _months_of(months: Sequence[ReportedTeams], amounts: Sequence[Decimal]) -> tuple[MonthOf, ...]:
    found: list[MonthOf] = []
    for number, (month, usd) in enumerate(zip(months, amounts, strict=True)):
        before = months[number - 1] if number else None
        next_to = before is not None and not [*_between(before.month.name, month.month.name)]
        comparable = before is not None and next_to and before.usable and month.usable
        was = amounts[number - 1] if comparable else None
        change = None if was is None else usd - was
        share = float(change / was) if change is not None and was else None
        found.append(MonthOf(usd, change, share))
    return tuple(found)
