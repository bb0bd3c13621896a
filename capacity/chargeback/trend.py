"""Months of one cluster side by side: by how much each changed, which were out of the usual, and what an unfinished one will come to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from capacity.values.errors import ExitCode, ExplainedError
from capacity.values.rounding import to_cents

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from capacity.chargeback.saved_report import ReportedTeams

DAY = 24 * 3600

FEWEST_MONTHS = 4
"""A month is judged by at least so many before it. Of three, two that are alike by chance would make anything of the third unusual."""

MOST_MONTHS = 12
"""And by no more than so many, the newest: what was usual long ago is not."""

UNUSUAL = Fraction(35, 10)
"""So many deviations from the median. Iglewicz and Hoaglin, How to Detect and Handle Outliers (ASQC, 1993): a modified z-score over 3.5."""

DEVIATION_OF_MAD = Fraction(14826, 10000)
"""By how much the median absolute deviation is less than the standard deviation, of what is normally distributed."""

LEAST_DEVIATION = Fraction(5, 100)
"""Of the median: where months were nearly the same a deviation counts as so much, or cents would be unusual."""

RANGE_MONTHS = 6
"""By so many finished months before it, the newest, the range of a forecast is found."""


@dataclass(frozen=True)
class Unusual:
    """In US dollars a day: what the month cost, and the median and deviation of the `months` before it."""

    usd_per_day: Decimal
    median_per_day: Decimal
    deviation_per_day: Decimal
    months: int


@dataclass(frozen=True)
class Forecast:
    """What the month will come to. `low` and `high` are None where no finished month is there to say."""

    so_far: Decimal
    expected: Decimal
    low: Decimal | None
    high: Decimal | None
    months: int


@dataclass(frozen=True)
class MonthOf:
    """A team in a month. `change` is against the month before; None where that, or this, is not there whole. `unusual`: it is, and how."""

    usd: Decimal
    change: Decimal | None
    change_share: float | None
    unusual: Unusual | None


@dataclass(frozen=True)
class Row:
    """A team, or all of them: month by month, and the unfinished last one's forecast."""

    team: str
    months: tuple[MonthOf, ...]
    forecast: Forecast | None


@dataclass(frozen=True)
class Trend:
    """`rows` are by what the last month cost, the dearest first; `total` is all of them. `missing` are months between without a report."""

    months: tuple[ReportedTeams, ...]
    rows: tuple[Row, ...]
    total: Row
    missing: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def currency(self) -> str:
        """In which all amounts are."""
        return self.months[0].currency

    @property
    def complete(self) -> bool:
        """Whether every month is there, and whole but for the last, which may go on."""
        return not self.missing and all(each.usable for each in self.months[:-1]) and not self.months[-1].missing


def trend_of(reports: Iterable[ReportedTeams]) -> Trend:
    """Raises ExplainedError for none, for two of one month, and for reports of several clusters, time zones or ways to count idle GPUs."""
    months = tuple(sorted(reports, key=lambda each: each.month.start))
    _refuse_mixed(months)
    teams = sorted({team for each in months for team in each.teams})
    nothing = Decimal("0.00")
    amounts = {team: tuple(each.teams.get(team, nothing) for each in months) for team in teams}
    whole = tuple(each.usd for each in months)
    total = Row("total", _months_of(months, whole), _forecast(months, whole))
    expected = _expected(months, amounts, total.forecast)
    rows = (Row(team, _months_of(months, of), _forecast(months, of, expected.get(team))) for team, of in amounts.items())
    missing = tuple(name for before, after in pairwise(months) for name in _between(before.month.name, after.month.name))
    ranked = sorted(rows, key=lambda row: (*(-each.usd for each in reversed(row.months)), row.team))
    return Trend(months, tuple(ranked), total, missing, tuple(_notes(months)))


def _refuse_mixed(months: Sequence[ReportedTeams]) -> None:
    if not months:
        raise _wrong("no report is given", "give one with --report for each month")
    for before, after in pairwise(months):
        if before.month.name == after.month.name:
            raise _wrong(f"two reports are of {after.month.name}, which would count twice", "give one of each month")
    told = {
        "time zones, so that their months overlap": {each.month.timezone for each in months},
        "ways to pay for idle GPUs (--idle), so that teams' amounts are not the same thing": {each.idle for each in months},
        "currencies, of which amounts have no sum": {each.currency for each in months},
        "clusters (--match)": {each.match for each in months if each.match is not None},
    }
    for what, values in told.items():
        if len(values) > 1:
            named = ", ".join(each or "none" for each in sorted(values))
            raise _wrong(f"the reports have several {what}: {named}", "give reports that were made in one way")


def _wrong(problem: str, remedy: str) -> ExplainedError:
    return ExplainedError(f"{problem}.", f"{remedy}.", exit_code=ExitCode.BAD_USAGE)


def _notes(months: Sequence[ReportedTeams]) -> Iterator[str]:
    urls = sorted({each.prometheus for each in months if each.prometheus is not None})
    if len(urls) > 1:
        yield f"The reports were read from several addresses, which may be of several clusters: {', '.join(urls)}."
    if unsaid := [each.month.name for each in months if each.match is None]:
        yield f"An earlier version wrote the reports of {', '.join(unsaid)}: of which cluster they are they do not say."
    for each in months:
        if each.missing:
            yield f"{each.month.name} is not complete: its amounts are at least so much, it is not judged, and nothing is judged by it."
    for each in months[:-1]:
        if not each.over:
            yield f"{each.month.name} was not over when its report was made: make it anew; it is not judged, and nothing is judged by it."
    if extra := [each.month.name for each in months if each.extra_usd]:
        yield f"Storage and egress of {', '.join(extra)} are not in it: these are amounts of nodes."
    if credits_of := [each.month.name for each in months if each.credit_usd]:
        yield f"Credits of {', '.join(credits_of)} are not in it: these are amounts of nodes."
    if not months[-1].over and months[-1].end - months[-1].month.start < DAY:
        yield f"Of {months[-1].month.name} less than a day is over: there is no forecast yet."


def _between(before: str, after: str) -> Iterator[str]:
    year, month = map(int, before.split("-"))
    while True:
        year, month = (year + 1, 1) if month == 12 else (year, month + 1)  # noqa: PLR2004 -- the months of a year
        name = date(year, month, 1).strftime("%Y-%m")
        if name == after:
            return
        yield name


def _per_day(month: ReportedTeams, usd: Decimal) -> Fraction:
    """Months are of different lengths, so they are compared by the day."""
    return Fraction(usd) * DAY / (month.end - month.month.start)


def _history(months: Sequence[ReportedTeams], amounts: Sequence[Decimal], most: int) -> list[Fraction]:
    """The rates of whole months, from the first on in which there was anything; the newest of them."""
    begun = next((number for number, usd in enumerate(amounts) if usd), len(amounts))
    rates = [_per_day(month, usd) for month, usd in list(zip(months, amounts, strict=True))[begun:] if month.usable]
    return rates[-most:]


def _months_of(months: Sequence[ReportedTeams], amounts: Sequence[Decimal]) -> tuple[MonthOf, ...]:
    found: list[MonthOf] = []
    for number, (month, usd) in enumerate(zip(months, amounts, strict=True)):
        before = months[number - 1] if number else None
        next_to = before is not None and not [*_between(before.month.name, month.month.name)]
        comparable = before is not None and next_to and before.usable and month.usable
        was = amounts[number - 1] if comparable else None
        change = None if was is None else usd - was
        share = float(change / was) if change is not None and was else None
        unusual = _unusual(_per_day(month, usd), _history(months[:number], amounts[:number], MOST_MONTHS)) if month.usable else None
        found.append(MonthOf(usd, change, share, unusual))
    return tuple(found)


def _unusual(rate: Fraction, before: Sequence[Fraction]) -> Unusual | None:
    """By median and median absolute deviation, which one month that was unusual itself does not move."""
    if len(before) < FEWEST_MONTHS:
        return None
    middle = median(before)
    mad = median(abs(each - middle) for each in before)
    deviation = max(mad * DEVIATION_OF_MAD, middle * LEAST_DEVIATION)
    if abs(rate - middle) <= UNUSUAL * deviation:
        return None
    return Unusual(_cents(rate), _cents(middle), _cents(deviation), len(before))


def _goes_on(months: Sequence[ReportedTeams]) -> bool:
    last = months[-1]
    return not last.over and last.end - last.month.start >= DAY


def _expected(months: Sequence[ReportedTeams], amounts: dict[str, tuple[Decimal, ...]], total: Forecast | None) -> dict[str, Decimal]:
    """The teams' forecasts, which sum to that of all."""
    if total is None:
        return {}
    last = months[-1]
    seen = last.end - last.month.start
    return to_cents({team: Fraction(of[-1]) * last.month.seconds / seen for team, of in amounts.items()})


def _forecast(months: Sequence[ReportedTeams], amounts: Sequence[Decimal], expected: Decimal | None = None) -> Forecast | None:
    """The rest of the month costs as much a day as what is over of it; at the least and at the most as in the months before, if that is
    less or more.
    """
    if not _goes_on(months):
        return None
    last, so_far = months[-1], amounts[-1]
    rate, left = _per_day(last, so_far), Fraction(last.month.end - last.end, DAY)
    before = _history(months[:-1], amounts[:-1], RANGE_MONTHS)
    if expected is None:
        expected = _cents(Fraction(so_far) + rate * left)
    if not before:
        return Forecast(so_far, expected, None, None, 0)
    low, high = (_cents(Fraction(so_far) + each * left) for each in (min(rate, *before), max(rate, *before)))
    return Forecast(so_far, expected, min(low, expected), max(high, expected), len(before))


def _cents(amount: Fraction) -> Decimal:
    """Rounded half up."""
    return Decimal((amount * 100 + Fraction(1, 2)).__floor__()).scaleb(-2)
