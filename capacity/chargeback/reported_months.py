"""What teams paid in a calendar month, read again from the JSON that `flexspot chargeback --format json` writes."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pydantic import Field

from capacity.catalog.exchange_rates import US_DOLLARS
from capacity.chargeback.samples import Period, PeriodError, month_period
from capacity.chargeback.saved_report import Cents, Part, ReportError, SavedPeriod, SavedReport, read_saved, refuse_another_sum

if TYPE_CHECKING:
    from pathlib import Path


class _Period(SavedPeriod):
    timezone: str


class _Line(Part):
    team: str
    total_usd: Cents


class _Of(Part):
    prometheus: str
    match: str


class _Report(SavedReport):
    """`of` is of later versions than the rest, as is the currency."""

    period: _Period
    idle_policy: str
    extra_usd: Cents = Decimal(0)
    credit_usd: Cents = Decimal(0)
    lines: list[_Line]
    unknown_prices: list[Any]
    gaps: list[Any]
    homeless: list[Any]
    uncommitted: list[Any] = Field(default_factory=list[Any])
    doubled: list[Any] = Field(default_factory=list[Any])
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
    credit_usd: Decimal
    teams: dict[str, Decimal]
    prometheus: str | None
    match: str | None
    currency: str = US_DOLLARS

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
    report, start, end = read_saved(path, _Report)
    try:
        month = month_period(report.period.name, report.period.timezone)
    except PeriodError as error:
        raise ReportError(f"it is of {report.period.name}, which is not a calendar month: make it with --month") from error
    if start != month.start or not start < end <= month.end:
        raise ReportError(f"its times are not those of {month.name} in {month.timezone}: it was changed by hand")
    teams: dict[str, Decimal] = {}
    for line in report.lines:
        teams[line.team] = teams.get(line.team, Decimal(0)) + line.total_usd
    refuse_another_sum("lines", sum(teams.values(), Decimal(0)), report)
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
        report.credit_usd,
        teams,
        None if of is None else of.prometheus,
        None if of is None else of.match,
        report.currency,
    )
