"""Commitments: reservations are billed whether their nodes exist or not, and a report without them is incomplete."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from chargeback_months import HOUR, STEP, Month
from contract_files import contract_file
from hypothesis import given, settings
from hypothesis import strategies as st

from flexspot.capacity.chargeback.queries import CENTRAL, PLATFORM
from flexspot.capacity.chargeback.report import IdlePolicy
from flexspot.infra.cli.money import chargeback_tables as words

P5 = {"machine": "p5.48xlarge", "region": "us-east-1"}
P5_USD, CENT = Decimal("55.04"), Decimal("0.01")


def reserved(month: Month, name: str, start: int, end: int, pool: str = "h100", **more: str) -> None:
    month.node(name, start, end, machine="p5.48xlarge", bought="reserved", pool=pool, labels=more)


@pytest.fixture
def month() -> Month:
    """Return a month with four reserved p5 for the first 12 of 30 hours, all allocated to pods of one team."""
    found = Month(hours=30)
    for number in range(4):
        reserved(found, f"h100-{number}", 0, 12 * HOUR)
        found.pod(f"train-{number}", f"h100-{number}", 0, 12 * HOUR, gpus=8, team="vision")
    return found


def test_reservations_are_billed_for_hours_without_their_nodes(month: Month) -> None:
    report = month.report(own=contract_file(commitments=[{**P5, "nodes": 4}]))

    # 4 nodes for 30 hours at 55.04; of these 18 hours without any of them.
    assert report.node_usd == report.total.usd == Decimal("6604.80")
    assert report.idle_usd == Decimal("3962.88")
    assert report.by("team")["vision",].usd == Decimal("2641.92")
    assert report.by("team")[CENTRAL,].idle_usd == Decimal("3962.88")
    assert report.complete
    [kept] = report.commitments
    assert (kept.seconds, kept.unused, kept.usd) == (4 * 30 * HOUR, 4 * 18 * HOUR, Decimal("3962.88"))
    assert dict(words.summary(report))["reserved, and not there"] == "3,962.88 USD for 72.0 node hours, billed all the same"


def test_reserved_nodes_without_a_known_commitment_leave_the_report_incomplete(month: Month) -> None:
    report = month.report()

    assert report.node_usd == Decimal("2641.92")
    assert not report.complete
    assert {str(kind): seconds for kind, seconds in report.uncommitted.items()} == {
        "reserved p5.48xlarge in us-east-1 (pool h100)": 4 * 12 * HOUR
    }
    assert any("for which no commitment is given" in each for each in words.warnings(report))
    assert dict(words.summary(report))["nodes"] == "at least 2,641.92 USD"


def test_reserved_nodes_beyond_the_commitments_are_reported(month: Month) -> None:
    report = month.report(own=contract_file(commitments=[{**P5, "nodes": 3}]))

    assert not report.complete
    assert list(report.uncommitted.values()) == [12 * HOUR]
    assert report.node_usd == P5_USD * (4 * 12 + 3 * 18)


def test_a_commitment_holds_from_its_start_until_its_end(month: Month) -> None:
    """A day of October 2026. A block of four for the first twelve hours has no unused part, one from 10:00 to 21:00 has nine hours."""
    block = contract_file(commitments=[{**P5, "nodes": 4, "start": "2026-10-01T00:00:00Z", "end": "2026-10-01T12:00:00Z"}])
    later = contract_file(commitments=[{**P5, "nodes": 4, "start": "2026-10-01T10:00:00Z", "end": "2026-10-01T21:00:00Z"}])

    assert (month.report(own=block).idle_usd, month.report(own=block).complete) == (Decimal(0), True)
    assert month.report(own=later).idle_usd == P5_USD * 4 * 9
    assert list(month.report(own=later).uncommitted.values()) == [4 * 10 * HOUR], "no commitment covers the ten hours before it"


def test_nodes_that_follow_each_other_in_one_reservation_are_no_second_one() -> None:
    month = Month()
    for number in range(24):
        # Prometheus shows the old node for one step in addition to the new one.
        reserved(month, f"h100-{number}", number * HOUR, (number + 1) * HOUR + STEP)
    report = month.report(own=contract_file(commitments=[{**P5, "nodes": 1}]))

    assert report.complete
    assert report.commitments[0].unused == 0


def test_a_committed_machine_without_a_known_price_is_reported_and_not_free() -> None:
    month = Month()
    month.node("spot-1", 0, 24 * HOUR)
    unknown = {"machine": "p5e.48xlarge", "region": "us-east-1", "nodes": 1}
    report = month.report(own=contract_file(commitments=[unknown]))

    assert not report.complete
    assert {str(price): seconds for price, seconds in report.unknown.items()} == {"reserved price of p5e.48xlarge in us-east-1": 24 * HOUR}


def test_a_contract_prices_what_is_committed_there_or_not(month: Month) -> None:
    """By a row of the capacity type, a row of the pool, and percent off the list price."""
    row = {**P5, "capacity_type": "reserved", "usd_per_hour": "30"}
    commitments = [{**P5, "nodes": 4}]
    by_row = contract_file(prices=[row], commitments=commitments)
    by_pool = contract_file(prices=[row, {**row, "pool": "h100", "usd_per_hour": "25"}], commitments=[{**P5, "nodes": 4, "pool": "h100"}])
    by_percent = contract_file(discounts=[{"capacity_type": "reserved", "percent": "50"}], commitments=commitments)

    assert month.report(own=by_row).node_usd == 30 * 30 * 4
    assert month.report(own=by_pool).node_usd == 25 * 30 * 4
    assert month.report(own=by_percent).node_usd == Decimal("27.52") * 30 * 4


@pytest.mark.parametrize(
    "policy,payer",
    [(IdlePolicy.CENTRAL, CENTRAL), (IdlePolicy.OWNER, "speech"), (IdlePolicy.PROPORTIONAL, "vision")],
)
def test_the_policys_payer_pays_for_unused_commitments(policy: IdlePolicy, payer: str) -> None:
    month = Month()
    reserved(month, "h100-0", 0, HOUR, **{"flexspot.dev/team": "speech"})
    month.pod("train", "h100-0", 0, HOUR, gpus=8, team="vision")
    report = month.report(policy, own=contract_file(commitments=[{**P5, "nodes": 1}]))

    assert {key[0]: totals.idle_usd for key, totals in report.by("team").items() if totals.idle_usd} == {payer: P5_USD * 23}


def test_committed_machines_without_gpus_are_the_platforms() -> None:
    month = Month()
    reserved(month, "h100-0", 0, HOUR)
    cpu = {"machine": "c7i.xlarge", "region": "us-east-1", "nodes": 1}
    report = month.report(own=contract_file(commitments=[cpu, {**P5, "nodes": 1, "end": "2026-10-01T01:00:00Z"}]))

    assert report.by("team")[PLATFORM,].usd == report.platform_usd == (Decimal("0.1785") * 24).quantize(CENT)


POOLS = st.sampled_from(["h100", "dev"])
NODES = st.lists(st.tuples(st.integers(0, 500), st.integers(3, 300), POOLS), max_size=6)
COMMITMENTS = st.lists(
    st.tuples(st.integers(1, 3), st.sampled_from([None, "h100", "dev"]), st.integers(0, 6), st.integers(1, 6)), max_size=4
)


@pytest.mark.slow
@settings(max_examples=60)
@given(nodes=NODES, wanted=COMMITMENTS, policy=st.sampled_from(IdlePolicy), slice_hours=st.integers(1, 9))
def test_any_month_agrees_with_counting_minute_by_minute(
    nodes: list[tuple[int, int, str]], wanted: list[tuple[int, str | None, int, int]], policy: IdlePolicy, slice_hours: int
) -> None:
    """Counts each minute separately: existing nodes, and for each commitment, those of its pool first, the missing ones."""
    month = Month(hours=9)
    rows: list[dict[str, Any]] = []
    for number, (start, minutes, pool) in enumerate(nodes):
        reserved(month, f"n{number}", start * 60, (start + minutes) * 60, pool)
    for count, pool, first, hours in wanted:
        moments = [f"2026-10-01T{each:02}:00:00Z" for each in (first, first + hours)]
        rows.append({**P5, "nodes": count, "start": moments[0], "end": moments[1], **({"pool": pool} if pool else {})})
    minutes = 0
    for minute in range(9 * 60):
        there = {pool: sum(a <= minute < a + b for a, b, its in nodes if its == pool) for pool in ("h100", "dev")}
        minutes += sum(there.values())
        for count, pool, first, hours in sorted(wanted, key=lambda each: each[1] is None):
            if not first * 60 <= minute < (first + hours) * 60:
                continue
            missing = count
            for its in [pool] if pool else list(there):
                taken = min(missing, there[its])
                there[its], missing = there[its] - taken, missing - taken
            minutes += missing

    report = month.report(policy, slice_hours * HOUR, contract_file(commitments=rows))

    assert report.total.usd == report.node_usd
    assert abs(Fraction(report.node_usd) - minutes * Fraction(P5_USD) / 60) <= Fraction(1, 200)
