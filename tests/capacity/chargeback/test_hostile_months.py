"""A worst-case month of thousands of pods: every dollar is where the test's own allocation has it."""

from __future__ import annotations

from decimal import Decimal
from functools import cache

import pytest
from hostile_month import (
    CONTRACT,
    HOUR,
    MINUTE,
    NO_TEAM,
    ON_DEMAND,
    RESERVED,
    SPOT,
    HostileMonth,
    Line,
    WorkedOut,
    answers,
    hostile_month,
    worked_out,
)

from flexspot.capacity.catalog.machines import Vendor
from flexspot.capacity.catalog.price_book import PriceBook, PriceFile, prices_of
from flexspot.capacity.chargeback.charging import charge
from flexspot.capacity.chargeback.ledger import Ledger
from flexspot.capacity.chargeback.node_costs import PriceTimes, cost_nodes
from flexspot.capacity.chargeback.queries import CENTRAL
from flexspot.capacity.chargeback.report import IdlePolicy, Report
from flexspot.capacity.chargeback.samples import month_period

PODS = 10_000
CENT = Decimal("0.01")
DAY = 24 * 60

pytestmark = pytest.mark.nightly(
    tested_by="test_a_small_month_agrees_with_a_calculation_by_hand, "
    "test_any_month_agrees_with_counting_hour_by_hour_and_every_line_is_paid, "
    "test_any_month_agrees_with_counting_minute_by_minute, "
    "test_the_policys_payer_pays_for_idle_gpus, test_consumers_not_shown_are_summed_and_idle_gpus_are_separate"
)


def prices(cloud: Vendor) -> PriceBook:
    book = prices_of(cloud)
    return book.with_rows_of(PriceFile.model_validate(CONTRACT), "contract") if cloud is Vendor.AWS else book


def reports_of(month: HostileMonth, slice_minutes: int = DAY) -> dict[IdlePolicy, Report]:
    """Return a report for each policy for idle GPUs."""
    period = month_period("2026-03", "Europe/Berlin")
    ledger = Ledger(period, MINUTE)
    for each in answers(month, slice_minutes):
        ledger.take(each)
    books = ledger.close()
    costs = cost_nodes(books, PriceTimes(prices))
    return {policy: charge(books, costs, idle=policy, asked=period) for policy in IdlePolicy}


@cache
def played() -> tuple[HostileMonth, WorkedOut, dict[IdlePolicy, Report]]:
    """Return a month, its cost counted minute by minute, and its reports. Not a fixture, because fixtures are traced for coverage."""
    month = hostile_month(PODS)
    return month, worked_out(month), reports_of(month)


def other_than(said: dict[Line, Decimal], worked: dict[Line, Decimal]) -> dict[Line, tuple[Decimal, Decimal]]:
    """Return the amounts that differ by a cent or more."""
    pairs = {key: (said.get(key, Decimal(0)), worked.get(key, Decimal(0))) for key in said.keys() | worked.keys()}
    return {key: pair for key, pair in pairs.items() if abs(pair[0] - pair[1]) > CENT}


def test_the_cost_of_the_month_is_that_of_its_minutes_under_every_idle_policy() -> None:
    _, expected, reports = played()

    for report in reports.values():
        assert report.node_usd == expected.total.quantize(CENT)
        assert report.total.usd == report.node_usd, "the lines are all of it"
        assert report.total.saved_usd == sum(expected.saved.values(), Decimal(0)).quantize(CENT)


def test_allocated_cost_and_savings_of_every_line_are_right_to_the_cent() -> None:
    _, expected, reports = played()
    lines = {(each.key.team, each.key.capacity_type, each.key.pool): each.totals for each in reports[IdlePolicy.CENTRAL].lines}

    assert other_than({key: each.allocated_usd for key, each in lines.items()}, expected.allocated) == {}
    assert other_than({key: each.saved_usd for key, each in lines.items()}, expected.saved) == {}
    hours = {key[0]: each.gpu_hours for key, each in reports[IdlePolicy.CENTRAL].by("team").items() if key[0] != CENTRAL}
    assert hours == pytest.approx({team: minutes / 60 for team, minutes in expected.gpu_minutes.items()})
    assert NO_TEAM in hours


def test_idle_gpus_are_charged_to_the_policys_payer_to_the_cent() -> None:
    _, expected, reports = played()

    def idle(policy: IdlePolicy) -> dict[Line, Decimal]:
        of = ((each.key, each.totals.idle_usd) for each in reports[policy].lines if each.totals.idle_usd)
        return {(key.team, key.capacity_type, key.pool): usd for key, usd in of}

    kinds = (SPOT, ON_DEMAND, RESERVED)
    assert other_than(idle(IdlePolicy.CENTRAL), {(CENTRAL, each.capacity_type, each.pool): expected.idle[each] for each in kinds}) == {}
    owned = {(each.owner or CENTRAL, each.capacity_type, each.pool): expected.idle[each] for each in kinds}
    assert other_than(idle(IdlePolicy.OWNER), owned) == {}
    had = {each.pool: sum(usd for line, usd in expected.allocated.items() if line[2] == each.pool) for each in kinds}
    to_pay = {each.pool: expected.idle[each] for each in kinds}
    parts = {line: to_pay[line[2]] * usd / had[line[2]] for line, usd in expected.allocated.items()}
    assert other_than(idle(IdlePolicy.PROPORTIONAL), parts) == {}


def test_unknown_amounts_are_reported_and_in_no_sum() -> None:
    month, expected, reports = played()
    report = reports[IdlePolicy.CENTRAL]

    assert sum(report.unknown.values()) == expected.unpriced_minutes * MINUTE
    assert {str(price) for price in report.unknown} == {
        "spot price of p9.48xlarge in us-east-1",
        "(unknown) price of p4d.24xlarge in us-east-1",
    }
    there = {each.name for each in (*month.nodes, *month.pods) if each.start < month.outage and each.end > month.unseen.stop}
    assert {each.name.rpartition("/")[2].removeprefix("node ") for each in report.gaps} == there, "half an hour without samples"
    assert not report.complete
    assert (report.unmatched, report.doubled) == ({}, {}), "a pod that is seen for some minutes longer than its node is not reported"
    assert (report.period.end - report.period.start) // HOUR == 31 * 24 - 1
