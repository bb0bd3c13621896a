"""A small regression on numpy that can be killed and resumed: `python train_numpy.py FOLDER [STEPS]`.

Stop it with `kill -TERM` (exit code 143) or with `kill -KILL` and start it again: it resumes from its last checkpoint, and the checksum of
the weights that it prints at the end is the same as without the interruption. Needs numpy.
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
    """Linear regression by stochastic gradient descent. Contains and saves all state that the next step depends on."""

    def __init__(self) -> None:
        made = np.random.default_rng(0)
        self.inputs = made.standard_normal((SAMPLES, FEATURES))
        self.targets = self.inputs @ made.standard_normal(FEATURES)
        self.weights = np.zeros(FEATURES)
        self.random = np.random.default_rng(1)

    def train(self) -> None:
        """Do one step."""
        chosen = self.random.integers(SAMPLES, size=BATCH)
        inputs = self.inputs[chosen]
        error = inputs @ self.weights - self.targets[chosen]
        self.weights -= RATE * inputs.T @ error / BATCH

    def save(self, writer: CheckpointWriter) -> None:
        """Save the weights and the state of the random generator, without which the batches after a resumption would differ."""
        writer.put("weights", self.weights.tobytes())
        writer.put("random", pickle.dumps(self.random.bit_generator.state))

    def load(self, reader: CheckpointReader) -> None:
        """Restore the state."""
        self.weights = np.frombuffer(reader.get("weights")).copy()
        self.random.bit_generator.state = pickle.loads(reader.get("random"))  # noqa: S301 -- written by this program


def main() -> None:
    """Train to the end and print a checksum of the weights."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    folder = Path(sys.argv[1])
    total = int(sys.argv[2]) if len(sys.argv) > 2 else 20_000  # noqa: PLR2004 -- the second argument
    # In a pod the folder is a mounted volume, and its absence an error. On a laptop it is created.
    folder.mkdir(parents=True, exist_ok=True)
    storage, model = LocalFolder(folder), Regression()
    with Interruption() as interruption:
        run = TrainingRun(
            Checkpointer(storage),
            interruption,
            save=model.save,
            load=model.load,
            # A fixed interval, so that there is something to see. Omit it for the interval that wastes least.
            schedule=Timed(EverySeconds(0.5)),
            progress=ProgressFile(storage),
        )
        for _ in run.steps(total):
            model.train()
    print(hashlib.sha256(model.weights.tobytes()).hexdigest())  # noqa: T201 -- the result


if __name__ == "__main__":
    main()
