"""What teams paid in a calendar month, read again from the JSON that `flexspot chargeback --format json` writes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from capacity.chargeback.reported_nodes import MAX_REPORT_BYTES, ReportError
from capacity.chargeback.samples import Period, PeriodError, month_period

if TYPE_CHECKING:
    from pathlib import Path

CURRENCY = "USD"
"""In which all reports are."""


class _Part(BaseModel):
    """Reports say more than is needed here."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


_Cents = Annotated[Decimal, Field(ge=0, le=10**15, decimal_places=2)]


class _Period(_Part):
    name: str
    timezone: str
    start: str = Field(alias="from")
    end: str = Field(alias="to")


class _Line(_Part):
    team: str
    total_usd: _Cents


class _Of(_Part):
    prometheus: str
    match: str


class _Report(_Part):
    """`currency` and `of` are of later versions than the rest."""

    period: _Period
    idle_policy: str
    complete: bool
    node_usd: _Cents
    extra_usd: _Cents = Decimal(0)
    lines: list[_Line]
    unknown_prices: list[Any]
    gaps: list[Any]
    homeless: list[Any]
    uncommitted: list[Any] = Field(default_factory=list[Any])
    doubled: list[Any] = Field(default_factory=list[Any])
    currency: str = CURRENCY
    of: _Of | None = None


@dataclass(frozen=True)
class ReportedTeams:
    """What each team, or word such as (central), paid for nodes in `month`, of which all until `end` is in the report.

    `missing`: something is in no sum, so that amounts are "at least". `prometheus` and `match` say of which cluster it is; None: an earlier
    version wrote it, which did not say.
    """

    month: Period
    end: int
    idle: str
    missing: bool
    extra_usd: Decimal
    teams: dict[str, Decimal]
    prometheus: str | None
    match: str | None

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
    if path.stat().st_size > MAX_REPORT_BYTES:
        raise ReportError(f"it is longer than {MAX_REPORT_BYTES // 2**20} MiB, as no report is")
    try:
        report = _Report.model_validate(json.loads(path.read_text(encoding="utf-8")))
        start, end = (int(datetime.fromisoformat(each).timestamp()) for each in (report.period.start, report.period.end))
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, each['loc'])) or 'it'}: {each['msg']}" for each in error.errors()[:5])
        raise ReportError(f"it is no report of flexspot chargeback --format json: {problems}") from error
    except (ValueError, RecursionError) as error:
        raise ReportError(f"it is no report of flexspot chargeback --format json: {error}") from error
    if report.currency != CURRENCY:
        raise ReportError(f"it is in {report.currency}, and amounts of two currencies have no sum: only {CURRENCY} can be used")
    try:
        month = month_period(report.period.name, report.period.timezone)
    except PeriodError as error:
        raise ReportError(f"it is of {report.period.name}, which is no calendar month: make it with --month") from error
    if start != month.start or not start < end <= month.end:
        raise ReportError(f"its times are not those of {month.name} in {month.timezone}: it was changed by hand")
    teams: dict[str, Decimal] = {}
    for line in report.lines:
        teams[line.team] = teams.get(line.team, Decimal(0)) + line.total_usd
    summed = sum(teams.values(), Decimal(0))
    if summed != report.node_usd:
        raise ReportError(f"its lines sum to {summed} USD and not to its {report.node_usd} USD: it was changed by hand, or is cut off")
    told = report.unknown_prices or report.gaps or report.homeless or report.uncommitted or report.doubled
    # Where a later version has another reason to be incomplete, it is believed.
    missing = bool(told) or (end == month.end and not report.complete)
    of = report.of
    return ReportedTeams(
        month,
        end,
        report.idle_policy,
        missing,
        report.extra_usd,
        teams,
        None if of is None else of.prometheus,
        None if of is None else of.match,
    )
