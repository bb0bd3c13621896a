"""Months of one cluster side by side, and by how much each changed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING

from capacity.values.errors import ExitCode, ExplainedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from capacity.chargeback.saved_report import ReportedTeams


@dataclass(frozen=True)
class MonthOf:
    """A team in a month. `change` is against the month before; None where that, or this, is not there whole."""

    usd: Decimal
    change: Decimal | None
    change_share: float | None


@dataclass(frozen=True)
class Row:
    """A team, or all of them, month by month."""

    team: str
    months: tuple[MonthOf, ...]


@dataclass(frozen=True)
class Trend:
    """`rows` are by what the last month cost, the dearest first; `total` is all of them. `missing` are months between without a report."""

    months: tuple[ReportedTeams, ...]
    rows: tuple[Row, ...]
    total: Row
    missing: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether every month is there, and whole but for the last, which may go on."""
        return not self.missing and all(each.usable for each in self.months[:-1]) and not self.months[-1].missing


def trend_of(reports: Iterable[ReportedTeams]) -> Trend:
    """Raises ExplainedError for two reports of one month, and for reports of several clusters, time zones or ways to count idle GPUs."""
    months = tuple(sorted(reports, key=lambda each: each.month.start))
    _refuse_mixed(months)
    teams = sorted({team for each in months for team in each.teams})
    nothing = Decimal("0.00")
    amounts = {team: tuple(each.teams.get(team, nothing) for each in months) for team in teams}
    total = Row("total", _months_of(months, [each.usd for each in months]))
    rows = (Row(team, _months_of(months, of)) for team, of in amounts.items())
    missing = tuple(name for before, after in pairwise(months) for name in _between(before.month.name, after.month.name))
    ranked = sorted(rows, key=lambda row: (*(-each.usd for each in reversed(row.months)), row.team))
    return Trend(months, tuple(ranked), total, missing, tuple(_notes(months)))


def _refuse_mixed(months: Sequence[ReportedTeams]) -> None:
    for before, after in pairwise(months):
        if before.month.name == after.month.name:
            raise _wrong(f"two reports are of {after.month.name}, which would count twice", "give one of each month")
    told = {
        "time zones, so that their months overlap": {each.month.timezone for each in months},
        "ways to pay for idle GPUs (--idle), so that teams' amounts are not the same thing": {each.idle for each in months},
        "clusters (--match)": {each.match for each in months},
    }
    for what, values in told.items():
        if len(values) > 1:
            named = ", ".join(each or "none" for each in sorted(values))
            raise _wrong(f"the reports have several {what}: {named}", "give reports that were made in one way")


def _wrong(problem: str, remedy: str) -> ExplainedError:
    return ExplainedError(f"{problem}.", f"{remedy}.", exit_code=ExitCode.BAD_USAGE)


def _notes(months: Sequence[ReportedTeams]) -> Iterator[str]:
    urls = sorted({each.prometheus for each in months})
    if len(urls) > 1:
        yield f"The reports were read from several addresses, which may be of several clusters: {', '.join(urls)}."
    for each in months:
        if each.missing:
            yield f"{each.month.name} is not complete: its amounts are at least so much, and no change is calculated with it."
    for each in months[:-1]:
        if not each.over:
            yield f"{each.month.name} was not over when its report was made: make it anew; no change is calculated with it."
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
