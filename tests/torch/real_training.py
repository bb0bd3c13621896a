"""A small model under DDP and FSDP2 on 4 ranks in 2 pods, killed at random moments: its losses are those of a run that nobody disturbed."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from typing import TYPE_CHECKING

import pytest
import small_trainer
from pods import PODS, RANKS, Pod, live

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

STEPS = 400
KILLS = int(os.environ.get("KILLS", "50"))
"""By SIGTERM, and as many by SIGKILL."""

LONGEST_SECONDS = 1.2
TRAINING_SHARE = 0.85
"""Of the strikes that wait for a new step; the others come while ranks start, meet and resume."""
TERM, KILL = "SIGTERM", "SIGKILL"


def losses_of(path: Path) -> dict[int, set[str]]:
    """Each step's losses, as often as it was done."""
    found: dict[int, set[str]] = {}
    for line in path.read_text().splitlines():
        step, _, loss = line.partition(" ")
        found.setdefault(int(step), set()).add(loss)
    return found


def trained(kind: str, folder: Path, losses: Path, strike: Callable[[list[Pod]], None] | None = None) -> list[list[int]]:
    def train() -> None:
        os.environ["CHECKPOINT_DIR"] = str(folder)
        sys.argv = ["small_trainer", kind, str(STEPS), str(losses)]
        small_trainer.main()

    return live(train, strike)


def marker_steps(folder: Path) -> list[int]:
    return sorted(int(path.name.split("-")[0]) for path in folder.glob("markers/*"))


def last_step(losses: Path) -> int:
    lines = losses.read_text().splitlines() if losses.exists() else []
    return int(lines[-1].split()[0]) + 1 if lines else 0


@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_the_losses_are_those_of_a_run_that_nobody_disturbed(kind: str, tmp_path: Path) -> None:
    chance = random.Random(kind)  # noqa: S311 -- repeatable, not secret
    (tmp_path / "undisturbed-folder").mkdir()
    assert trained(kind, tmp_path / "undisturbed-folder", tmp_path / "undisturbed") == [[0] * RANKS] * PODS
    folder, losses = tmp_path / "folder", tmp_path / "losses"
    folder.mkdir()
    ways = [TERM, KILL] * KILLS
    chance.shuffle(ways)
    counted = {TERM: 0, KILL: 0}
    lost: list[int] = []
    lives = 0

    while ways:
        way, pod_number, seconds = ways.pop(), chance.randrange(PODS), chance.uniform(0.0, LONGEST_SECONDS)
        in_training = chance.random() < TRAINING_SHARE
        struck: list[bool] = []

        def strike(
            pods: list[Pod], way: str = way, pod_number: int = pod_number, seconds: float = seconds, *, in_training: bool = in_training
        ) -> None:
            before = last_step(losses)
            end = time.monotonic() + 60
            while in_training and last_step(losses) == before and time.monotonic() < end:
                time.sleep(0.01)
            time.sleep(seconds)
            for pod in pods:
                pod.collect()
            if len(pods[pod_number].ranks) == RANKS:
                pods[pod_number].signal(signal.SIGTERM if way == TERM else signal.SIGKILL)
                struck.append(True)
            if not in_training and struck:
                # The other pod would wait for the first until the world does not come together: its pod goes, too.
                time.sleep(0.2)
                for pod in pods:
                    pod.collect()
                    pod.signal(signal.SIGTERM if way == TERM else signal.SIGKILL)

        markers_before = marker_steps(folder)
        codes = trained(kind, folder, losses, strike)
        lives += 1
        saved = marker_steps(folder)[-1] if marker_steps(folder) else 0
        assert saved >= (markers_before[-1] if markers_before else 0), "a checkpoint that counted was lost"
        if all(code == 0 for pod in codes for code in pod):
            # Done before the strike: again from the beginning, with the strike that is left.
            for path in sorted(folder.rglob("*"), reverse=True):
                path.unlink() if path.is_file() else path.rmdir()
            check(losses, tmp_path / "undisturbed")
            losses.unlink()
            ways += [] if struck else [way]
            counted[way] += len(struck)
            continue
        counted[way] += 1
        done = last_step(losses)
        if not struck:
            raise AssertionError(f"it ended before it was struck: {codes}")
        if in_training and way == TERM:
            assert codes == [[143] * RANKS] * PODS, codes
            assert saved == done, "a warning loses nothing"
        elif in_training:
            assert codes[pod_number] == [-9] * RANKS
            # A lost machine is no failure of those that it leaves.
            assert codes[1 - pod_number] == [143] * RANKS, codes
            lost.append(done - saved)
            # One interval, and what was trained while the newest was being written.
            assert done - saved <= 2 * small_trainer.EVERY_STEPS, (done, saved)
    assert trained(kind, folder, losses) == [[0] * RANKS] * PODS
    check(losses, tmp_path / "undisturbed")
    print(f"\n{kind}: {counted} in {lives} lives; steps lost by a kill: {max(lost)} at most, {sum(lost) / len(lost):.1f} on average")  # noqa: T201


def check(losses: Path, undisturbed: Path) -> None:
    expected = losses_of(undisturbed)
    found = losses_of(losses)
    assert len(expected) == STEPS
    # Each step as often as it was done, with one loss to the last bit.
    assert found == expected
