"""One rank of a group that agrees and saves nothing.

`python agreeing_ranks.py FOLDER AGREE_SECONDS STEP_SECONDS` with RANK and WORLD_SIZE prints the median of the milliseconds that the library
took between two steps, including a share of the agreements.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from pathlib import Path
from typing import cast

from flexspot_runtime import Checkpointer, EverySeconds, Group, Interruption, LocalFolder, Timed, TrainingRun
from group_trainer import Star

BLOCKS, STEPS = 7, 10
"""The median of blocks is taken: a block of this many steps has its share of agreements, and a busy machine distorts some."""

_FIRST = 10
"""Until the number of steps between two agreements has grown."""


def main() -> None:
    """Train."""
    folder, agree_seconds, step_seconds = Path(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    star = Star(str(folder / "socket"), rank, size)
    group = Group(rank, size, largest=lambda wanted: max(star.gather(wanted)), broadcast=lambda text: cast("str", star.gather(text)[0]))
    with Interruption(15.0) as interruption:
        run = TrainingRun(
            Checkpointer(LocalFolder(folder), group=group),
            interruption,
            save=lambda writer: writer.put("weights", b""),
            load=lambda _: None,
            schedule=Timed(EverySeconds(3600)),
            agree_seconds=agree_seconds,
        )
        between: list[float] = []
        ended: float | None = None
        for _ in run.steps(_FIRST + BLOCKS * STEPS):
            if ended is not None:
                between.append(time.perf_counter() - ended)
            time.sleep(step_seconds)
            # In a real job, gradients keep the ranks in step.
            star.gather(0)
            ended = time.perf_counter()
    measured = between[-BLOCKS * STEPS :]
    blocks = [statistics.mean(measured[begin : begin + STEPS]) for begin in range(0, len(measured), STEPS)]
    print(1000 * statistics.median(blocks))  # noqa: T201 -- the result


if __name__ == "__main__":
    main()
