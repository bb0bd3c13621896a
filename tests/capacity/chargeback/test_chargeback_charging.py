"""Charges of a month calculated by hand, and of generated months, whose lines must always sum to the cost of the nodes."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from chargeback_months import HOUR, Month
from contract_files import contract_file

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.machines import Vendor
from flexspot.capacity.catalog.price_book import prices_of
from flexspot.capacity.chargeback.charges import LineKey
from flexspot.capacity.chargeback.node_costs import PriceTimes, cost_nodes
from flexspot.capacity.chargeback.queries import CENTRAL, PLATFORM, Owner, Question
from flexspot.capacity.chargeback.report import IdlePolicy
from flexspot.infra.cli.money import chargeback_tables as words


@pytest.fixture
def month() -> Month:
    """Return a month: a Spot node (7.6435 an hour) for 24 hours, an on-demand one (21.957642) for 10, one without GPUs (0.1785) for 24."""
    found = Month()
    found.node("spot-1", 0, 24 * HOUR, labels={"flexspot.dev/team": "vision"})
    found.node("od-1", 4 * HOUR, 14 * HOUR, bought="on-demand", pool="a100-on-demand")
    found.node("system-1", 0, 24 * HOUR, gpus=0, machine="c7i.xlarge", bought="on-demand")
    found.pod("train", "spot-1", 0, 12 * HOUR, gpus=4, team="vision", project="maps", workload_type="training", environment="prod")
    found.pod("serve", "spot-1", 6 * HOUR, 24 * HOUR, gpus=2, team="speech", workload_type="inference")
    found.pod("rush", "od-1", 4 * HOUR, 14 * HOUR, gpus=8, team="speech", workload_type="training")
    return found


def test_a_small_month_agrees_with_a_calculation_by_hand(month: Month) -> None:
    report = month.report(IdlePolicy.CENTRAL)

    # 183.444 for 192 GPU hours, of which 48 and 36 were allocated and 108 were idle; 219.57642, all allocated; 4.284.
    assert report.node_usd == Decimal("407.30")
    assert report.complete
    by_team = {key[0]: totals for key, totals in report.by("team").items()}
    assert by_team["vision"].allocated_usd == Decimal("45.86")
    assert by_team["speech"].allocated_usd == Decimal("253.97")
    assert by_team[CENTRAL].idle_usd == report.idle_usd == Decimal("103.19")
    assert by_team[PLATFORM].usd == report.platform_usd == Decimal("4.28")
    assert {name: totals.gpu_hours for name, totals in by_team.items()} == {"vision": 48, "speech": 116, CENTRAL: 0, PLATFORM: 0}
    assert report.gpu_seconds == (192 + 80) * HOUR
    assert {key[0]: each.gpu_hours for key, each in report.by("gpu").items()} == {"a100-40gb": 164.0, "(none)": 0.0}
    assert LineKey("vision", "maps", "training", "prod", "spot", "a100-spot", "a100-40gb") in {line.key for line in report.lines}


def test_savings_of_spot_count_for_allocated_gpus(month: Month) -> None:
    report = month.report(IdlePolicy.PROPORTIONAL)

    # 48 and 36 GPU hours on Spot, an eighth of 21.957642 less 7.6435 for each (85.8849 and 64.4136, to sum to 150.30). On-demand nodes save
    # nothing, and idle GPUs do not count.
    assert {key[0]: each.saved_usd for key, each in report.by("team").items() if each.saved_usd} == {
        "vision": Decimal("85.89"),
        "speech": Decimal("64.41"),
    }
    assert report.by("capacity_type")["on-demand",].saved_usd == 0
    assert dict(words.summary(report))["saved"] == "150.30 USD (33%) against on-demand prices, for allocated GPUs"


def test_without_a_known_on_demand_price_savings_are_zero_and_reported_as_unknown() -> None:
    month = Month()
    month.node("new", 0, 3 * HOUR, machine="p9.48xlarge")
    month.pod("try", "new", 0, 3 * HOUR, gpus=2, team="vision")
    row = {"machine": "p9.48xlarge", "region": "us-east-1", "capacity_type": "spot", "usd_per_hour": "30.00"}
    report = month.report(own=contract_file(prices=[row]))

    assert report.total.saved_usd == 0
    assert report.notes == ("The on-demand price of p9.48xlarge in us-east-1 is not known: nothing is counted as saved there.",)
    assert report.complete, "what is paid is known"


def test_the_policys_payer_pays_for_idle_gpus(month: Month) -> None:
    def idle(policy: IdlePolicy) -> dict[str, Decimal]:
        return {key[0]: totals.idle_usd for key, totals in month.report(policy).by("team").items() if totals.idle_usd}

    assert idle(IdlePolicy.CENTRAL) == {CENTRAL: Decimal("103.19")}
    assert idle(IdlePolicy.OWNER) == {"vision": Decimal("103.19")}
    # The pool's idle GPUs are divided by what its two users had of it: 48 to 36 GPU hours. On-demand GPUs in other pools do not count.
    assert idle(IdlePolicy.PROPORTIONAL) == {"vision": Decimal("58.96"), "speech": Decimal("44.22")}


def test_idle_gpus_of_an_unused_pool_are_paid_by_all_teams_or_centrally() -> None:
    month = Month()
    month.node("unused", 0, 2 * HOUR)
    assert [line.key.team for line in month.report(IdlePolicy.PROPORTIONAL).lines] == [CENTRAL]

    month.node("od-1", 0, 2 * HOUR, bought="on-demand", pool="a100-on-demand")
    month.pod("train", "od-1", 0, 2 * HOUR, gpus=1, team="vision")
    assert [line.key.team for line in month.report(IdlePolicy.PROPORTIONAL).lines] == ["vision"]


def test_nodes_without_a_known_price_are_listed_and_not_free(month: Month) -> None:
    month.node("new", 0, 3 * HOUR, machine="p9.48xlarge")
    month.node("bare", 0, 2 * HOUR, labels=dict.fromkeys(["node.kubernetes.io/instance-type", "karpenter.sh/capacity-type"], ""))
    month.pod("try", "new", 0, 3 * HOUR, gpus=2, team="vision")
    report = month.report()

    assert {str(price): seconds for price, seconds in report.unknown.items()} == {
        "spot price of p9.48xlarge in us-east-1": 3 * HOUR,
        "(unknown) price of (unknown) in us-east-1": 2 * HOUR,
    }
    assert not report.complete
    assert report.by("team")["vision",].unpriced == 6 * HOUR
    assert report.node_usd == Decimal("407.30")


def test_a_pod_that_is_seen_for_longer_than_its_node_pays_no_more_than_the_node(month: Month) -> None:
    month.node("brief", 0, HOUR)
    month.pod("late", "brief", 0, 2 * HOUR, gpus=8, team="late")

    report = month.report()
    assert report.by("team")["late",].usd == Decimal("7.64")
    assert (report.unmatched[Owner("late")], report.complete) == (8 * HOUR, False), "one more hour was on an unseen node"


def test_a_pod_that_is_seen_for_minutes_more_than_its_node_takes_no_more_of_it_from_the_others(month: Month) -> None:
    month.node("brief", 0, HOUR)
    month.pod("first", "brief", 0, HOUR, gpus=4, team="first")
    month.pod("late", "brief", HOUR - 300, HOUR + 300, gpus=8, team="late", project="other")
    report = month.report()

    # 4 GPUs for an hour, and 8 for five minutes of it. The five minutes after that belong to no team.
    usd = {key[0]: each.usd for key, each in report.by("team").items() if key[0] in {"first", "late"}}
    assert usd == {"first": Decimal("3.82"), "late": Decimal("0.64")}
    assert report.complete


def test_gpu_hours_on_an_unseen_node_are_reported_without_a_price(month: Month) -> None:
    month.pod("ghost", "nowhere", 0, HOUR, gpus=3, team="vision")
    report = month.report()

    assert {owner.team: seconds for owner, seconds in report.unmatched.items()} == {"vision": Fraction(3 * HOUR)}
    assert not report.complete
    assert report.by("team")["vision",].gpu_hours == 48


def test_opencost_is_compared_on_the_same_nodes(month: Month) -> None:
    month.seen(Question.OPENCOST, {"node": "spot-1"}, 0, 24 * HOUR, 8.0)
    figure = month.report().opencost

    assert figure is not None
    assert (figure.nodes, figure.opencost_usd, figure.report_usd) == (1, Decimal("192.00"), Decimal("183.44"))


def test_nodes_are_grouped_by_machine_and_capacity_type() -> None:
    month = Month()
    month.node("a", 0, 10 * HOUR)
    month.node("b", 0, 5 * HOUR)
    month.node("c", 0, HOUR, bought="on-demand")
    month.node("d", 0, HOUR, machine="x9.metal")
    found = {(each.machine, each.capacity_type): each for each in month.report(IdlePolicy.CENTRAL).nodes}

    spot, unknown = found["p4d.24xlarge", "spot"], found["x9.metal", "spot"]
    assert (spot.cloud, spot.region, spot.nodes, spot.node_seconds, spot.unpriced_seconds) == ("aws", "us-east-1", 2, 15 * HOUR, 0)
    # 7.6435 and 21.957642 USD an hour.
    assert (spot.usd, found["p4d.24xlarge", "on-demand"].usd) == (Decimal("114.65"), Decimal("21.96"))
    assert (unknown.usd, unknown.unpriced_seconds) == (0, HOUR)


def test_nodes_of_auto_mode_cost_the_fee_too_in_the_environments_that_are_named() -> None:
    month = Month()
    month.node("auto", 0, 10 * HOUR, labels={"flexspot.dev/environment": "auto"})
    month.node("own", 0, 10 * HOUR, labels={"flexspot.dev/environment": "dev"})
    books = month.books()

    costs = cost_nodes(books, PriceTimes(prices_of), auto_mode={"auto"})

    usd = {name: amount for (name, _, _), amount in costs.usd.items()}
    # A p4d.24xlarge on Spot, and 4.8 % of its on-demand price.
    assert usd["own"] == Fraction("76.435")
    assert usd["auto"] == Fraction("76.435") + Fraction("0.048") * Fraction("219.57642")
    assert "auto-mode-fee-of-gpus" in costs.sources
    assert cost_nodes(books, PriceTimes(prices_of)).usd.keys() == costs.usd.keys()
    assert "auto-mode-fee-of-gpus" not in cost_nodes(books, PriceTimes(prices_of)).sources


def test_a_fee_that_is_not_known_is_listed_as_the_on_demand_price_that_it_is_a_part_of() -> None:
    book = prices_of(Vendor.AWS)
    spot = [(machine, region) for machine, region, kind in book.prices if kind is CapacityType.SPOT]
    machine, region = next(each for each in spot if book.find(*each, CapacityType.ON_DEMAND) is None)
    month = Month()
    place = {"node.kubernetes.io/instance-type": machine, "topology.kubernetes.io/region": region}
    month.node("auto", 0, 2 * HOUR, labels={**place, "flexspot.dev/environment": "auto"})

    costs = cost_nodes(month.books(), PriceTimes(prices_of), auto_mode={"auto"})

    assert {str(each): seconds for each, seconds in costs.unknown.items()} == {f"on-demand price of {machine} in {region}": 2 * HOUR}
    assert costs.usd == {}
