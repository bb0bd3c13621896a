"""Commitments of US dollars an hour: the cloud's own example, every order by brute force, and months calculated hour by hour."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from chargeback_months import HOUR, Month, at
from contract_files import contract_file
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from flexspot.capacity.chargeback.charges import SPEND
from flexspot.capacity.chargeback.charging import charge
from flexspot.capacity.chargeback.node_costs import PriceTimes, cost_nodes
from flexspot.capacity.chargeback.queries import CENTRAL
from flexspot.capacity.chargeback.report import IdlePolicy
from flexspot.infra.cli.money import chargeback_tables as words
from flexspot.infra.cli.money.chargeback_formats import report_data

if TYPE_CHECKING:
    from flexspot.capacity.catalog.price_book import PriceFile
    from flexspot.capacity.chargeback.report import Report

COMPUTE, EC2 = "compute-savings-plan", "ec2-instance-savings-plan"
R5, M5, P4, G6 = "r5.4xlarge", "m5.24xlarge", "p4d.24xlarge", "g6.xlarge"


def on_demand(machine: str, usd: str, **more: str) -> dict[str, Any]:
    return {"machine": machine, "region": "us-east-1", "capacity_type": "on-demand", "usd_per_hour": usd, **more}


def plan(usd: str, rates: dict[str, str], name: str = "sp-1", kind: str = COMPUTE, **more: str) -> dict[str, Any]:
    rows = [{"machine": machine, "region": "us-east-1", "usd_per_hour": each} for machine, each in rates.items()]
    return {"name": name, "kind": kind, "usd_per_hour": usd, "rates": rows, **more}


def node(  # noqa: PLR0913, PLR0917 -- what a node is
    month: Month, name: str, machine: str, start: int, end: int, bought: str = "on-demand", **more: str
) -> None:
    month.node(name, start, end, gpus={P4: 8, G6: 1}.get(machine, 0), machine=machine, bought=bought, pool=bought, labels=more)


def example(commitment: str) -> Report:
    """Return the machines of AWS' example for an hour, without Fargate and Lambda, at its rates: 30 % and 18 % off."""
    month = Month(hours=1)
    for number in range(4):
        node(month, f"r5-{number}", R5, 0, HOUR)
    node(month, "m5", M5, 0, HOUR)
    own = contract_file(
        prices=[on_demand(R5, "1.00"), on_demand(M5, "10.00")], spend_commitments=[plan(commitment, {R5: "0.70", M5: "8.20"})]
    )
    return month.report(own=own)


def test_the_clouds_own_example_has_the_clouds_own_result() -> None:
    """docs.aws.amazon.com/savingsplans/latest/userguide/sp-applying.html, read 2026-11-27: 4 r5.4xlarge and an m5.24xlarge."""
    # Everything is covered: 4 at 0.70 and one at 8.20.
    assert (example("11.00").node_usd, example("11.00").plans[0].coverage) == (Decimal("11.00"), 1)
    # r5 first, with 30 % off. For m5 2.20 are left, 26.8 % of it: the rest is on demand.
    [found] = example("5.00").plans
    assert example("5.00").node_usd == Decimal("12.32")
    assert (found.used_usd, found.unused_usd, found.utilisation) == (Decimal("5.00"), 0, 1)
    assert found.coverage == (4 + 10 * Fraction("2.20") / Fraction("8.20")) / 14
    # More than the running machines need: 9 of 20 are unused, and billed.
    [found] = example("20.00").plans
    assert (found.committed_usd, found.used_usd, found.unused_usd) == (Decimal("20.00"), Decimal("11.00"), Decimal("9.00"))
    assert example("20.00").node_usd == Decimal("20.00")


def gpu_month() -> Month:
    month = Month(hours=10)
    node(month, "p4", P4, 0, 10 * HOUR)
    node(month, "spot", P4, 0, 10 * HOUR, "spot")
    month.pod("train", "p4", 0, 6 * HOUR, gpus=8, team="vision")
    month.pod("tune", "spot", 0, 10 * HOUR, gpus=8, team="speech")
    return month


@pytest.mark.parametrize(
    "policy,payers",
    [
        (IdlePolicy.CENTRAL, {CENTRAL: "50.00"}),
        (IdlePolicy.OWNER, {CENTRAL: "50.00"}),
        (IdlePolicy.PROPORTIONAL, {"vision": "50.00"}),
    ],
)
def test_spot_is_never_covered_and_the_policys_payer_pays_the_unused_part(policy: IdlePolicy, payers: dict[str, str]) -> None:
    """15 dollars an hour, of which the one machine on demand uses 10. Only in the last four hours are GPUs idle."""
    own = contract_file(prices=[on_demand(P4, "20.00")], spend_commitments=[plan("15.00", {P4: "10.00"})])
    report = gpu_month().report(policy, own=own)

    spot = Decimal("76.44")
    assert report.node_usd == Decimal("150.00") + spot
    assert report.by("team")["speech",].usd in {spot, spot - Decimal("0.01")}
    unused = {each.line.team: str(each.usd) for each in report.charges if each.supply.is_plan}
    assert unused == payers
    assert report.by("team")["vision",].allocated_usd == Decimal("60.00")
    assert report.by("team")["vision",].saved_usd == Decimal("60.00"), "six hours, each ten dollars less than on demand"
    central = SPEND in {line.key.capacity_type for line in report.lines}
    assert central is (policy is not IdlePolicy.PROPORTIONAL)


def test_a_report_says_how_much_of_a_commitment_was_used() -> None:
    own = contract_file(prices=[on_demand(P4, "20.00")], spend_commitments=[plan("15.00", {P4: "10.00"}, start=at(2))])
    report = gpu_month().report(own=own)

    [commitment] = report_data(report)["spend_commitments"]
    assert commitment == {
        "name": "sp-1",
        "kind": COMPUTE,
        "usd_per_hour": "15.00",
        "committed_usd": "120.00",
        "used_usd": "80.00",
        "unused_usd": "40.00",
        "utilisation": 0.666667,
        "coverage": 1.0,
        "source": "own: contract",
    }
    assert dict(words.summary(report))["committed, and not used"] == "40.00 of 120.00 USD, billed all the same"
    assert {each.capacity_type: each.usd for each in report.nodes if each.capacity_type == SPEND} == {SPEND: Decimal("40.00")}
    assert report.complete


def test_the_fee_of_auto_mode_is_paid_in_addition_to_the_commitment() -> None:
    month = Month(hours=10)
    node(month, "auto", P4, 0, 10 * HOUR, **{"flexspot.dev/environment": "auto"})
    prices = PriceTimes(own=contract_file(prices=[on_demand(P4, "20.00")], spend_commitments=[plan("10.00", {P4: "10.00"})]), name="own")
    books = month.books(cuts=prices.cuts(month.period))
    report = charge(books, cost_nodes(books, prices, auto_mode={"auto"}), idle=IdlePolicy.CENTRAL, asked=books.period)

    # 10 hours at 10, and 4.8 % of 20 for each of them.
    assert report.node_usd == Decimal("109.60")
    assert {each.capacity_type: each.usd for each in report.nodes} == {
        "on-demand": Decimal("100.00"),
        "eks-auto-mode": Decimal("9.60"),
        SPEND: Decimal("0.00"),
    }


def test_two_like_machines_share_what_is_not_enough_for_both() -> None:
    month = Month(hours=1)
    for name, team in (("a", "vision"), ("b", "speech")):
        node(month, name, P4, 0, HOUR)
        month.pod(f"pod-{name}", name, 0, HOUR, gpus=8, team=team)
    own = contract_file(prices=[on_demand(P4, "20.00")], spend_commitments=[plan("10.00", {P4: "10.00"})])

    assert {key[0]: each.usd for key, each in month.report(own=own).by("team").items() if each.usd} == {
        "vision": Decimal("15.00"),
        "speech": Decimal("15.00"),
    }


def test_books_that_are_not_cut_by_the_hour_are_refused() -> None:
    month = gpu_month()
    prices = PriceTimes(own=contract_file(spend_commitments=[plan("15.00", {P4: "10.00"})]), name="own")
    with pytest.raises(ValueError, match="not cut by the hour"):
        cost_nodes(month.books(), prices)


@pytest.mark.parametrize(
    "row,problem",
    [
        (plan("1", {P4: "1"}, start="2026-10-01"), "the start 2026-10-01 00:00:00 has no offset from UTC"),
        (plan("1", {P4: "1"}, start="2026-10-01T00:30:00Z"), "is not on a full hour"),
        (plan("1", {P4: "1"}, start=at(2), end=at(1)), "not after its start"),
        (plan("1", {}), "rates"),
        (plan("1", {P4: "1"}, kind="compute-flexible-cud"), "aws has no compute-flexible-cud"),
        ({**plan("1", {P4: "1"}), "rates": plan("1", {P4: "1"})["rates"] * 2}, "two rates of p4d.24xlarge in us-east-1"),
        (plan("0", {P4: "1"}), "greater than 0"),
    ],
)
def test_an_impossible_commitment_is_refused(row: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        contract_file(spend_commitments=[row])


MACHINES = (R5, M5, P4, G6)
NODES = st.lists(
    st.tuples(st.sampled_from(MACHINES), st.sampled_from(["on-demand", "on-demand", "spot"]), st.integers(0, 230), st.integers(1, 200)),
    min_size=1,
    max_size=5,
)
RATES = st.dictionaries(st.sampled_from(MACHINES), st.integers(1, 100), min_size=1)


LIST_CENTS = st.fixed_dictionaries({each: st.integers(101, 2000) for each in MACHINES})


PLANS = st.lists(st.tuples(st.sampled_from([COMPUTE, EC2]), st.integers(1, 2500), RATES, st.integers(0, 3), st.integers(1, 4)), max_size=3)
PODS = st.lists(st.tuples(st.sampled_from(["vision", "speech"]), st.integers(0, 4), st.integers(0, 230), st.integers(1, 200)), max_size=4)


def file_of(plans: list[tuple[str, int, dict[str, int], int, int]], cents: dict[str, int], change: tuple[int, int]) -> PriceFile:
    """Return a price file in which the on-demand price of p4d changes at a minute."""
    rows = [
        plan(
            str(Decimal(usd).scaleb(-2)),
            {machine: str(Decimal(each).scaleb(-2)) for machine, each in rates.items()},
            name=f"sp-{number}",
            kind=kind,
            start=at(first),
            end=at(first + lasts),
        )
        for number, (kind, usd, rates, first, lasts) in enumerate(plans)
    ]
    prices = [
        on_demand(name, str(Decimal(cents[name]).scaleb(-2)), capacity_type=kind) for name in MACHINES for kind in ("on-demand", "spot")
    ]
    later = on_demand(P4, str(Decimal(change[1]).scaleb(-2)), start=at(0, change[0] * 60))
    return contract_file(prices=[*prices, later], spend_commitments=rows)


def greedy(
    usages: list[tuple[int, str, Fraction, int]], plans: list[tuple[str, int, dict[str, int]]]
) -> tuple[dict[int, Fraction], Fraction]:
    """Return the cents that each node pays, and the unused cents of the commitments, for one hour by AWS' rule, one usage at a time."""
    left_hours = [hours for _, _, hours, _ in usages]
    left_cents = [Fraction(usd) for _, usd, _ in plans]
    pays: defaultdict[int, Fraction] = defaultdict(Fraction)
    for kind in (EC2, COMPUTE):
        found = [
            (1 - Fraction(rates[machine], listed), -rates[machine], -number, index)
            for number, (of, _, rates) in enumerate(plans)
            if of == kind
            for index, (_, machine, _, listed) in enumerate(usages)
            if machine in rates
        ]
        for _, less, number, index in sorted(found, reverse=True):
            hours = min(left_hours[index], left_cents[-number] / -less)
            left_hours[index] -= hours
            left_cents[-number] -= hours * -less
            pays[usages[index][0]] += hours * -less
    for index, (node_number, _, _, listed) in enumerate(usages):
        pays[node_number] += left_hours[index] * listed
    return pays, sum(left_cents, Fraction(0))


def worked_out(
    nodes: list[tuple[str, str, int, int]],
    plans: list[tuple[str, int, dict[str, int], int, int]],
    cents: dict[str, int],
    change: tuple[int, int],
) -> tuple[Fraction, Fraction]:
    """Return the cost of four hours in cents, and the part of it that no machine used."""
    expected, unused = Fraction(0), Fraction(0)
    for hour in range(4):
        usages: list[tuple[int, str, Fraction, int]] = []
        for number, (machine, bought, start, lasts) in enumerate(nodes):
            for first, last in ((hour * 60, min(change[0], hour * 60 + 60)), (max(hour * 60, change[0]), hour * 60 + 60)):
                minutes = sum(start <= each < start + lasts for each in range(first, last))
                changed = machine == P4 and bought == "on-demand" and first >= change[0]
                listed = change[1] if changed else cents[machine]
                if bought == "spot":
                    expected += Fraction(minutes * listed, 60)
                elif minutes:
                    usages.append((number, machine, Fraction(minutes, 60), listed))
        held = [(kind, usd, rates) for kind, usd, rates, first, lasts in plans if first <= hour < first + lasts]
        pays, left = greedy(usages, held)
        unused += left
        expected += sum(pays.values(), Fraction(0)) + left
    return expected, unused


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    nodes=NODES,
    pods=PODS,
    plans=PLANS,
    cents=LIST_CENTS,
    change=st.tuples(st.integers(1, 239), st.integers(101, 2000)),
    policy=st.sampled_from(IdlePolicy),
    slice_hours=st.integers(1, 5),
)
def test_any_month_agrees_with_counting_hour_by_hour_and_every_line_is_paid(  # noqa: PLR0913, PLR0917 -- a month
    nodes: list[tuple[str, str, int, int]],
    pods: list[tuple[str, int, int, int]],
    plans: list[tuple[str, int, dict[str, int], int, int]],
    cents: dict[str, int],
    change: tuple[int, int],
    policy: IdlePolicy,
    slice_hours: int,
) -> None:
    expected, unused = worked_out(nodes, plans, cents, change)
    month = Month(hours=4)
    for number, (machine, bought, start, lasts) in enumerate(nodes):
        node(month, f"n{number}", machine, start * 60, (start + lasts) * 60, bought)
    for number, (team, index, start, lasts) in enumerate(pods):
        if index < len(nodes) and nodes[index][0] in {P4, G6}:
            month.pod(f"p{number}", f"n{index}", start * 60, (start + lasts) * 60, gpus=1, team=team)

    report = month.report(policy, slice_hours * HOUR, file_of(plans, cents, change))

    assert abs(Fraction(report.node_usd) - expected / 100) <= Fraction(1, 200)
    assert report.node_usd == report.total.usd == sum(each.usd for each in report.nodes) == sum(each.usd for each in report.charges)
    for dimension in ("team", "project", "capacity_type", "pool", "gpu"):
        assert sum(each.usd for each in report.by(dimension).values()) == report.node_usd
    assert abs(Fraction(sum((each.unused_usd for each in report.plans), Decimal(0))) - unused / 100) <= Fraction(len(plans), 100)
    for team, totals in report.by("team").items():
        work = [each.totals.usd for each in report.work if each.team == team[0]]
        assert not work or sum(work) == totals.allocated_usd
