"""Transformers' Trainer and Lightning, killed and started again: the weights in the end are those of a run that nobody disturbed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import rank_pods

SCRIPT = Path(__file__).with_name("small_trainers.py")
STEPS = 150
KILLS = min(6, int(os.environ.get("KILLS", "50")))
PATIENT_SECONDS = 300


def started(kind: str, folder: Path, ranks: int) -> subprocess.Popen[str]:
    folder.mkdir(exist_ok=True)
    (folder / "checkpoints").mkdir(exist_ok=True)
    environment = {
        **os.environ,
        "CHECKPOINT_DIR": str(folder / "checkpoints"),
        "HF_HUB_OFFLINE": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": rank_pods.free_port(),
    }
    program = [sys.executable, str(SCRIPT), kind, str(STEPS), str(folder / "scratch"), str(folder / "result")]
    command = program if ranks == 1 else [sys.executable, "-m", "flexspot_runtime.launch", f"--ranks={ranks}", "--", *program]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment, start_new_session=True)


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("kind", ["transformers", "lightning"])
def test_the_result_is_that_of_a_run_that_nobody_disturbed(kind: str, ranks: int, tmp_path: Path) -> None:
    chance = random.Random(kind)  # noqa: S311 -- repeatable, not secret
    with started(kind, tmp_path / "undisturbed", ranks) as run:
        run.communicate(timeout=PATIENT_SECONDS)
        assert run.returncode == 0
    folder = tmp_path / "killed"
    codes = []
    for kill in range(KILLS + 1):
        with started(kind, folder, ranks) as run:
            assert run.stdout
            if kill < KILLS:
                # Training has begun.
                while (line := run.stdout.readline()) and line != "step\n":
                    pass
                time.sleep(chance.uniform(0.0, 0.3))
                if kill % 2:
                    run.send_signal(signal.SIGTERM)
                else:
                    os.killpg(run.pid, signal.SIGKILL)
            run.communicate(timeout=PATIENT_SECONDS)
            codes.append(run.returncode)
    assert codes[-1] == 0
    assert codes[:-1] == [143 if kill % 2 else -signal.SIGKILL for kill in range(KILLS)]
    print(f"\n{kind} on {ranks} rank(s): {codes}")  # noqa: T201
    assert (folder / "result").read_text() == (tmp_path / "undisturbed" / "result").read_text()
