"""The month at its worst, in which prices change within hours and a commitment of US dollars an hour pays for a part, by its minutes."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from decimal import Decimal, localcontext
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from hostile_month import COMMITTED, CONTRACT, GPUS, MINUTE, NO_TEAM, ON_DEMAND, RESERVED, SPOT, HostileMonth, Kind, answers, hostile_month

from capacity.catalog.price_book import PriceFile
from capacity.chargeback.charging import charge
from capacity.chargeback.ledger import Ledger
from capacity.chargeback.node_costs import PriceTimes, cost_nodes
from capacity.chargeback.report import IdlePolicy, Report
from capacity.chargeback.samples import month_period

if TYPE_CHECKING:
    from collections.abc import Iterable

PODS = 1_500
CENT = Decimal("0.01")
CHANGES = {
    SPOT: [(0, "7.00"), (9_017, "9.13"), (30_001, "5.55")],
    ON_DEMAND: [(0, "19.00"), (20_490, "23.00")],
    RESERVED: [(0, "41.13"), (15_030, "39.20")],
}
"""From which minute of the month on each costs what; the first minutes are no start of an hour."""

RATE, COMMITTED_USD = Decimal("12.50"), Decimal("60.00")
FIRST_HOUR, LAST_HOUR = 100, 700


def contract(start: int) -> PriceFile:
    """That of the month, with later prices and a commitment for a part of it."""

    def at(minute: int) -> str:
        return datetime.fromtimestamp(start + minute * MINUTE, UTC).isoformat()

    later: list[dict[str, Any]] = [
        {
            "machine": kind.machine,
            "region": "us-east-1",
            "capacity_type": kind.capacity_type,
            "usd_per_hour": usd,
            "start": at(minute),
            "source": "contract",
        }
        for kind, steps in CHANGES.items()
        for minute, usd in steps[1:]
    ]
    plan = {
        "name": "sp-1",
        "kind": "compute-savings-plan",
        "usd_per_hour": str(COMMITTED_USD),
        "rates": [{"machine": ON_DEMAND.machine, "region": "us-east-1", "usd_per_hour": str(RATE)}],
        "start": at(FIRST_HOUR * 60),
        "end": at(LAST_HOUR * 60),
        "source": "contract",
    }
    return PriceFile.model_validate({**CONTRACT, "prices": [*CONTRACT["prices"], *later], "spend_commitments": [plan]})


def price_at(kind: Kind, minute: int) -> Decimal:
    return Decimal([usd for start, usd in CHANGES[kind] if start <= minute][-1])


def paid_on_demand(there: list[int]) -> tuple[list[Decimal], Decimal]:
    """What a machine on demand costs an hour in each minute, of which so many are there, and what of the commitment is left over."""
    found, left_over = [price_at(ON_DEMAND, minute) for minute in range(len(there))], Decimal(0)
    for hour in range(FIRST_HOUR, LAST_HOUR):
        left = COMMITTED_USD
        listed = sorted({price_at(ON_DEMAND, each) for each in range(hour * 60, hour * 60 + 60)}, reverse=True)
        for usd in listed:
            # Of one machine the higher price is the higher saving.
            minutes = [each for each in range(hour * 60, hour * 60 + 60) if price_at(ON_DEMAND, each) == usd]
            wanted = RATE * sum(there[each] for each in minutes) / 60
            part = min(Decimal(1), left / wanted) if wanted else Decimal(0)
            left -= wanted * part
            for each in minutes:
                found[each] = part * RATE + (1 - part) * usd
        left_over += left
    return found, left_over


class WorkedOut:
    """US dollars by line, and in all."""

    def __init__(self, month: HostileMonth) -> None:
        self.allocated: defaultdict[tuple[str, str, str], Decimal] = defaultdict(Decimal)
        self.total = Decimal(0)
        with localcontext(prec=60):
            seen = {
                node: [each for each in range(max(0, node.start), min(node.end, month.minutes)) if each not in month.unseen]
                for node in month.nodes
            }
            there = {kind: [0] * month.minutes for kind in CHANGES}
            for node, minutes in seen.items():
                for each in minutes if node.kind in CHANGES else ():
                    there[node.kind][each] += 1
            on_demand, self.left_over = paid_on_demand(there[ON_DEMAND])
            prices = {kind: [price_at(kind, each) for each in range(month.minutes)] for kind in (SPOT, RESERVED)} | {ON_DEMAND: on_demand}
            sums = {kind: _running(usd / 60 for usd in of) for kind, of in prices.items()}
            for kind, numbers in there.items():
                self.total += sum((usd / 60 * number for usd, number in zip(prices[kind], numbers, strict=True)), Decimal(0))
            unused = zip(prices[RESERVED], there[RESERVED], strict=True)
            self.total += sum((usd / 60 * (COMMITTED - number) for usd, number in unused), Decimal(0)) + self.left_over
            for pod in month.pods:
                kind = pod.node.kind
                if kind in CHANGES:
                    first, last = max(0, pod.start, pod.node.start), min(pod.end, pod.node.end, month.minutes)
                    usd = _between(sums[kind], first, last) - _between(sums[kind], max(first, month.outage), min(last, month.unseen.stop))
                    self.allocated[pod.team or NO_TEAM, kind.capacity_type, kind.pool] += usd * pod.gpus / GPUS


def _running(amounts: Iterable[Decimal]) -> list[Decimal]:
    found = [Decimal(0)]
    for each in amounts:
        found.append(found[-1] + each)
    return found


def _between(sums: list[Decimal], first: int, last: int) -> Decimal:
    return sums[last] - sums[first] if last > first else Decimal(0)


@cache
def played() -> tuple[WorkedOut, dict[IdlePolicy, Report]]:
    """What the month comes to by its minutes, and what the reports say."""
    month, period = hostile_month(PODS, seed=9), month_period("2026-03", "Europe/Berlin")
    prices = PriceTimes(own=contract(month.start), name="contract")
    ledger = Ledger(period, MINUTE, cuts=prices.cuts(period))
    for each in answers(month, 24 * 60):
        ledger.take(each)
    books = ledger.close()
    costs = cost_nodes(books, prices)
    return WorkedOut(month), {policy: charge(books, costs, idle=policy, asked=period) for policy in IdlePolicy}


@pytest.mark.slow
@pytest.mark.parametrize("policy", IdlePolicy)
def test_month_costs_what_its_minutes_cost_and_every_part_sums_to_it(policy: IdlePolicy) -> None:
    expected, reports = played()
    report = reports[policy]

    assert report.node_usd == expected.total.quantize(CENT)
    assert report.total.usd == sum(each.usd for each in report.charges) == sum(each.usd for each in report.nodes) == report.node_usd
    for (team,), totals in report.by("team").items():
        work = [each.totals.usd for each in report.work if each.team == team]
        assert not work or sum(work) == totals.allocated_usd
    [plan] = report.plans
    assert (plan.committed_usd, plan.unused_usd) == (COMMITTED_USD * (LAST_HOUR - FIRST_HOUR), expected.left_over.quantize(CENT))
    assert 0 < plan.unused_usd < plan.committed_usd


@pytest.mark.slow
def test_every_line_is_to_the_cent_what_its_minutes_cost() -> None:
    expected, reports = played()
    said = {(each.key.team, each.key.capacity_type, each.key.pool): each.totals.allocated_usd for each in reports[IdlePolicy.CENTRAL].lines}

    pairs = {key: (said.get(key, Decimal(0)), expected.allocated.get(key, Decimal(0))) for key in said.keys() | expected.allocated.keys()}
    assert {key: pair for key, pair in pairs.items() if abs(pair[0] - pair[1]) > CENT} == {}
    assert len(expected.allocated) > 10


def test_every_change_of_a_price_is_told() -> None:
    _, reports = played()
    told = {(each.what.capacity_type, str(each.after)) for each in reports[IdlePolicy.CENTRAL].price_changes}

    assert told == {("spot", "913/100"), ("spot", "111/20"), ("on-demand", "23"), ("reserved", "196/5")}
