"""Records of Spot availability: the public format, what is measured in them, and the closed form against them."""

from __future__ import annotations

import statistics
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from spot_traces import made_trace, write_trace

from capacity.catalog.capacity_type import CapacityType
from capacity.cost.replay import Job, Rates, Trace, read_trace, read_traces, replay
from capacity.cost.spot_arithmetic import SpotConditions, spot_run
from capacity.cost.strategies import Spot
from capacity.values.errors import ExitCode, ExplainedError

if TYPE_CHECKING:
    from pathlib import Path

# Half an hour a tick: up 2 h, down 1 h, up 1 h (with two nodes for half of it), down half an hour, up half an hour.
HAND = Trace("hand", 1800, (2, 2, 1, 1, 0, 0, 2, 1, 0, 1))


def test_what_is_written_is_read(tmp_path: Path) -> None:
    write_trace(HAND, tmp_path / "hand.json")

    assert read_trace(tmp_path / "hand.json") == HAND


@pytest.mark.parametrize(
    "text,problem",
    [
        ('{"metadata": {"gap_seconds": 30}, "data": [1]}', "data: List should have at least 2 items"),
        ('{"metadata": {"gap_seconds": 0}, "data": [1, 1]}', "metadata.gap_seconds: Input should be greater than"),
        ('{"metadata": {"gap_seconds": 30}, "data": [1, -1]}', "data.1: Input should be greater than"),
        ('{"metadata": {"gap_seconds": 30}, "data": [1, "x"]}', "data.1: Input should be a valid integer"),
        ('{"data": [1, 1]}', "metadata: Field required"),
        ("[1, 0", "(whole file): Invalid JSON"),
    ],
)
def test_what_is_no_trace_is_told_with_its_place(text: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "wrong.json").write_text(text)

    with pytest.raises(ExplainedError, match="is not a trace") as refused:
        read_trace(tmp_path / "wrong.json")

    assert problem in "\n".join(refused.value.evidence)
    assert refused.value.exit_code is ExitCode.BAD_USAGE
    assert "gap_seconds" in refused.value.remedy


def test_a_folder_without_traces_is_told(tmp_path: Path) -> None:
    with pytest.raises(ExplainedError, match="there are no traces under"):
        read_traces(tmp_path)


def test_traces_of_one_folder_are_zones_as_long_as_the_shortest(tmp_path: Path) -> None:
    for folder, name, ticks, gap in (("a", "one", 10, 300), ("a", "two", 7, 300), ("a", "slow", 9, 600), ("b", "one", 5, 300)):
        (tmp_path / folder).mkdir(exist_ok=True)
        write_trace(Trace(name, gap, (1,) * ticks), tmp_path / folder / f"{name}.json")

    found = [[(each.name, len(each.available)) for each in zones] for zones in read_traces(tmp_path)]

    assert found == [[("a/one", 7), ("a/two", 7)], [("a/slow", 9)], [("b/one", 5)]]


def test_records_of_different_machines_are_never_zones_of_one(tmp_path: Path) -> None:
    for name in ("us-west-2a_v100_1", "us-west-2b_v100_1", "us-west-2a_v100_8", "us-west-2a_k80_8"):
        write_trace(Trace(name, 300, (1, 1)), tmp_path / f"{name}.json")

    found = [[each.name for each in zones] for zones in read_traces(tmp_path)]

    assert found == [["us-west-2a_k80_8"], ["us-west-2a_v100_1", "us-west-2b_v100_1"], ["us-west-2a_v100_8"]]


def test_share_interruptions_and_waits_are_those_counted_by_hand() -> None:
    assert HAND.hours == 5
    assert HAND.available_share(1) == 0.7
    assert HAND.interruptions_per_hour(1) == pytest.approx(2 / 3.5), "two losses in 3.5 hours of running"
    assert HAND.mean_wait_hours(1) == pytest.approx(0.75), "1 h and 0.5 h"
    assert HAND.available_share(2) == 0.3
    assert HAND.interruptions_per_hour(2) == pytest.approx(2 / 1.5)


def test_what_is_never_there_is_never_lost() -> None:
    assert HAND.interruptions_per_hour(3) == 0
    assert HAND.mean_wait_hours(3) == 0


@pytest.mark.nightly(held_by="test_played_runs_agree_with_the_closed_form")
def test_the_closed_form_agrees_with_jobs_played_over_traces() -> None:
    """Sixty made-up records of 40 days, each with one job of three days; the closed form is given what the records themselves show."""
    job = Job(72 * 3600, 1000 * 3600, 1800, checkpoint_seconds=120, restart_seconds=600)
    rates = Rates(Decimal(1), Decimal(3))
    traces = [made_trace(seed, ticks=40 * 24 * 60, gap_seconds=60, up_hours=4, down_hours=0.5) for seed in range(60)]
    outcomes = [replay([each], job, rates, Spot("Spot")) for each in traces]
    rate = statistics.fmean(each.interruptions_per_hour(1) for each in traces)
    wait = statistics.fmean(each.mean_wait_hours(1) for each in traces)

    expected = spot_run(72, 0.5, SpotConditions(rate, checkpoint_hours=120 / 3600, restart_hours=600 / 3600, wait_hours=wait))

    billed = statistics.fmean(each.billed_seconds[CapacityType.SPOT] for each in outcomes) / 3600
    wall = statistics.fmean(each.finish_seconds or 0 for each in outcomes) / 3600
    # The first start is billed in a replay and none in the closed form; 2 % is three standard errors of sixty runs.
    assert billed - 600 / 3600 == pytest.approx(expected.billed_hours, rel=0.02)
    assert wall == pytest.approx(expected.wall_hours, rel=0.03)
