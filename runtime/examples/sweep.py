"""A sweep over two hyper-parameters as an Indexed Job: `python sweep.py FOLDER COMPLETIONS`.

Each pod takes its share of the trials by JOB_COMPLETION_INDEX. A pod that replaces another gets the same share, skips the trials that have
a result, and resumes the trial in progress from its checkpoint. Without the variable the index is 0.
"""

from __future__ import annotations

import itertools
import json
import logging
import sys
from pathlib import Path

from flexspot_runtime import (
    Checkpointer,
    CheckpointReader,
    CheckpointWriter,
    EverySteps,
    Interruption,
    LocalFolder,
    Results,
    TrainingRun,
    completion_index,
    share_of,
)

RATES = (0.01, 0.03, 0.1, 0.3)
MOMENTA = (0.0, 0.5, 0.9)
STEPS = 400


class Descent:
    """Gradient descent with momentum on a stretched bowl; the loss after all steps is a trial's result."""

    def __init__(self, rate: float, momentum: float) -> None:
        self.rate = rate
        self.momentum = momentum
        self.state = [3.0, -2.0, 0.0, 0.0]

    def train(self) -> None:
        """Do one step."""
        x, y, speed_x, speed_y = self.state
        speed_x = self.momentum * speed_x - self.rate * x
        speed_y = self.momentum * speed_y - self.rate * 5.0 * y
        self.state = [x + speed_x, y + speed_y, speed_x, speed_y]

    def loss(self) -> float:
        """Return the loss at the current point."""
        x, y, *_ = self.state
        return x * x + 5.0 * y * y

    def save(self, writer: CheckpointWriter) -> None:
        """Save the state. JSON keeps every bit of a float."""
        writer.put("state", json.dumps(self.state).encode())

    def load(self, reader: CheckpointReader) -> None:
        """Restore the state."""
        self.state = json.loads(reader.get("state"))


def main() -> None:
    """Train this index's trials and print the best of all that are done."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    folder, completions = Path(sys.argv[1]), int(sys.argv[2])
    results_folder = folder / "sweep"
    results_folder.mkdir(parents=True, exist_ok=True)
    results = Results(LocalFolder(results_folder))
    with Interruption() as interruption:
        for rate, momentum in share_of(list(itertools.product(RATES, MOMENTA)), completion_index(), completions):
            key = f"rate-{rate}-momentum-{momentum}"
            if results.has(key):
                continue
            trial, trial_folder = Descent(rate, momentum), folder / "trials" / key
            trial_folder.mkdir(parents=True, exist_ok=True)
            run = TrainingRun(
                Checkpointer(LocalFolder(trial_folder)), interruption, save=trial.save, load=trial.load, schedule=EverySteps(50)
            )
            for _ in run.steps(STEPS):
                trial.train()
            results.put(key, json.dumps({"loss": trial.loss()}).encode())
    best = min(results.keys(), key=lambda key: json.loads(results.get(key))["loss"])
    print(len(results.keys()), best)  # noqa: T201 -- the result


if __name__ == "__main__":
    main()
