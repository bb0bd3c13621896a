"""Charges: they sum to their line, to the cent, and their other figures are exact."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from chargeback_months import HOUR, Month
from contract_files import contract_file
from hypothesis import given
from hypothesis import strategies as st

from flexspot.capacity.chargeback.charges import ChargeKind, Rate
from flexspot.capacity.chargeback.charging import to_cents
from flexspot.capacity.chargeback.queries import CENTRAL
from flexspot.capacity.chargeback.report import IdlePolicy

AMOUNTS = st.lists(st.lists(st.fractions(0, 1000, max_denominator=997), min_size=1, max_size=6), min_size=1, max_size=6)


@pytest.mark.slow
@given(AMOUNTS)
def test_parts_of_parts_sum_to_the_rounded_part_and_none_is_a_cent_off(amounts: list[list[Fraction]]) -> None:
    wholes = to_cents({number: sum(parts, Fraction(0)) for number, parts in enumerate(amounts)})
    assert abs(sum(map(Fraction, wholes.values()), Fraction(0)) - sum(map(sum, amounts), Fraction(0))) <= Fraction(1, 200)
    for number, parts in enumerate(amounts):
        cents = to_cents(dict(enumerate(parts)), wholes[number])
        assert sum(cents.values()) == wholes[number]
        assert all(abs(Fraction(cents[each]) - part) < Fraction(1, 100) for each, part in enumerate(parts))


def month() -> Month:
    """Return a month with two nodes of one pool in two regions. A team has half of one."""
    found = Month()
    found.node("one", 0, 12 * HOUR)
    found.node("two", 0, 6 * HOUR, region="us-west-2")
    found.pod("train", "one", 0, 12 * HOUR, gpus=4, team="vision")
    return found


def test_a_charge_says_where_its_machines_were_for_how_long_and_at_what_price() -> None:
    report = month().report()
    found = {(each.line.team, each.kind, each.supply.region): each for each in report.charges}

    assert {*found} == {
        ("vision", ChargeKind.ALLOCATED, "us-east-1"),
        (CENTRAL, ChargeKind.IDLE, "us-east-1"),
        (CENTRAL, ChargeKind.IDLE, "us-west-2"),
    }
    had = found["vision", ChargeKind.ALLOCATED, "us-east-1"]
    assert (had.machine_seconds, had.gpu_seconds) == (6 * HOUR, 48 * HOUR)
    assert abs(had.supply.rate.paid * 6 - Fraction(had.usd)) < Fraction(1, 100)
    assert sum((each.usd for each in report.charges), Decimal(0)) == report.node_usd


def test_idle_machines_that_several_pay_for_are_paid_for_once() -> None:
    both = month()
    both.pod("serve", "two", 0, 3 * HOUR, gpus=8, team="speech")
    report = both.report(IdlePolicy.PROPORTIONAL)
    idle = [each for each in report.charges if each.kind is ChargeKind.IDLE]

    assert len(idle) == 4, "each of two teams pays a part of the idle GPUs of either region"
    assert sum((each.machine_seconds for each in idle), Fraction(0)) == 6 * HOUR + 3 * HOUR
    assert sum((each.usd for each in report.charges), Decimal(0)) == report.node_usd


def test_a_discount_is_off_the_price_that_is_paid_and_not_off_the_lists() -> None:
    on_demand = Month()
    on_demand.node("one", 0, HOUR, bought="on-demand")
    [shipped] = on_demand.report().charges
    [discounted] = on_demand.report(own=contract_file(discounts=[{"capacity_type": "on-demand", "percent": "10"}])).charges
    row = {"machine": "p4d.24xlarge", "region": "us-east-1", "capacity_type": "on-demand", "usd_per_hour": "20", "source": "contract"}
    [own] = on_demand.report(own=contract_file(prices=[row])).charges

    assert shipped.supply.rate.paid == shipped.supply.rate.listed
    assert discounted.supply.rate == Rate(shipped.supply.rate.paid * Fraction(9, 10), shipped.supply.rate.listed)
    assert own.supply.rate == Rate(Fraction(20), Fraction(20)), "a price in the user's file is not a discount"


def test_a_machine_without_a_known_on_demand_price_has_no_list_price() -> None:
    spot = Month()
    spot.node("one", 0, HOUR, region="mars-north-1")
    row = {"machine": "p4d.24xlarge", "region": "mars-north-1", "capacity_type": "spot", "usd_per_hour": "5", "source": "contract"}
    [found] = spot.report(own=contract_file(prices=[row])).charges

    assert found.supply.rate == Rate(Fraction(5), None)
