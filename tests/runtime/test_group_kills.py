"""Ranks that train together, started by the launcher and killed at random, one of them or all."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from flexspot_runtime import Checkpointer, CheckpointReader, LocalFolder
from group_trainer import MODULUS, TOTAL_STEPS, step_of_all
from memory_folder import folder_in_memory
from worker_kills import ended_within

TRAINER = Path(__file__).with_name("group_trainer.py")
RANKS = 3
MOST_KILLS = 6
LONGEST_LIFE_SECONDS = 0.4
TRAINING_SHARE = 0.8
"""Share of the kills that wait for training to begin. The others come while the ranks start and resume."""


OFTEN = pytest.mark.nightly(tested_by="test_ranks_resume_together_with_the_result_of_an_undisturbed_run")


def uninterrupted() -> list[int]:
    parts = [rank + 1 for rank in range(RANKS)]
    for _ in range(TOTAL_STEPS):
        added = step_of_all(parts)
        parts = [(part + added) % MODULUS for part in parts]
    return parts


def live(folder: Path, socket: Path, chance: random.Random, *, kill: bool) -> int:
    socket.unlink(missing_ok=True)
    command = [sys.executable, "-m", "flexspot_runtime.launch", "--ranks", str(RANKS), "--", sys.executable, str(TRAINER), folder, socket]
    with subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as launcher:
        assert launcher.stdout
        if kill:
            if chance.random() < TRAINING_SHARE:
                launcher.stdout.readline()
            strike(launcher, chance)
        launcher.stdout.read()
        return launcher.wait()


def strike(launcher: subprocess.Popen[bytes], chance: random.Random) -> None:
    """Kill or warn one rank, or kill all with or without a warning, unless the run has ended."""
    if ended_within(launcher, chance.uniform(0.0, LONGEST_LIFE_SECONDS)):
        return
    way = chance.choice(["all", "rank", "warned", "both"])
    if way == "rank" and (ranks := children(launcher.pid)):
        os.kill(chance.choice(ranks), signal.SIGKILL)
    if way in {"warned", "both"}:
        launcher.send_signal(signal.SIGTERM)
    if way == "both":
        ended_within(launcher, chance.uniform(0.0, 0.05))
    if way in {"all", "both"}:
        # The whole container ends, like its control group, unless it is gone.
        with suppress(ProcessLookupError):
            os.killpg(launcher.pid, signal.SIGKILL)


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.kills
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=OFTEN) for seed in range(1, 6))])
def test_ranks_resume_together_with_the_result_of_an_undisturbed_run(seed: int) -> None:
    with folder_in_memory() as root:
        kill_and_resume(root, random.Random(seed))  # noqa: S311 -- repeatable, not secret


def kill_and_resume(root: Path, chance: random.Random) -> None:
    folder = root / "checkpoints"
    folder.mkdir()
    newest_step, code, marker = 0, -1, None
    for kills in range(MOST_KILLS + 1):
        code = live(folder, root / "socket", chance, kill=kills < MOST_KILLS)
        marker = Checkpointer(LocalFolder(folder)).newest_valid()
        assert (marker.step if marker else 0) >= newest_step, "a valid checkpoint was lost"
        newest_step = marker.step if marker else 0
        if code == 0:
            break
        # SIGTERM itself ends it when it comes before the launcher listens.
        assert code in {1, 137, 143, -signal.SIGKILL, -signal.SIGTERM}

    assert code == 0
    assert marker
    assert marker.completed
    assert [int(CheckpointReader(LocalFolder(folder), marker, rank).get("part")) for rank in range(RANKS)] == uninterrupted()
