"""A small model under DDP and FSDP2 on 4 ranks in 2 pods, killed at random moments: its losses are those of a run that nobody disturbed."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
import small_trainer
from rank_pods import PODS, RANKS, Pod, live

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

STEPS = 400
KILLS = int(os.environ.get("KILLS", "50"))
"""By SIGTERM, and as many by SIGKILL."""

LONGEST_SECONDS = 1.2
TRAINING_SHARE = 0.85
"""Of the strikes that wait for a new step; the others come while ranks start, meet and resume."""


@dataclass
class Run:
    """One run of the trainer over several lives."""

    kind: str
    folder: Path
    losses: Path

    def live(self, strike: Callable[[list[Pod]], None] | None = None) -> list[list[int]]:
        self.folder.mkdir(exist_ok=True)

        def train() -> None:
            os.environ["CHECKPOINT_DIR"] = str(self.folder)
            sys.argv = ["small_trainer", self.kind, str(STEPS), str(self.losses)]
            small_trainer.main()

        return live(train, strike)

    def begin_anew(self) -> None:
        for path in sorted(self.folder.rglob("*"), reverse=True):
            path.unlink() if path.is_file() else path.rmdir()
        self.losses.unlink()

    def saved_step(self) -> int:
        return max((int(path.name.split("-")[0]) for path in self.folder.glob("markers/*")), default=0)

    def done_step(self) -> int:
        lines = self.losses.read_text().splitlines() if self.losses.exists() else []
        return int(lines[-1].split()[0]) + 1 if lines else 0

    def losses_by_step(self) -> dict[int, set[str]]:
        """Each step's losses, as often as it was done; each to the last bit."""
        found: dict[int, set[str]] = {}
        for line in self.losses.read_text().splitlines():
            step, _, loss = line.partition(" ")
            found.setdefault(int(step), set()).add(loss)
        return found


@dataclass
class Strike:
    """One pod is warned or killed, some time after a new step was done or, `early`, after the pods have begun; then its peer, too."""

    number: signal.Signals
    pod: int
    seconds: float
    early: bool
    run: Run
    struck: bool = field(default=False, init=False)

    def __call__(self, pods: list[Pod]) -> None:
        before, end = self.run.done_step(), time.monotonic() + 60
        while not self.early and self.run.done_step() == before and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(self.seconds)
        for pod in pods:
            pod.collect()
        if len(pods[self.pod].ranks) == RANKS:
            pods[self.pod].signal(self.number)
            self.struck = True
        if self.early:
            # Otherwise the other pod waits for the first as long as torch does for a world to come together.
            time.sleep(0.2)
            for pod in pods:
                pod.collect()
                pod.signal(self.number)

    def check(self, codes: list[list[int]], lost: list[int]) -> None:
        assert self.struck, codes
        if self.early:
            return
        at_risk = self.run.done_step() - self.run.saved_step()
        if self.number == signal.SIGTERM:
            assert codes == [[143] * RANKS] * PODS
            assert at_risk == 0, "a warning loses nothing"
        else:
            assert codes[self.pod] == [-signal.SIGKILL] * RANKS
            assert codes[1 - self.pod] == [143] * RANKS, "a lost machine is no failure of those that it leaves"
            # One interval, and what was trained while the newest was being written.
            assert at_risk <= 2 * small_trainer.EVERY_STEPS
            lost.append(at_risk)


@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_the_losses_are_those_of_a_run_that_nobody_disturbed(kind: str, tmp_path: Path) -> None:
    chance = random.Random(kind)  # noqa: S311 -- repeatable, not secret
    undisturbed = Run(kind, tmp_path / "undisturbed", tmp_path / "undisturbed.losses")
    assert undisturbed.live() == [[0] * RANKS] * PODS
    expected = undisturbed.losses_by_step()
    assert len(expected) == STEPS

    run, lost, lives, runs = Run(kind, tmp_path / "killed", tmp_path / "killed.losses"), list[int](), 0, 1
    strikes = [
        Strike(number, chance.randrange(PODS), chance.uniform(0.0, LONGEST_SECONDS), chance.random() > TRAINING_SHARE, run)
        for number in [signal.SIGTERM, signal.SIGKILL] * KILLS
    ]
    chance.shuffle(strikes)
    while strikes:
        before = run.saved_step()
        codes = run.live(strikes[-1])
        lives += 1
        assert run.saved_step() >= before, "a checkpoint that counted was lost"
        if codes == [[0] * RANKS] * PODS:
            # All steps were done before the strike, which is left for a run from the beginning.
            assert run.losses_by_step() == expected
            run.begin_anew()
            runs += 1
            continue
        strikes.pop().check(codes, lost)
    assert run.live() == [[0] * RANKS] * PODS
    assert run.losses_by_step() == expected
    print(  # noqa: T201 -- the figures
        f"\n{kind}: {KILLS} warnings and {KILLS} kills in {lives} lives of {runs} run(s); a kill lost {sum(lost) / len(lost):.1f} steps on "
        f"average, {max(lost)} at most"
    )
