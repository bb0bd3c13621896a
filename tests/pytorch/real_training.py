"""A small model under DDP and FSDP2 on 4 ranks in 2 pods, killed at random moments. Its losses equal those of an undisturbed run.

The ranks are forks, started by the test; and torchrun's, under the launcher.
"""

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
from rank_pods import KILLS, KILLS_OF_A_PART, LIFE_SECONDS, PARTS, PODS, RANKS, LaunchedPod, Pod, free_port, live, lived, torchrun

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

STEPS = 400
LONGEST_SECONDS = 1.2
TRAINING_SHARE = 0.85
"""Share of the strikes that wait for a new step. The others come while ranks start, meet and resume."""


@dataclass
class Run:
    """One run of the trainer over several lives."""

    kind: str
    folder: Path
    losses: Path
    by_torchrun: bool = False

    @property
    def codes_of_a_pod(self) -> int:
        """Number of processes that the test sees end: all ranks, or the launcher."""
        return 1 if self.by_torchrun else RANKS

    def live(self, strike: Callable[[Sequence[Pod]], None] | None = None) -> list[list[int]]:
        self.folder.mkdir(exist_ok=True)
        arguments = [self.kind, str(STEPS), str(self.losses)]

        def train() -> None:
            os.environ["CHECKPOINT_DIR"] = str(self.folder)
            sys.argv = ["small_trainer", *arguments]
            small_trainer.main()

        if not self.by_torchrun:
            return live(train, strike)
        port, variables = free_port(), {"CHECKPOINT_DIR": str(self.folder)}
        commands = [torchrun(pod, port, [small_trainer.__file__, *arguments]) for pod in range(PODS)]
        output = self.losses.with_suffix(".output")
        return lived([LaunchedPod(f"{self.folder}-{pod}", command, variables, output) for pod, command in enumerate(commands)], strike)

    def said(self) -> str:
        """Return the last lines of all lives under torchrun."""
        output = self.losses.with_suffix(".output")
        return output.read_text()[-4000:] if output.exists() else ""

    def all_end_with(self, code: int) -> list[list[int]]:
        return [[code] * self.codes_of_a_pod] * PODS

    def begin_anew(self) -> None:
        for path in sorted(self.folder.rglob("*"), reverse=True):
            path.unlink() if path.is_file() else path.rmdir()
        self.losses.unlink(missing_ok=True)

    def saved_step(self) -> int:
        return max((int(path.name.split("-")[0]) for path in self.folder.glob("markers/*")), default=0)

    def done_step(self) -> int:
        lines = self.losses.read_text().splitlines() if self.losses.exists() else []
        return int(lines[-1].split()[0]) + 1 if lines else 0

    def losses_by_step(self) -> dict[int, set[str]]:
        """Return each step's losses, once for each time it was done, to the last bit."""
        found: dict[int, set[str]] = {}
        for line in self.losses.read_text().splitlines():
            step, _, loss = line.partition(" ")
            found.setdefault(int(step), set()).add(loss)
        return found


@dataclass
class Strike:
    """Warns or kills one pod some time after a new step was done or, if `early`, after the pods have started; then its peer, too."""

    number: signal.Signals
    pod: int
    seconds: float
    early: bool
    run: Run
    struck: bool = field(default=False, init=False)

    def __call__(self, pods: Sequence[Pod]) -> None:
        before, end = self.run.done_step(), time.monotonic() + LIFE_SECONDS
        while not self.early and self.run.done_step() == before and time.monotonic() < end and all(pod.whole for pod in pods):
            time.sleep(0.01)
            for pod in pods:
                pod.collect()
        time.sleep(self.seconds)
        for pod in pods:
            pod.collect()
        if pods[self.pod].whole:
            pods[self.pod].signal(self.number)
            self.struck = True
        if self.early:
            # Otherwise the other pod waits for the first as long as torch waits for a world to meet.
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
            assert codes == self.run.all_end_with(143)
            assert at_risk == 0, "a warning loses nothing"
        else:
            assert codes[self.pod] == self.run.all_end_with(-signal.SIGKILL)[self.pod]
            assert codes[1 - self.pod] == self.run.all_end_with(143)[self.pod], "a lost machine is no failure of those that it leaves"
            # One interval, and the steps trained while the newest was being written.
            assert at_risk <= 2 * small_trainer.EVERY_STEPS
            lost.append(at_risk)


@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_the_losses_equal_those_of_an_undisturbed_run(kind: str, tmp_path: Path) -> None:
    undisturbed = Run(kind, tmp_path / "undisturbed", tmp_path / "undisturbed.losses")
    survive(undisturbed, Run(kind, tmp_path / "killed", tmp_path / "killed.losses"), random.Random(kind), KILLS)  # noqa: S311 -- repeatable


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_the_losses_are_equal_under_torchrun(kind: str, part: int, tmp_path: Path) -> None:
    undisturbed = Run(kind, tmp_path / "undisturbed", tmp_path / "undisturbed.losses")
    killed = Run(kind, tmp_path / "killed", tmp_path / "killed.losses", by_torchrun=True)
    survive(undisturbed, killed, random.Random(f"{kind} {part}"), KILLS_OF_A_PART)  # noqa: S311 -- repeatable, not secret


def survive(undisturbed: Run, run: Run, chance: random.Random, kills: int) -> None:
    """Kill a run as often with a warning as without, and compare its losses with those of the undisturbed run."""
    assert undisturbed.live() == undisturbed.all_end_with(0)
    expected = undisturbed.losses_by_step()
    assert len(expected) == STEPS

    lost, lives, runs = list[int](), 0, 1
    strikes = [
        Strike(number, chance.randrange(PODS), chance.uniform(0.0, LONGEST_SECONDS), chance.random() > TRAINING_SHARE, run)
        for number in [signal.SIGTERM, signal.SIGKILL] * kills
    ]
    chance.shuffle(strikes)
    while strikes:
        before = run.saved_step()
        codes = run.live(strikes[-1])
        lives += 1
        assert run.saved_step() >= before, "a checkpoint that counted was lost"
        if any(0 in pod for pod in codes):
            # A rank had done all steps before the strike, which is kept for a run from the start. It may have struck the others.
            assert codes == run.all_end_with(0) or run.live() == run.all_end_with(0), codes
            assert run.losses_by_step() == expected
            run.begin_anew()
            runs += 1
            continue
        strikes.pop().check(codes, lost)
    assert run.live() == run.all_end_with(0), run.said()
    assert run.losses_by_step() == expected
    print(  # noqa: T201 -- the figures
        f"\n{run.kind}{' by torchrun' * run.by_torchrun}: {kills} warnings and {kills} kills in {lives} lives of {runs} run(s); a kill "
        f"lost {sum(lost) / max(1, len(lost)):.1f} steps on average, {max(lost, default=0)} at most"
    )
