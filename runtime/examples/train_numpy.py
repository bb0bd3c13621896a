"""A small regression on numpy that can be killed and resumed: `python train_numpy.py FOLDER [STEPS]`.

Stop it with `kill -TERM` (exit code 143) or with `kill -KILL` and start it again: it goes on from its last checkpoint, and what it prints
in the end, a checksum of the weights, is the same as if nobody had stopped it. Needs numpy.
"""

from __future__ import annotations

import hashlib
import logging
import pickle
import sys
from pathlib import Path

import numpy as np
from flexspot_runtime import (
    Checkpointer,
    CheckpointReader,
    CheckpointWriter,
    EverySeconds,
    Interruption,
    LocalFolder,
    ProgressFile,
    Timed,
    TrainingRun,
)

FEATURES, SAMPLES, BATCH, RATE = 64, 4096, 256, 0.01


class Regression:
    """Linear regression by stochastic gradient descent. All that the next step depends on is here, and is saved."""

    def __init__(self) -> None:
        made = np.random.default_rng(0)
        self.inputs = made.standard_normal((SAMPLES, FEATURES))
        self.targets = self.inputs @ made.standard_normal(FEATURES)
        self.weights = np.zeros(FEATURES)
        self.random = np.random.default_rng(1)

    def train(self) -> None:
        """One step."""
        chosen = self.random.integers(SAMPLES, size=BATCH)
        inputs = self.inputs[chosen]
        error = inputs @ self.weights - self.targets[chosen]
        self.weights -= RATE * inputs.T @ error / BATCH

    def save(self, writer: CheckpointWriter) -> None:
        """The state of the random generator belongs to it: without it the batches after a resumption would be others."""
        writer.put("weights", self.weights.tobytes())
        writer.put("random", pickle.dumps(self.random.bit_generator.state))

    def load(self, reader: CheckpointReader) -> None:
        """The reverse."""
        self.weights = np.frombuffer(reader.get("weights")).copy()
        self.random.bit_generator.state = pickle.loads(reader.get("random"))  # noqa: S301 -- written by this program


def main() -> None:
    """Trains."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    folder = Path(sys.argv[1])
    total = int(sys.argv[2]) if len(sys.argv) > 2 else 20_000  # noqa: PLR2004 -- the second argument
    # In a pod the folder is a volume that is mounted, and its absence an error; on a laptop it is made.
    folder.mkdir(parents=True, exist_ok=True)
    storage, model = LocalFolder(folder), Regression()
    with Interruption() as interruption:
        run = TrainingRun(
            Checkpointer(storage),
            interruption,
            save=model.save,
            load=model.load,
            # A fixed one, so that there is something to see; leave it out for an interval that costs least.
            schedule=Timed(EverySeconds(0.5)),
            progress=ProgressFile(storage),
        )
        for _ in run.steps(total):
            model.train()
    print(hashlib.sha256(model.weights.tobytes()).hexdigest())  # noqa: T201 -- the result


if __name__ == "__main__":
    main()
