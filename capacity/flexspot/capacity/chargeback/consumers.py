"""Whose work cost most: what each line pays for its GPUs taken apart by workload and user, to the cent, and the dearest of each team."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Generic, TypeVar

from flexspot.capacity.chargeback.report import Totals, WorkLine
from flexspot.capacity.values.quantities import to_cents

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from decimal import Decimal

    from flexspot.capacity.chargeback.charges import LineKey
    from flexspot.capacity.chargeback.gpu_use import Use
    from flexspot.capacity.chargeback.queries import Work, Workload
    from flexspot.capacity.chargeback.report import Report

TOP_CONSUMERS = 10
"""So many of each team are shown unless asked otherwise."""

MOST_CONSUMERS = 1000


def totals_of(use: Use, *, priced: bool) -> Totals:
    """A use as sums, before any money; `priced` says whether the price of its node is known."""
    seconds = float(use.allocated)
    return Totals(gpu_seconds=seconds, measured=float(use.measured), used=use.used, unpriced=0.0 if priced else seconds)


_Consumer = tuple["Workload", str]


class WorkAmounts:
    """Exact dollars by line, workload and user, as they are found node by node."""

    def __init__(self) -> None:
        self._usd: defaultdict[LineKey, defaultdict[_Consumer, Fraction]] = defaultdict(_fractions)
        self._totals: dict[tuple[str, _Consumer], Totals] = {}

    def add_use(self, line: LineKey, work: Work, use: Use, *, priced: bool) -> None:
        """GPUs that the work had on a node."""
        key = line.team, (work.workload, work.user)
        self._totals[key] = self._totals.get(key, Totals()) + totals_of(use, priced=priced)

    def add_usd(self, line: LineKey, work: Work, usd: Fraction) -> None:
        """What these cost."""
        self._usd[line][work.workload, work.user] += usd

    def lines(self, allocated: Mapping[LineKey, Decimal]) -> tuple[WorkLine, ...]:
        """Each team's, which sum to what its lines pay for GPUs that were had. `allocated` is that, in cents.

        Cents are divided line by line, as `to_cents` gives the right sum only of what was rounded once.
        """
        found = dict(self._totals)
        for line, amounts in self._usd.items():
            for consumer, usd in to_cents(dict(sorted(amounts.items())), allocated[line]).items():
                found[line.team, consumer] += Totals(allocated_usd=usd)
        return tuple(WorkLine(team, *consumer, totals) for (team, consumer), totals in sorted(found.items(), key=lambda each: each[0]))


def _fractions() -> defaultdict[_Consumer, Fraction]:
    return defaultdict(Fraction)


KeyT = TypeVar("KeyT")


@dataclass(frozen=True)
class TopConsumers(Generic[KeyT]):
    """Those of one team that cost most, the dearest first. `others` are all that are not in `top`, and `count` how many these are.

    `top`, `others` and `idle_usd`, which is for GPUs that nobody had, sum to `team`: what the team pays.
    """

    team: Totals
    top: tuple[tuple[KeyT, Totals], ...]
    others: Totals
    count: int

    @property
    def idle_usd(self) -> Decimal:
        """What the team pays for GPUs that nobody had: no workload is to blame for them."""
        return self.team.idle_usd

    def share(self, totals: Totals) -> float | None:
        """Of all that the team pays; None where that is nothing."""
        return float(totals.usd / self.team.usd) if self.team.usd else None


def top_consumers(report: Report, most: int, by: Callable[[WorkLine], KeyT]) -> dict[str, TopConsumers[KeyT]]:
    """At most `most` of each team that had GPUs, by cost, then GPU hours, then name; the dearest team first."""
    of_team: dict[str, dict[KeyT, Totals]] = {}
    for line in report.work:
        sums = of_team.setdefault(line.team, {})
        sums[by(line)] = sums.get(by(line), Totals()) + line.totals
    found: dict[str, TopConsumers[KeyT]] = {}
    for (team,), totals in report.by("team").items():
        if team in of_team:
            ranked = sorted(of_team[team].items(), key=lambda each: (-each[1].usd, -each[1].gpu_seconds, str(each[0])))
            rest = ranked[most:]
            found[team] = TopConsumers(totals, tuple(ranked[:most]), sum((each for _, each in rest), Totals()), len(rest))
    return found
