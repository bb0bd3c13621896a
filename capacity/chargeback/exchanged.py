"""A report in another currency: every amount once, at the end, so that parts still sum to their wholes to the cent.

Sums are converted first, and their parts share them by largest remainder, as everywhere here. What is a price stays in US dollars.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, TypeVar
from zoneinfo import ZoneInfo

from capacity.chargeback.charges import ChargeKind
from capacity.chargeback.queries import PLATFORM

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from capacity.catalog.exchange_rates import InCurrency
    from capacity.chargeback.charges import Charge
    from capacity.chargeback.credits import Credited
    from capacity.chargeback.report import Line, Report, SpentPlan, WorkLine
    from capacity.chargeback.samples import Period

KeyT = TypeVar("KeyT", bound="Hashable")

_HAD = frozenset({ChargeKind.ALLOCATED, ChargeKind.PLATFORM})


def months_of(period: Period) -> list[str]:
    """The calendar months that a period is in, in its own time zone, as 2026-10."""
    zone = ZoneInfo(period.timezone)
    moment, last = (datetime.fromtimestamp(each, UTC).astimezone(zone) for each in (period.start, period.end - 1))
    months = [(moment.year, moment.month)]
    while months[-1] < (last.year, last.month):
        year, month = months[-1]
        months.append((year + month // 12, month % 12 + 1))
    return [f"{year:04}-{month:02}" for year, month in months]


def exchanged(report: Report, into: InCurrency) -> Report:
    """The report with every amount in the currency; `in_usd` is the report as it was."""
    money = _Money(into)
    node_usd = money.one(report.node_usd)
    lines = money.lines(report.lines, node_usd)
    idle_usd = sum((each.totals.idle_usd for each in lines), Decimal("0.00"))
    of_platform = sum((each.totals.usd for each in lines if each.key.team == PLATFORM), Decimal("0.00"))
    was_idle, was_platform = report.total.idle_usd, sum(each.totals.usd for each in report.lines if each.key.team == PLATFORM)
    nodes = money.parts({number: each.usd for number, each in enumerate(report.nodes)}, report.node_usd, node_usd)
    extra = money.parts({number: each.usd for number, each in enumerate(report.extra)})
    unused = money.parts({number: each.usd for number, each in enumerate(report.commitments)})
    return replace(
        report,
        into=into,
        in_usd=report,
        lines=lines,
        node_usd=node_usd,
        idle_usd=idle_usd if report.idle_usd == was_idle else money.one(report.idle_usd),
        platform_usd=of_platform if report.platform_usd == was_platform else money.one(report.platform_usd),
        nodes=tuple(replace(each, usd=nodes[number]) for number, each in enumerate(report.nodes)),
        charges=money.charges(report.charges, report.lines, lines),
        work=money.work(report.work, report.lines, lines),
        extra=tuple(each.model_copy(update={"usd": extra[number]}) for number, each in enumerate(report.extra)),
        commitments=tuple(replace(each, usd=unused[number]) for number, each in enumerate(report.commitments)),
        plans=tuple(map(money.plan, report.plans)),
        credits=money.credits(report.credits),
        opencost=None
        if report.opencost is None
        else replace(
            report.opencost, opencost_usd=money.one(report.opencost.opencost_usd), report_usd=money.one(report.opencost.report_usd)
        ),
    )


class _Money:
    """Converts at one rate."""

    def __init__(self, into: InCurrency) -> None:
        self._into = into
        self.one = into.one

    def parts(self, amounts: Mapping[KeyT, Decimal], whole: Decimal | None = None, into: Decimal | None = None) -> dict[KeyT, Decimal]:
        """Parts, which sum to their converted sum; or `into`, to which their `whole` was converted, if they are all of it."""
        given = into is not None and sum(amounts.values(), Decimal(0)) == whole
        return self._into.parts(amounts, into if given else None)

    def lines(self, lines: Sequence[Line], node_usd: Decimal) -> tuple[Line, ...]:
        """First what each team has and what it pays of idle GPUs, then its lines."""
        of: dict[tuple[str, bool], dict[tuple[int, bool], Decimal]] = {}
        for number, line in enumerate(lines):
            of.setdefault((line.key.team, False), {})[number, False] = line.totals.allocated_usd
            of.setdefault((line.key.team, True), {})[number, True] = line.totals.idle_usd
        was = {key: sum(amounts.values(), Decimal(0)) for key, amounts in of.items()}
        whole = sum(was.values(), Decimal(0))
        becomes = self.parts(was, whole, node_usd if self.one(whole) == node_usd else None)
        found: dict[tuple[int, bool], Decimal] = {}
        for key, amounts in of.items():
            found |= self.parts(amounts, was[key], becomes[key])
        saved = self.parts({number: line.totals.saved_usd for number, line in enumerate(lines)})
        return tuple(
            replace(
                line,
                totals=replace(line.totals, allocated_usd=found[number, False], idle_usd=found[number, True], saved_usd=saved[number]),
            )
            for number, line in enumerate(lines)
        )

    def charges(self, charges: Sequence[Charge], lines: Sequence[Line], now: Sequence[Line]) -> tuple[Charge, ...]:
        """Those of a line share what it has: for GPUs that were had, and for idle ones."""
        of: dict[tuple[object, bool], dict[int, Decimal]] = {}
        for number, each in enumerate(charges):
            of.setdefault((each.line, each.kind in _HAD), {})[number] = each.usd
        found: dict[int, Decimal] = {}
        for before, after in zip(lines, now, strict=True):
            for had in (True, False):
                was, becomes = ((each.allocated_usd if had else each.idle_usd) for each in (before.totals, after.totals))
                found |= self.parts(of.pop((before.key, had), {}), was, becomes)
        for rest in of.values():
            found |= self.parts(rest)
        return tuple(replace(each, usd=found[number]) for number, each in enumerate(charges))

    def work(self, work: Sequence[WorkLine], lines: Sequence[Line], now: Sequence[Line]) -> tuple[WorkLine, ...]:
        """Those of a team share what it has for GPUs that it had."""
        was, becomes = (_by_team(each) for each in (lines, now))
        of: dict[str, dict[int, Decimal]] = {}
        for number, each in enumerate(work):
            of.setdefault(each.team, {})[number] = each.totals.allocated_usd
        found: dict[int, Decimal] = {}
        for team, amounts in of.items():
            found |= self.parts(amounts, was.get(team), becomes.get(team))
        return tuple(replace(each, totals=replace(each.totals, allocated_usd=found[number])) for number, each in enumerate(work))

    def plan(self, plan: SpentPlan) -> SpentPlan:
        """Its own price an hour stays in US dollars, as the cloud sells it."""
        shares = self.parts({"used": plan.used_usd, "unused": plan.unused_usd})
        return replace(plan, committed_usd=sum(shares.values(), Decimal(0)), used_usd=shares["used"], unused_usd=shares["unused"])

    def credits(self, granted: Sequence[Credited]) -> tuple[Credited, ...]:
        """All that is taken off is converted as one sum; of what was given more, the rest is beside it."""
        lines = {(number, line): usd for number, each in enumerate(granted) for line, usd in each.lines.items()}
        found = self.parts(lines)
        taken: list[Credited] = []
        for number, each in enumerate(granted):
            own = {line: found[number, line] for line in each.lines}
            usd = sum(own.values(), Decimal("0.00"))
            credit = each.credit.model_copy(update={"usd": usd + self.one(each.left_usd)})
            taken.append(replace(each, credit=credit, usd=usd, lines=own))
        return tuple(taken)


def _by_team(lines: Sequence[Line]) -> dict[str, Decimal]:
    found: dict[str, Decimal] = {}
    for each in lines:
        found[each.key.team] = found.get(each.key.team, Decimal(0)) + each.totals.allocated_usd
    return found
