"""Advice on commitments, compared with calculating the cost of every number of machines hour by hour."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.machines import Vendor
from flexspot.capacity.catalog.price_book import Price, PriceBook, prices_of
from flexspot.capacity.chargeback.commitment_advice import CommitmentAdvice, MachineAdvice, Terms, advise_commitments
from flexspot.capacity.chargeback.machine_hours import MachineHours, MachineKind

HOUR = 3600
START = 1_790_812_800
P4D = MachineKind("p4d.24xlarge", "us-east-1", "on-demand")
LEAST = 14 * 24


def history(used: list[Fraction] | list[int], kind: MachineKind = P4D, *, without: range = range(0)) -> MachineHours:
    """Return a history of one kind. `without` are the numbers of hours without samples."""
    nodes = {START + number * HOUR: Fraction(each) for number, each in enumerate(used) if number not in without}
    return MachineHours(tuple(nodes), {kind: nodes})


def advised(found: MachineHours, terms: Terms, book: PriceBook | None = None) -> CommitmentAdvice:
    return advise_commitments(found, prices_of if book is None else lambda _cloud: book, terms)


def only(advice: CommitmentAdvice) -> MachineAdvice:
    [machine] = advice.machines
    return machine


def month_usd(used: list[Fraction], nodes: int, committed: Decimal, on_demand: Decimal) -> Fraction:
    """Return the cost hour by hour: committed machines at their price, others at the on-demand price, scaled to a month's hours."""
    paid = Fraction(0)
    for each in used:
        paid += nodes * Fraction(committed)
        if each > nodes:
            paid += (each - nodes) * Fraction(on_demand)
    return paid / len(used) * 730


CENTS = st.integers(1, 20_000).map(lambda cents: Decimal(cents) / 100)
WEEKS = st.lists(st.fractions(0, 6, max_denominator=12), min_size=1, max_size=48)


@pytest.mark.slow
@given(WEEKS, CENTS, CENTS)
def test_the_advised_number_is_the_cheapest_of_all_that_there_are(pattern: list[Fraction], committed: Decimal, on_demand: Decimal) -> None:
    used = (pattern * LEAST)[: LEAST + len(pattern)]
    machine = only(advised(history(used), Terms(1, committed, None, on_demand)))
    tried = [month_usd(used, nodes, committed, on_demand) for nodes in range(math.ceil(max(used)) + 2)]
    cheapest = tried.index(min(tried))

    levels = [each for each in (machine.best, machine.none, machine.more, machine.fewer) if each is not None]
    assert [each.nodes for each in levels] == [cheapest, 0, cheapest + 1, *([cheapest - 1] if cheapest else [])]
    for level in levels:
        assert level.usd_a_month is not None
        assert abs(Fraction(level.usd_a_month) - month_usd(used, level.nodes, committed, on_demand)) < Fraction(1, 10**12)
    assert machine.saved_usd_a_month is not None
    assert machine.saved_usd_a_month >= 0


@pytest.mark.slow
@given(WEEKS, st.integers(1, 99))
def test_use_for_the_reported_months_pays_for_the_commitment_to_the_cent(pattern: list[Fraction], percent: int) -> None:
    """On-demand cost of the covered use, for this number of months, equals the cost of the commitment over its whole term."""
    used = (pattern * LEAST)[:LEAST]
    machine = only(advised(history(used), Terms(3, None, Decimal(percent), Decimal(10))))
    if machine.best is None or not machine.best.nodes:
        assert machine.pays_after_months is None
        return
    covered = sum((min(each, Fraction(machine.best.nodes)) for each in used), Fraction(0)) / len(used)
    assert machine.pays_after_months is not None
    assert machine.term_usd is not None
    assert covered * 730 * machine.pays_after_months * 10 == Fraction(machine.term_usd)
    assert machine.pays_after_months <= 36


@pytest.mark.slow
@given(WEEKS)
def test_just_below_the_reported_price_a_machine_pays_and_at_it_it_does_not(pattern: list[Fraction]) -> None:
    used = (pattern * LEAST)[:LEAST]
    unknown = only(advised(history(used), Terms(on_demand_usd_per_hour=Decimal(10))))
    assert unknown.best is None
    for node, share in enumerate(unknown.use.shares, start=1):
        if not share:
            continue
        price = unknown.pays_below_usd_per_hour(node)
        assert price is not None
        paid = (price * Decimal("0.999999"), price * Decimal("1.000001"))
        below, above = (only(advised(history(used), Terms(1, each, None, Decimal(10)))).best for each in paid)
        assert below is not None
        assert above is not None
        assert above.nodes < node <= below.nodes


def test_an_unknown_price_is_reported_and_is_not_a_no() -> None:
    machine = only(advised(history([3] * LEAST), Terms()))

    assert machine.unknown == ("the price of a commitment for p4d.24xlarge in us-east-1",)
    assert machine.best is None
    assert machine.pays_below_usd_per_hour(3) == Decimal("21.957642"), "always used, so any discount pays"


def test_with_a_discount_the_number_is_known_even_where_the_price_it_is_off_is_not() -> None:
    kind = replace(P4D, region="mars-north-1")
    advice = advised(history([3] * LEAST, kind), Terms(discount_percent=Decimal(30)))
    machine = only(advice)

    assert machine.best is not None
    assert (machine.best.nodes, machine.best.usd_a_month, machine.saved_usd_a_month) == (3, None, None)
    assert machine.unknown == ("the on-demand price of p4d.24xlarge in mars-north-1",)
    assert not advice.complete


def test_the_contract_of_the_price_file_counts_where_nothing_else_is_given() -> None:
    book = prices_of(Vendor.AWS)
    row = Price(machine=P4D.machine, region=P4D.region, capacity_type=CapacityType.RESERVED, usd_per_hour=Decimal(11), source="x")
    own = replace(book, prices={**book.prices, (P4D.machine, P4D.region, CapacityType.RESERVED): row})

    assert only(advised(history([1] * LEAST), Terms(), own)).committed_usd_per_hour == 11
    given_price = only(advised(history([1] * LEAST), Terms(committed_usd_per_hour=Decimal(9)), own))
    assert (given_price.committed_usd_per_hour, given_price.committed) == (9, None)


TERMS = Terms(discount_percent=Decimal(40))


def test_a_history_of_less_than_two_weeks_is_no_advice() -> None:
    short, enough = advised(history([2] * (LEAST - 1)), TERMS), advised(history([2] * LEAST), TERMS)

    assert "14.0 days were seen; advice needs 14" in short.reach.refused[0]
    assert (only(short).best, only(short).break_even_share) == (None, Fraction(3, 5))
    assert not short.complete
    assert enough.reach.refused == ()
    assert "less than 60" in enough.reach.weak[0]


@pytest.mark.parametrize("gone,refused,weak", [(50, False, False), (51, False, True), (250, False, True), (251, True, False)])
def test_gaps_are_reported_from_a_twentieth_on_and_above_a_quarter_nothing_is_advised(gone: int, refused: bool, weak: bool) -> None:  # noqa: FBT001
    reach = advised(history([2] * 1000, without=range(100, 100 + gone)), TERMS).reach

    assert (reach.hours, reach.missing) == (1000 - gone, gone)
    assert any("are missing" in each for each in reach.refused) is refused
    assert any("are missing" in each for each in reach.weak) is weak


@pytest.mark.parametrize(
    "other",
    [
        *(replace(P4D, bought_as=each) for each in ("spot", "flex-start", "queued", "reserved", "(unknown)")),
        replace(P4D, machine="(unknown)"),
    ],
)
def test_machines_that_cannot_be_committed_to_are_listed_separately(other: MachineKind) -> None:
    found = history([2] * LEAST)
    found.nodes[other] = dict.fromkeys(found.hours, Fraction(5))
    advice = advised(found, TERMS)
    best = only(advice).best

    assert best is not None
    assert best.nodes == 2
    assert advice.uncommittable == {other: 5 * LEAST}
