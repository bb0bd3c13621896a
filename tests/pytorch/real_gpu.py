"""On a GPU: the same result to the last bit after kills, and the cost of a checkpoint of gigabytes. Skipped without a GPU.

One rank under torchrun and the launcher, its tensors on the GPU, its gradients through NCCL, its agreements through gloo.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import gpu_steps
import pytest
import small_trainers
from rank_pods import LIFE_SECONDS, LaunchedPod, Pod, free_port, lived, torchrun

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

pytestmark = pytest.mark.skipif(shutil.which("nvidia-smi") is None, reason="this machine has no NVIDIA GPU")

KILLS = min(5, int(os.environ.get("KILLS", "5")))
"""Number of kills by SIGTERM, and the same number by SIGKILL. A life is a process that loads torch and starts the GPU."""

STEPS = {"ddp": 400, "fsdp": 400, "transformers": 150, "lightning": 150}
SECONDS = {"ddp": 2.0, "fsdp": 2.0, "transformers": 1.5, "lightning": 1.5}
"""Longest time from a life's first step to the strike."""

AT_MOST = 0.01
"""Largest share of the steps' time in agreements and checkpoints."""


class Run:
    """One run of a trainer over several lives. It writes the steps it has done to the file `steps`."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind, self.folder, self.lives = kind, folder, 0
        self.steps, self.result, self.output = folder / "steps", folder / "result", folder / "output"
        self.begin()

    def begin(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        (self.folder / "checkpoints").mkdir(parents=True)

    @property
    def command(self) -> list[str]:
        here, steps = Path(__file__).parent, str(STEPS[self.kind])
        if self.kind in {"ddp", "fsdp"}:
            return [str(here / "small_trainer.py"), self.kind, steps, str(self.steps)]
        return [small_trainers.__file__, self.kind, steps, str(self.folder / "scratch"), str(self.result)]

    def live(self, strike: Callable[[Sequence[Pod]], None] | None = None) -> int:
        self.lives += 1
        environment = {**on_a_gpu(), "CHECKPOINT_DIR": str(self.folder / "checkpoints"), small_trainers.STEPS_VARIABLE: str(self.steps)}
        pod = LaunchedPod(f"{self.folder}", torchrun(0, free_port(), self.command, pods=1, ranks=1), environment, self.output)
        [[code]] = lived([pod], strike)
        return code

    def lines(self) -> list[str]:
        return self.steps.read_text().splitlines() if self.steps.exists() else []

    def why(self) -> str:
        """Return the errors of its ranks, without torchrun's own report."""
        return "\n".join(line for line in self.output.read_text().splitlines() if "Error" in line or line.startswith("[rank"))[-3000:]

    def end(self) -> object:
        """Return what is equal for all runs with the right result."""
        if self.kind in {"ddp", "fsdp"}:
            return sorted(set(self.lines()))
        return self.result.read_text()


def on_a_gpu() -> dict[str, str]:
    return {
        "CUDA_VISIBLE_DEVICES": os.environ["TRIAL_GPUS"],
        "TRIAL_DEVICE": "cuda",
        "HF_HUB_OFFLINE": "1",
        # NVIDIA's condition for reproducible sums.
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
    }


@pytest.mark.parametrize("kind", STEPS)
def test_the_result_equals_that_of_an_undisturbed_run(kind: str, tmp_path: Path) -> None:
    chance = random.Random(kind)  # noqa: S311 -- repeatable, not secret
    undisturbed, run = Run(kind, tmp_path / "undisturbed"), Run(kind, tmp_path / "killed")
    assert undisturbed.live() == 0, undisturbed.why()
    strikes = [signal.SIGTERM, signal.SIGKILL] * KILLS
    chance.shuffle(strikes)
    while strikes:
        seconds, before = chance.uniform(0.0, SECONDS[kind]), len(run.lines())

        def strike(pods: Sequence[Pod]) -> None:
            [pod], end = pods, time.monotonic() + LIFE_SECONDS
            while len(run.lines()) == before and pod.whole and time.monotonic() < end:  # noqa: B023 -- called at once
                time.sleep(0.01)
                pod.collect()
            time.sleep(seconds)  # noqa: B023 -- likewise
            pod.signal(strikes[-1])

        code = run.live(strike)
        if code == 0:
            assert run.end() == undisturbed.end()
            run.begin()
            continue
        assert code == (143 if strikes.pop() == signal.SIGTERM else -signal.SIGKILL), run.why()
    assert run.live() == 0, run.why()
    assert run.end() == undisturbed.end()
    print(f"\n{kind} on a GPU: {KILLS} warnings and {KILLS} kills in {run.lives} lives")  # noqa: T201 -- the figures


def test_checkpoints_of_gigabytes_take_less_than_a_hundredth_of_the_steps(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    result = tmp_path / "result"
    command = torchrun(0, free_port(), [gpu_steps.__file__, str(result)], pods=1, ranks=1)
    environment = {**os.environ, **on_a_gpu(), "CHECKPOINT_DIR": str(tmp_path / "checkpoints")}
    subprocess.run([sys.executable, "-m", "flexspot_runtime.launch", "--", *command], env=environment, check=True, timeout=LIFE_SECONDS)
    step, agreeing, saving, gigabytes = map(float, result.read_text().split())
    saved = len(list(tmp_path.glob("checkpoints/markers/*")))

    share = agreeing / step + saving / gpu_steps.INTERVAL_SECONDS
    parts = f"steps of {1000 * step:.0f} ms, {1000 * agreeing:.2f} ms between two, {1000 * saving:.0f} ms at a save"
    print(f"\n{gigabytes:.1f} GB on a GPU: {parts}: {100 * share:.2f} % with a save every {gpu_steps.INTERVAL_SECONDS} s")  # noqa: T201
    assert saved
    assert share < AT_MOST, parts
