"""Ranks agree at the same steps, rarely, and soon enough."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from flexspot_runtime import Checkpointer, EverySeconds, EverySteps, Group, Interrupted, Interruption, Timed, TrainingRun
from manual_clock import ManualClock
from memory_storage import MemoryStorage
from rank_threads import in_ranks

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexspot_runtime import CheckpointWriter
    from flexspot_runtime.schedule import Schedule

RANKS = 3


class OwnClock(ManualClock):
    """Waits for other ranks in real time: in its own time, a rank would give up at once."""

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        time.sleep(0.001)


@dataclass
class Trained:
    """Observations of one rank."""

    asked: int = 0
    steps: list[int] = field(default_factory=list[int])
    noticed_at: float = 0.0
    stopped_at: float = 0.0
    stopped_by: str = ""


def train(
    *,
    total: int,
    seconds: Callable[[int, int], float],
    agree_seconds: float = 1.0,
    schedule: Callable[[], Schedule] = lambda: Timed(EverySeconds(3600)),
    warned: tuple[int, int] = (-1, -1),
) -> list[Trained]:
    """Train ranks with separate clocks, where step s of rank r takes `seconds(r, s)`.

    `warned`: a rank, and the step in which it is warned.
    """
    storage = MemoryStorage()
    ended: dict[int, Trained] = {}

    def work(group: Group) -> None:
        saw = ended[group.rank] = Trained()
        clock = OwnClock()
        clock.seconds += 1000 * group.rank
        interruption = Interruption(15.0, clock=clock)

        def largest(number: int) -> int:
            saw.asked += 1
            return group.agree(number)

        def save(writer: CheckpointWriter) -> None:
            writer.put("part", b"")

        counted = Group(group.rank, group.world_size, largest, group.text_of_rank_0)
        checkpointer = Checkpointer(storage, group=counted, sharded=True, clock=clock)
        run = TrainingRun(checkpointer, interruption, save=save, load=lambda _: None, schedule=schedule(), agree_seconds=agree_seconds)
        try:
            for step in run.steps(total):
                saw.steps.append(step)
                clock.seconds += seconds(group.rank, step)
                if (group.rank, step) == warned:
                    saw.noticed_at = clock.seconds
                    interruption.notify("SIGTERM")
        except Interrupted as interrupted:
            saw.stopped_at, saw.stopped_by = clock.seconds, interrupted.source

    for error in in_ranks(RANKS, work):
        if isinstance(error, BaseException):
            raise error
    return [ended[rank] for rank in range(RANKS)]


def test_ranks_agree_about_once_a_second_whatever_their_clocks_show() -> None:
    found = train(total=1000, seconds=lambda rank, step: 0.19 + 0.004 * rank + 0.001 * (step % 3))

    assert [each.steps for each in found] == [list(range(1000))] * RANKS
    # 1,000 steps of 0.2 s: five fit into a second for the fastest rank. The number that fits for the slowest rank is used.
    assert 1000 / 5 <= found[0].asked <= 1000 / 4 + 10
    assert len({each.asked for each in found}) == 1


def test_a_warning_to_one_rank_stops_all_after_the_same_step_within_the_time() -> None:
    for step in range(20, 40):
        found = train(total=1000, seconds=lambda _rank, _step: 0.2, warned=(2, step))

        assert len({tuple(each.steps) for each in found}) == 1
        assert found[2].stopped_at - found[2].noticed_at <= 1.0
        assert [each.stopped_by for each in found] == ["another rank", "another rank", "SIGTERM"]


def test_steps_that_become_slow_are_noticed_at_the_next_agreement() -> None:
    """The longest that a warning can wait, once: as many of the slow steps as of the fast ones fit into a second."""
    found = train(total=200, seconds=lambda _rank, step: 0.2 if step < 100 else 2.0)

    assert found[0].asked > 100, "after each slow step"


def test_with_no_time_given_they_ask_after_every_step() -> None:
    assert train(total=50, seconds=lambda _rank, _step: 0.001, agree_seconds=0)[0].asked >= 50


def test_a_schedule_by_steps_is_kept_exactly() -> None:
    found = train(total=100, seconds=lambda _rank, _step: 0.001, schedule=lambda: EverySteps(25))

    # At the first step, soon doubling, at each save, and then again.
    assert found[0].asked < 40
    assert len({each.asked for each in found}) == 1


def test_a_time_below_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="agree_seconds must be 0 or more, got -1"):
        train(total=1, seconds=lambda _rank, _step: 0.0, agree_seconds=-1)
