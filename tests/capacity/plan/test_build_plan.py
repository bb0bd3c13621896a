"""From settings to plan, or to everything that keeps them from working."""

from __future__ import annotations

from decimal import Decimal

import pytest
from plan_settings import eks, local, plan_of, pool, refusals, team

from capacity.catalog.capacity_type import CapacityType
from capacity.catalog.machines import Cloud
from capacity.catalog.price_book import Price, PriceBook
from capacity.plan.build import build_plan
from capacity.settings.stack_file import parse_settings
from capacity.values.errors import SettingsError


def test_the_ceilings_of_an_accelerator_are_those_of_its_pools_together() -> None:
    plan = plan_of(eks(pool("a", "g6.xlarge", "spot", 3, "training"), pool("b", "g6.12xlarge", "spot", 2, "training")))

    assert plan.accelerators == {"l4": 3 + 8}


def test_everything_that_does_not_agree_is_told_at_once_under_the_name_of_the_settings() -> None:
    settings = local(
        pool("p", "g6.xlrge", "spot", 1, "training"),
        pool("q", "g6.xlarge", "spot", 1, "training", min_nodes=2),
        teams=[team("red", shares={"q": 2}), team("red")],
    )

    with pytest.raises(SettingsError, match=r"^Pulumi\.test\.yaml: 4 problem") as refused:
        build_plan(parse_settings(settings, "x"), "Pulumi.test.yaml")

    assert {each.rule for each in refused.value.problems} == {
        "unknown-machine",
        "floor-without-effect",
        "duplicate-name",
        "quota-above-ceiling",
    }


def test_a_problem_of_a_pool_that_could_not_be_resolved_brings_no_others() -> None:
    settings = local(pool("p", "g6.xlrge", "spot", 1, "training"), teams=[team("red", shares={"p": 1}, unqueued={"p": 1})])

    assert [problem.rule for problem in refusals(settings)] == ["unknown-machine"]


def test_what_works_and_is_probably_not_meant_is_a_warning_of_the_plan() -> None:
    [warning] = plan_of(local(pool("p", "g6.xlarge", "spot", 1, "training"))).warnings

    assert (warning.rule, warning.path) == ("pool-that-nobody-may-use", "teams")
    assert warning.text.startswith("no team may use pool p: none has a share of it; set shares.p")


def test_budgets_are_checked_against_the_price_book_that_is_given() -> None:
    settings = local(pool("p", "g6.xlarge", "spot", 2, "training"), teams=[team("red", shares={"p": 2}, monthly_budget_usd=1000)])
    price = Price(machine="g6.xlarge", region="us-east-1", capacity_type=CapacityType.SPOT, usd_per_hour=Decimal(1), source="own")
    book = PriceBook(Cloud.AWS, {("g6.xlarge", "us-east-1", CapacityType.SPOT): price}, {})

    assert plan_of(settings).warnings == ()
    [warning] = build_plan(parse_settings(settings, "x"), prices=book).warnings
    assert warning.rule == "budget-below-guarantee"
    assert "1460 USD a month" in warning.text


def test_an_amount_beyond_all_sense_is_told_and_does_not_crash() -> None:
    serving = pool("p", "g6.xlarge", "on-demand", 2, "inference")
    refusals(local(serving, teams=[team("red", unqueued={"p": 10**30}, monthly_budget_usd=1)]))


def test_a_ceiling_beyond_all_sense_is_told_and_does_not_crash() -> None:
    refusals(local({**pool("p", "g6.xlarge", "spot", 2, "training"), "max_nodes": None, "max_gpus": 10**4299, "max_vcpu": 5}))
