"""Transformers' Trainer and Lightning, killed and started again: the final weights equal those of an undisturbed run."""

from __future__ import annotations

import importlib
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import rank_pods
import small_trainers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SCRIPT = Path(__file__).with_name("small_trainers.py")
STEPS = 150
LONGEST_SECONDS = 0.6
PATIENT_SECONDS = 300


@dataclass
class Run:
    """One run of a trainer over several lives, in one pod."""

    kind: str
    ranks: int
    folder: Path

    def __post_init__(self) -> None:
        (self.folder / "checkpoints").mkdir(parents=True)

    @property
    def environment(self) -> dict[str, str]:
        variables = {"CHECKPOINT_DIR": str(self.folder / "checkpoints"), small_trainers.STEPS_VARIABLE: str(self.folder / "steps")}
        return {**variables, "HF_HUB_OFFLINE": "1"}

    @property
    def arguments(self) -> list[str]:
        return [self.kind, str(STEPS), str(self.folder / "scratch"), str(self.folder / "result")]

    def live(self, strike: Callable[[Sequence[rank_pods.Pod]], None] | None = None) -> list[int]:
        def train() -> None:
            os.environ.update(self.environment)
            sys.argv = ["small_trainers", *self.arguments]
            output = os.open(self.folder / "output", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(output, 1)
            os.dup2(output, 2)
            small_trainers.main()

        [codes] = rank_pods.live(train, strike, number=1, ranks=self.ranks)
        return codes

    def steps_done(self) -> list[str]:
        steps = self.folder / "steps"
        return steps.read_text().split() if steps.exists() else []

    def saved_step(self) -> int:
        return max((int(path.name.split("-")[0]) for path in self.folder.glob("checkpoints/markers/*")), default=0)

    def result(self) -> str:
        return (self.folder / "result").read_text()

    def begin_anew(self) -> None:
        for path in sorted(self.folder.rglob("*"), reverse=True):
            path.unlink() if path.is_file() else path.rmdir()
        self.__post_init__()


@pytest.mark.parametrize("part", range(rank_pods.PARTS))
@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("kind", ["transformers", "lightning"])
def test_the_result_equals_that_of_an_undisturbed_run(kind: str, ranks: int, part: int, tmp_path: Path) -> None:
    # Loaded once: each life is a fork.
    importlib.import_module(f"flexspot_runtime.{kind}")
    chance = random.Random(f"{kind} {ranks} {part}")  # noqa: S311 -- repeatable, not secret
    kills = rank_pods.KILLS_OF_A_PART
    undisturbed, run = Run(kind, ranks, tmp_path / "undisturbed"), Run(kind, ranks, tmp_path / "killed")
    assert undisturbed.live() == [0] * ranks, (undisturbed.folder / "output").read_text()[-2000:]
    strikes = [signal.SIGTERM, signal.SIGKILL] * kills
    chance.shuffle(strikes)
    lives, runs, lost = 0, 1, list[int]()
    while strikes:
        seconds, before, struck = chance.uniform(0.0, LONGEST_SECONDS), len(run.steps_done()), list[bool]()

        def strike(pods: Sequence[rank_pods.Pod]) -> None:
            end = time.monotonic() + rank_pods.LIFE_SECONDS
            while len(run.steps_done()) == before and pods[0].whole and time.monotonic() < end:  # noqa: B023 -- called at once
                time.sleep(0.01)
                pods[0].collect()
            time.sleep(seconds)  # noqa: B023 -- likewise
            pods[0].collect()
            if pods[0].whole:
                struck.append(True)  # noqa: B023 -- likewise
                pods[0].signal(strikes[-1])

        codes = run.live(strike)
        lives += 1
        if 0 in codes:
            # A rank had done all steps before the strike, which is kept for a run from the start. It may have struck the others.
            assert codes == [0] * ranks or run.live() == [0] * ranks, codes
            assert run.result() == undisturbed.result()
            run.begin_anew()
            runs += 1
            continue
        number = strikes.pop()
        assert struck
        at_risk = int(run.steps_done()[-1]) - run.saved_step()
        if number == signal.SIGTERM:
            assert codes == [143] * ranks, (run.folder / "output").read_text()[-2000:]
            assert at_risk <= 0, "a warning loses nothing"
        else:
            assert codes == [-signal.SIGKILL] * ranks
            assert at_risk <= small_trainers.EVERY_STEPS
            lost.append(max(0, at_risk))
    assert run.live() == [0] * ranks
    assert run.result() == undisturbed.result()
    print(  # noqa: T201 -- the figures
        f"\n{kind} on {ranks} rank(s): {kills} warnings and {kills} kills in {lives} lives of {runs} run(s), {run.result()[65:]}; a kill "
        f"lost {sum(lost) / len(lost):.1f} steps on average, {max(lost)} at most"
    )


@pytest.mark.parametrize("kind", ["transformers", "lightning"])
def test_under_the_launcher_a_warning_ends_with_143_and_the_next_start_with_the_same_result(kind: str, tmp_path: Path) -> None:
    importlib.import_module(f"flexspot_runtime.{kind}")
    undisturbed, run = Run(kind, 2, tmp_path / "undisturbed"), Run(kind, 2, tmp_path / "warned")
    assert undisturbed.live() == [0, 0]
    program = [sys.executable, str(SCRIPT), *run.arguments]
    command = [sys.executable, "-m", "flexspot_runtime.launch", "--ranks=2", "--", *program]
    environment = {**os.environ, **run.environment, "MASTER_PORT": rank_pods.free_port()}
    with subprocess.Popen(command, env=environment) as launched:
        end = time.monotonic() + PATIENT_SECONDS
        while len(run.steps_done()) < small_trainers.EVERY_STEPS:
            assert launched.poll() is None
            assert time.monotonic() < end
            time.sleep(0.05)
        launched.send_signal(signal.SIGTERM)
        assert launched.wait(PATIENT_SECONDS) == 143

    assert run.live() == [0, 0]
    assert run.result() == undisturbed.result()
