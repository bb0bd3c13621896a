"""The figures that advice is based on, and its rules."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from flexspot_runtime import InterruptionRate
from money_jobs import COURSE_A2, COURSE_P4D, on_aws, on_gcp
from pydantic import ValidationError

from flexspot.capacity.catalog.data_files import DataFileError, read_records
from flexspot.capacity.catalog.machines import Vendor
from flexspot.capacity.catalog.price_book import prices_of
from flexspot.capacity.cost.costed_plan import machine_prices
from flexspot.capacity.cost.estimates import AdviceRules, Fact, Method, estimates, flex_start_limit_hours, is_gang, shipped_rules, spot_plan
from flexspot.capacity.values.errors import ExitCode, ExplainedError


def test_pieces_of_several_nodes_are_no_gang_and_lose_at_most_a_piece() -> None:
    sweep = on_aws(nodes=20, piece_hours=1)

    assert not is_gang(sweep)
    assert (spot_plan(sweep).conditions.nodes, spot_plan(sweep).interval_hours) == (1, 1)
    assert is_gang(on_aws(nodes=20))


def test_given_figures_override_assumed_ones() -> None:
    plan = spot_plan(on_aws(interruptions_per_node_hour=0.01, restart_minutes=3, spot_wait_hours=2))

    assert plan.conditions.interruptions_per_node_hour == 0.01
    assert plan.conditions.restart_hours == pytest.approx(0.05)
    assert plan.conditions.wait_hours == 2
    assert spot_plan(on_aws()).conditions.interruptions_per_node_hour == 0.25


def test_flex_start_is_of_google_and_of_machines_that_dws_gives() -> None:
    assert flex_start_limit_hours(on_gcp()) == 168
    assert flex_start_limit_hours(on_aws()) is None
    assert flex_start_limit_hours(on_gcp(machine="e2-standard-4")) is None


def test_flex_start_waits_again_for_each_seven_days() -> None:
    found = estimates(on_gcp(work_hours=400, flex_start_wait_hours=10), COURSE_A2).by_method[Method.FLEX_START]

    assert found.finish_hours == 430


def test_spot_that_never_ends_has_no_cost() -> None:
    found = estimates(on_aws(work_hours=500, deadline_hours=600), COURSE_P4D).by_method

    assert (found[Method.SPOT].usd_most, found[Method.SPOT].late_share) == (None, 1)
    assert Method.HYBRID not in found


@pytest.mark.parametrize(
    "wrong,problem",
    [
        ({"work_hours": 0}, "greater than 0"),
        ({"nodes": 0}, "greater than or equal to 1"),
        ({"deadline_hours": 10}, "deadline_hours 10.0 is before the 72.0 hours of work are done"),
        ({"spot_wait_hours": float("nan")}, "finite number"),
        ({"interruptable": False}, "Extra inputs"),
        ({"cloud": "azure"}, "'aws' or 'gcp'"),
    ],
)
def test_impossible_needs_are_refused(wrong: dict[str, object], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        on_aws(**wrong)


def test_the_runtime_library_begins_with_the_rate_that_advice_assumes() -> None:
    assert Decimal(str(InterruptionRate().per_hour)) == shipped_rules().assumptions.interruptions_per_node_hour.value


def test_without_a_list_price_the_regions_that_have_one_are_named() -> None:
    with pytest.raises(ExplainedError, match=r"no on-demand price of p5\.4xlarge in mars-1") as refused:
        machine_prices(prices_of(Vendor.AWS), "p5.4xlarge", "mars-1")

    assert refused.value.exit_code is ExitCode.BAD_USAGE
    assert "p5.4xlarge has one in" in refused.value.remedy


def test_for_a_machine_without_any_price_those_of_the_region_are_named() -> None:
    with pytest.raises(ExplainedError) as refused:
        machine_prices(prices_of(Vendor.AWS), "p4d.25xlarge", "us-east-1")

    assert "did you mean p4d.24xlarge?" in refused.value.remedy


RULES = (Path(__file__).resolve().parents[3] / "capacity" / "flexspot" / "capacity" / "cost" / "advice_rules.yaml").read_text(
    encoding="utf-8"
)


def test_a_rule_holds_when_all_of_its_facts_are_so() -> None:
    rules = {each.name: each for each in shipped_rules().rules}

    assert rules["all-nodes-at-once"].holds({Fact.GANG: True})
    assert not rules["one-node-needs-no-request"].holds({Fact.GANG: True})


@pytest.mark.parametrize(
    "line,broken,problem",
    [
        ("excludes: [reserved]", "excludes: [on-demand]", "nothing-is-reserved-for-once: on-demand is never excluded"),
        ("name: steady-floor", "name: teams-share", "two rules have the same name"),
        ("when: {gang: true}", "when: {gnag: true}", "Input should be 'user_facing'"),
        ('"0.02", source: assumption', '"0.02", source: there', "usd_per_gib_between_regions: source 'there' is not one of matrix"),
        ("billed\n    source: course", "billed\n    source: x", "data-is-elsewhere: source 'x'"),
        ("restart_minutes", "restart_hours", "restart_minutes: Field required"),
    ],
)
def test_a_broken_rule_file_is_reported(line: str, broken: str, problem: str, tmp_path: Path) -> None:
    assert line in RULES
    (tmp_path / "rules.yaml").write_text(RULES.replace(line, broken))

    with pytest.raises(DataFileError, match=problem):
        read_records(tmp_path / "rules.yaml", AdviceRules)


def test_every_fact_is_used_by_a_shipped_rule() -> None:
    asked = {fact for rule in shipped_rules().rules for fact in rule.when}

    assert asked == set(Fact), "a fact without a rule is calculated in vain"
