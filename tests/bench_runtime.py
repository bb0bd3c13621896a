"""`python tests/bench_runtime.py`: 500 trials of a program that is killed at random, and what flexspot_runtime costs in a training loop.

The cost is processor time, with the library against without it in the same run, so that a busy machine changes little.
"""

from __future__ import annotations

import hashlib
import logging
import statistics
import sys
import time
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING

from flexspot_runtime import Checkpointer, EverySeconds, Interruption, LocalFolder, ProgressFile, Timed, TrainingRun
from rich.console import Console
from rich.table import Table

# The harness is the tests', which stand in a folder of their own.
sys.path.insert(0, str(Path(__file__).parent / "runtime"))

from kill_trials import run_trials
from memory_folder import folder_in_memory

if TYPE_CHECKING:
    from collections.abc import Iterator

TRIALS = 500
PAIRS = 60
STEPS = 5
"""In one half of a pair: the halves follow each other so closely that a busy machine does the same to both."""

STEP_ITERATIONS = 40_000
"""About ten milliseconds of native code, which is a short step on a GPU. The library costs microseconds for each, however long it is."""

AT_MOST = 1.01


def step() -> None:
    """Stands for a training step."""
    hashlib.pbkdf2_hmac("sha256", b"weights", b"batch", STEP_ITERATIONS)


def seconds_of(steps: Iterator[int]) -> float:
    """Processor time of some steps, each after the next number."""
    begun = time.process_time()
    for _ in islice(steps, STEPS):
        step()
    return time.process_time() - begun


def overhead(folder: Path) -> tuple[float, float]:
    """With a TrainingRun against without one, the median of all pairs; and its microseconds for each step.

    The checkpoints themselves are not the loop's cost: the interval is chosen by what they cost.
    """
    with Interruption(15.0) as interruption:
        storage = LocalFolder(folder)
        run = TrainingRun(
            Checkpointer(storage),
            interruption,
            save=lambda writer: writer.put("weights", b""),
            load=lambda _: None,
            schedule=Timed(EverySeconds(3600)),
            progress=ProgressFile(storage),
        )
        ours, bare = run.steps(sys.maxsize), count()
        pairs = [(seconds_of(bare), seconds_of(ours)) for _ in range(PAIRS)]
    without = statistics.median(pair[0] for pair in pairs)
    added = statistics.median(pair[1] - pair[0] for pair in pairs)
    return 1 + added / without, added / STEPS * 1e6


def main() -> None:
    """Measures and prints; fails when a trial fails or the library costs more than the bar."""
    logging.getLogger("flexspot_runtime").setLevel(logging.CRITICAL)
    console = Console()
    with folder_in_memory() as folder:
        ratio, microseconds = overhead(folder)
    costs = Table("what", "ratio", "µs a step", title=f"a training loop, median of {PAIRS} pairs", title_justify="left", box=None)
    costs.add_row("the steps alone", "1.0000", "")
    costs.add_row("with flexspot_runtime", f"{ratio:.4f}", f"{microseconds:.1f}")
    console.print(costs)

    begun = time.perf_counter()
    events = run_trials(TRIALS)
    console.print(f"{TRIALS} trials of a program that is killed, in {time.perf_counter() - begun:.0f} s; every result as without")
    happened = Table("what happened", "times", box=None)
    for event, times in sorted(events.items()):
        happened.add_row(event, str(times))
    console.print(happened)
    if ratio > AT_MOST:
        sys.exit(f"flexspot_runtime takes {ratio:.4f} times what the steps take; at most {AT_MOST} is asked for")


if __name__ == "__main__":
    main()
