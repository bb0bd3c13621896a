"""The figures that advice decides by."""

from __future__ import annotations

import pytest
from money_jobs import COURSE_A2, COURSE_P4D, on_aws, on_gcp
from pydantic import ValidationError

from capacity.cost.estimates import Method, estimates, flex_start_limit_hours, is_gang, spot_plan


def test_pieces_of_several_nodes_are_no_gang_and_lose_at_most_a_piece() -> None:
    sweep = on_aws(nodes=20, piece_hours=1)

    assert not is_gang(sweep)
    assert (spot_plan(sweep).conditions.nodes, spot_plan(sweep).interval_hours) == (1, 1)
    assert is_gang(on_aws(nodes=20))


def test_what_is_given_goes_before_what_is_assumed() -> None:
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
def test_needs_that_cannot_be_are_refused(wrong: dict[str, object], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        on_aws(**wrong)
