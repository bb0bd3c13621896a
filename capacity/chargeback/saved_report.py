"""A report, read again from the JSON that `flexspot chargeback --format json` writes: its nodes, and what teams paid in a month."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from capacity.chargeback.samples import Period, PeriodError, month_period

if TYPE_CHECKING:
    from pathlib import Path


MAX_REPORT_BYTES = 256 * 2**20
"""No report is longer: it holds sums."""


class ReportError(ValueError):
    """A report that cannot be used, and why."""


class Part(BaseModel):
    """Reports say more than is needed of them."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


Cents = Annotated[Decimal, Field(ge=0, le=10**15, decimal_places=2)]


class SavedPeriod(Part):
    """Its times are in ISO 8601."""

    name: str
    start: str = Field(alias="from")
    end: str = Field(alias="to")


class SavedReport(Part):
    """What every reader needs."""

    period: SavedPeriod
    complete: bool
    node_usd: Cents


ReportT = TypeVar("ReportT", bound=SavedReport)


def _read_saved(path: Path, model: type[ReportT]) -> tuple[ReportT, int, int]:
    """The report, and its period in seconds of Unix time. Raises ReportError for a file that is no such report, OSError for no file."""
    if path.stat().st_size > MAX_REPORT_BYTES:
        raise ReportError(f"it is longer than {MAX_REPORT_BYTES // 2**20} MiB, as no report is")
    try:
        report = model.model_validate(json.loads(path.read_text(encoding="utf-8")))
        start, end = (int(datetime.fromisoformat(each).timestamp()) for each in (report.period.start, report.period.end))
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, each['loc'])) or 'it'}: {each['msg']}" for each in error.errors()[:5])
        raise ReportError(f"it is not a report of flexspot chargeback --format json: {problems}") from error
    except (ValueError, RecursionError) as error:
        raise ReportError(f"it is not a report of flexspot chargeback --format json: {error}") from error
    return report, start, end


def _refuse_another_sum(parts: str, summed: Decimal, report: SavedReport) -> None:
    """Raises ReportError where the `parts` of a report, such as its lines, do not sum to what its nodes cost."""
    if summed != report.node_usd:
        amounts = f"{summed} USD and not to its {report.node_usd} USD"
        raise ReportError(f"its {parts} sum to {amounts}: it was changed by hand, or is cut off")


Whole = Annotated[int, Field(ge=0, le=10**15)]


class ReportedNodes(Part):
    """See NodeGroup."""

    cloud: str
    region: str
    machine: str
    capacity_type: str
    nodes: Whole
    node_seconds: Whole
    unpriced_seconds: Whole
    unused_seconds: Whole
    usd: Cents


class _NodesReport(SavedReport):
    step_seconds: Annotated[int, Field(ge=1, le=3600)]
    nodes: list[ReportedNodes]


@dataclass(frozen=True)
class ReportedMonth:
    """What a report says: its period in seconds of Unix time, and its nodes, whose cents sum to `node_usd`."""

    name: str
    start: int
    end: int
    step_seconds: int
    complete: bool
    node_usd: Decimal
    nodes: tuple[ReportedNodes, ...]


def read_report(path: Path) -> ReportedMonth:
    """Raises ReportError for a file that is no such report, or whose nodes do not sum to it; OSError for one that cannot be read."""
    report, start, end = _read_saved(path, _NodesReport)
    _refuse_another_sum("nodes", sum((each.usd for each in report.nodes), Decimal(0)), report)
    if end <= start:
        raise ReportError("its period ends before it begins")
    return ReportedMonth(report.period.name, start, end, report.step_seconds, report.complete, report.node_usd, tuple(report.nodes))


class _Period(SavedPeriod):
    timezone: str


class _Line(Part):
    team: str
    total_usd: Cents


class _Of(Part):
    prometheus: str
    match: str


class _TeamsReport(SavedReport):
    period: _Period
    idle_policy: str
    extra_usd: Cents
    credit_usd: Cents
    lines: list[_Line]
    unknown_prices: list[Any]
    gaps: list[Any]
    homeless: list[Any]
    uncommitted: list[Any]
    doubled: list[Any]
    of: _Of


@dataclass(frozen=True)
class ReportedTeams:
    """What each team, or word such as (central), paid for nodes in `month`, of which all until `end` is in the report.

    `missing`: something is in no sum, so that amounts are "at least". `prometheus` and `match` say of which cluster it is.
    """

    month: Period
    end: int
    idle: str
    missing: bool
    extra_usd: Decimal
    credit_usd: Decimal
    teams: dict[str, Decimal]
    prometheus: str
    match: str

    @property
    def over(self) -> bool:
        """Whether the whole month is in it."""
        return self.end == self.month.end

    @property
    def usable(self) -> bool:
        """Whether the month can be held against others: it is over, and nothing is missing."""
        return self.over and not self.missing

    @property
    def usd(self) -> Decimal:
        """What all nodes cost."""
        return sum(self.teams.values(), Decimal(0))


def read_teams(path: Path) -> ReportedTeams:
    """Raises ReportError for a file that is no such report, of no calendar month or whose lines do not sum; OSError for no file at all."""
    report, start, end = _read_saved(path, _TeamsReport)
    try:
        month = month_period(report.period.name, report.period.timezone)
    except PeriodError as error:
        raise ReportError(f"it is of {report.period.name}, which is not a calendar month: make it with --month") from error
    if start != month.start or not start < end <= month.end:
        raise ReportError(f"its times are not those of {month.name} in {month.timezone}: it was changed by hand")
    teams: dict[str, Decimal] = {}
    for line in report.lines:
        teams[line.team] = teams.get(line.team, Decimal(0)) + line.total_usd
    _refuse_another_sum("lines", sum(teams.values(), Decimal(0)), report)
    told = report.unknown_prices or report.gaps or report.homeless or report.uncommitted or report.doubled
    # Where a later version has another reason to be incomplete, it is believed.
    missing = bool(told) or (end == month.end and not report.complete)
    return ReportedTeams(
        month,
        end,
        report.idle_policy,
        missing,
        report.extra_usd,
        report.credit_usd,
        teams,
        report.of.prometheus,
        report.of.match,
    )
