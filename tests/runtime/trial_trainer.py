"""A training program that the kill trials start, kill and start again: `python trial_trainer.py FOLDER LOG SEED`.

Its clock counts steps, a second each, and what it says of the date jumps. So how much work may be lost is known to the step.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import random
import sys
from pathlib import Path

from flexspot_runtime import (
    Checkpointer,
    CheckpointReader,
    CheckpointWriter,
    EverySeconds,
    Interruption,
    LocalFolder,
    Timed,
    TrainingRun,
)

TOTAL_STEPS = 80
INTERVAL_STEPS = 5
STATE_BYTES = 1 << 18
CHUNK_BYTES = 1 << 14


class StepClock:
    """A second for each step; dates at random."""

    def __init__(self, seed: int) -> None:
        self.seconds = 0.0
        self._dates = random.Random(seed)  # noqa: S311 -- repeatable, not secret

    def monotonic(self) -> float:
        return self.seconds

    def wall(self) -> float:
        return self._dates.uniform(-1e9, 3e9)

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


class Model:
    """Any change of the order or number of steps changes every bit of it."""

    def __init__(self) -> None:
        self.random = random.Random(7)  # noqa: S311 -- as above
        self.weights = [0.0] * 16
        self.ballast = b"\0" * STATE_BYTES

    def train(self) -> None:
        self.weights = [0.99 * weight + self.random.gauss(0.0, 1.0) for weight in self.weights]
        # Native code for about a millisecond, without the interpreter's lock.
        key = hashlib.pbkdf2_hmac("sha256", repr(self.weights).encode(), b"step", 1000)
        self.ballast = random.Random(key).randbytes(STATE_BYTES)  # noqa: S311 -- as above

    def save(self, writer: CheckpointWriter) -> None:
        with writer.file("model") as sink:
            pickle.dump((self.random.getstate(), self.weights), sink)
        with writer.file("ballast") as sink:
            # In pieces and slowly, so that a kill finds some written and some not.
            for start in range(0, STATE_BYTES, CHUNK_BYTES):
                hashlib.pbkdf2_hmac("sha256", b"slow", b"disk", 500)
                sink.write(self.ballast[start : start + CHUNK_BYTES])

    def load(self, reader: CheckpointReader) -> None:
        state, self.weights = pickle.loads(reader.get("model"))  # noqa: S301 -- written above
        self.random.setstate(state)
        self.ballast = reader.get("ballast")


def main() -> None:
    folder, log, seed = sys.argv[1:]
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def note(what: str, step: int) -> None:
        os.write(descriptor, f"{what} {step}\n".encode())

    Path(folder).mkdir(exist_ok=True)
    clock, model = StepClock(int(seed)), Model()
    with Interruption(15.0, clock=clock) as interruption:
        checkpointer = Checkpointer(LocalFolder(folder), keep=3, clock=clock)
        schedule = Timed(EverySeconds(INTERVAL_STEPS))
        run = TrainingRun(checkpointer, interruption, save=model.save, load=model.load, schedule=schedule)
        print("ready", flush=True)  # noqa: T201 -- so that the trial knows when to kill
        for step in run.steps(TOTAL_STEPS):
            note("saved", run.status.saved_step)
            model.train()
            clock.seconds += 1.0
            note("done", step + 1)
        note("completed", run.status.saved_step)


if __name__ == "__main__":
    main()
