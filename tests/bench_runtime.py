"""`python tests/bench_runtime.py`: cost of flexspot_runtime in a training loop.

The cost is the ratio of processor time with and without the library in the same run, so that a busy machine changes little.
"""

from __future__ import annotations

import hashlib
import os
import statistics
import subprocess
import sys
import time
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING

from flexspot_runtime import Checkpointer, EverySeconds, Interruption, LocalFolder, ProgressFile, Timed, TrainingRun
from rich.console import Console
from rich.table import Table

# The harness belongs to the tests of the runtime, which are in a separate folder.
sys.path.insert(0, str(Path(__file__).parent / "runtime"))

from memory_folder import folder_in_memory

if TYPE_CHECKING:
    from collections.abc import Iterator

PAIRS = 60
STEPS = 5
"""Steps in one half of a pair. The halves follow each other so closely that a busy machine affects both equally."""

STEP_ITERATIONS = 40_000
"""Work of about ten milliseconds of native code: a short step on a GPU. The library costs microseconds a step of any length."""

AT_MOST = 1.01

RANKS = 4
LONG_STEP_SECONDS = 0.2
"""Seconds of a step of a model that needs several GPUs."""


def step() -> None:
    """Simulate a training step."""
    hashlib.pbkdf2_hmac("sha256", b"weights", b"batch", STEP_ITERATIONS)


def seconds_of(steps: Iterator[int]) -> float:
    """Return the processor time of some steps, each after the next number."""
    start = time.process_time()
    for _ in islice(steps, STEPS):
        step()
    return time.process_time() - start


def overhead(folder: Path) -> tuple[float, float]:
    """Return the overhead of a TrainingRun as the median of all pairs, and in microseconds a step.

    The checkpoints themselves are not counted: the interval is chosen by their cost.
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


def group_overhead(agree_seconds: float) -> tuple[float, float]:
    """Return the overhead of agreement among four ranks: milliseconds a step of rank 0's time, and their share of a step.

    The ranks are processes that communicate through sockets, as in the tests. They wait between steps so that they do not compete for the
    machine. The measured time is from the end of a step to the next number, including the wait for the others.
    """
    with folder_in_memory() as folder:
        ranks = [
            subprocess.Popen(
                [
                    sys.executable,
                    str(Path(__file__).parent / "runtime" / "agreeing_ranks.py"),
                    folder,
                    str(agree_seconds),
                    str(LONG_STEP_SECONDS),
                ],
                env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(RANKS)},
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank in range(RANKS)
        ]
        outputs = [rank.communicate()[0] for rank in ranks]
    milliseconds = float(outputs[0])
    return milliseconds, milliseconds / 1000 / LONG_STEP_SECONDS


def main() -> None:
    """Measure and print. Fails if the library costs more than the ceiling."""
    console = Console()
    with folder_in_memory() as folder:
        ratio, microseconds = overhead(folder)
    groups = [(every, *group_overhead(every)) for every in (0.0, 1.0)]
    costs = Table("what", "ratio", "µs a step", title=f"a training loop, median of {PAIRS} pairs", title_justify="left", box=None)
    costs.add_row("the steps alone", "1.0000", "")
    costs.add_row("with flexspot_runtime", f"{ratio:.4f}", f"{microseconds:.1f}")
    for every, milliseconds, share in groups:
        how = f"every {every:g} s" if every else "after every step"
        costs.add_row(
            f"{RANKS} ranks that agree {how}, of a step of {LONG_STEP_SECONDS * 1000:.0f} ms",
            f"{1 + share:.4f}",
            f"{milliseconds * 1000:.1f}",
        )
    console.print(costs)

    if groups[-1][2] > AT_MOST - 1:
        sys.exit(f"agreement of {RANKS} ranks takes {groups[-1][2]:.4f} of a step; at most {AT_MOST - 1:.2f} is allowed")
    if ratio > AT_MOST:
        sys.exit(f"flexspot_runtime takes {ratio:.4f} times the time of the steps alone; at most {AT_MOST} is allowed")


if __name__ == "__main__":
    main()
