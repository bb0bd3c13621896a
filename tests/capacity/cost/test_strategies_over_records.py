"""The adaptive strategy on records that it was not tuned on, and the guide's table over the public ones."""

from __future__ import annotations

from functools import cache
from itertools import chain
from pathlib import Path

import pytest
from spot_records import RECORDS, needs_records
from spot_traces import made_records
from strategy_table import HEAD, Ratios, mean_row, ratios_of, row

from capacity.cost.replay import read_traces

pytestmark = pytest.mark.nightly(
    held_by="test_a_deadline_aware_strategy_meets_every_feasible_deadline, test_no_strategy_costs_less_than_knowing_the_future, "
    "test_the_adaptive_one_goes_back_to_spot_where_the_greedy_one_has_no_time_left_for_it, "
    "test_the_adaptive_one_buys_no_on_demand_where_waiting_will_do, "
    "test_the_adaptive_one_leaves_spot_alone_where_it_never_stays_as_long_as_a_restart_is_worth"
)

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "costs.md"
HELD_OUT = (
    "availability/1-node/aws-02-15-2023/us-east-1a_v100_1",
    "availability/16-node/aws-08-27-2023/us-west-2a_v100_1",
    "preemption/1-node/gcp-04-30-2023/us-central1-a_c3-88",
)
"""Played for the first versions of the strategy and once it was final; its constants come from made-up records and the other two."""

UNSEEN_SEED = 101
"""Constants were chosen on records made from other seeds."""


@cache
def over_public_records(notice_seconds: int) -> tuple[Ratios, ...]:
    alone = [[each] for each in chain.from_iterable(read_traces(RECORDS))]
    return tuple(ratios_of(zones, notice_seconds=notice_seconds) for zones in alone)


def mean(found: list[Ratios]) -> float:
    return float(sum(each.adaptive for each in found) / len(found))


def test_on_records_of_many_kinds_it_is_near_the_bound_and_never_much_worse_than_the_simple_ways() -> None:
    found = [ratios_of([each]) for each in made_records(UNSEEN_SEED)]

    assert mean(found) <= 1.12
    assert {each.comparison.name: each.over_the_better for each in found if each.over_the_better > 1.02} == {}
    assert mean(found) < float(sum(each.paced for each in found) / len(found)) - 0.02


@needs_records
@pytest.mark.parametrize("notice_seconds", [90, 0])
def test_on_public_records_that_were_held_out_it_keeps_within_what_is_promised(notice_seconds: int) -> None:
    found = [each for each in over_public_records(notice_seconds) if each.comparison.name in HELD_OUT]

    assert len(found) == len(HELD_OUT)
    assert mean(found) <= 1.12
    assert all(each.over_the_better <= 1.02 for each in found)
    assert not any(result.missed for each in found for result in each.comparison.results if result.strategy == "adaptive")


@needs_records
def test_the_guide_has_the_table_over_all_public_records_here() -> None:
    found, without = over_public_records(90), over_public_records(0)
    guide = GUIDE.read_text(encoding="utf-8")

    for line in (HEAD, *map(row, found), mean_row(found)):
        assert line in guide
    first, second, third, fourth = mean_row(without).split("| | | ")[1][:-2].split(" | ")
    assert f"Without a save on notice the means are {first}, {second}, {third} and {fourth}." in guide
