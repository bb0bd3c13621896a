"""Upper bound of the work that a kill costs, for any length of steps, cost of checkpoints, interval and moment."""

from __future__ import annotations

from flexspot_runtime import Checkpointer, CheckpointReader, CheckpointWriter, EverySeconds, Interruption, Timed, TrainingRun
from hypothesis import given
from hypothesis import strategies as st
from manual_clock import ManualClock
from memory_storage import KilledError, MemoryStorage

# A step may take this much longer than the one before it, which is the estimate for the next one.
SURPRISE = 1e-6


def nothing(_reader: CheckpointReader) -> None:
    pass


@given(
    interval=st.floats(1.0, 1000.0),
    step_seconds=st.floats(0.01, 100.0),
    cost=st.floats(0.0, 300.0),
    killed_at=st.floats(0.0, 5000.0),
)
def test_lost_work_is_at_most_an_interval_and_a_checkpoint(interval: float, step_seconds: float, cost: float, killed_at: float) -> None:
    """If one step is longer than the interval, the bound is that step and a checkpoint."""
    clock = ManualClock(seconds=0.0)
    saves: list[float] = []

    def save(writer: CheckpointWriter) -> None:
        clock.seconds += cost
        if clock.seconds >= killed_at:
            raise KilledError
        saves.append(clock.seconds)
        writer.put("weights", b"")

    run = TrainingRun(
        Checkpointer(MemoryStorage(), clock=clock),
        Interruption(15.0, clock=clock),
        save=save,
        load=nothing,
        schedule=Timed(EverySeconds(interval)),
    )
    try:
        for _ in run.steps(500):
            clock.seconds += step_seconds
            if clock.seconds >= killed_at:
                break
    except KilledError:
        pass

    lost = min(killed_at, clock.seconds) - (saves[-1] if saves else 0.0)
    assert lost <= max(interval, step_seconds) + cost + SURPRISE
