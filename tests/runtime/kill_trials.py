"""Trials of one training program: killed at random moments, its files damaged in between, resumed until it is done.

A trial asserts; the tests run 50, `make bench` 500.
"""

from __future__ import annotations

import pickle
import random
import signal
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from flexspot_runtime import INTERRUPTED_EXIT_CODE, Checkpointer, CorruptCheckpointError, LocalFolder
from flexspot_runtime.names import MARKERS
from memory_folder import folder_in_memory
from trial_trainer import INTERVAL_STEPS, TOTAL_STEPS, Model

if TYPE_CHECKING:
    from flexspot_runtime.marker import Marker

TRAINER = Path(__file__).with_name("trial_trainer.py")

LONGEST_LIFE_SECONDS = 0.12
MOST_KILLS = 5
"""Then the program is left alone."""


@dataclass
class Trial:
    """One program's life in one folder."""

    root: Path
    seed: int
    events: Counter[str] = field(default_factory=Counter[str])

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)  # noqa: S311 -- repeatable, not secret
        self.folder = self.root / "checkpoints"
        self.log = self.root / "log"
        self.folder.mkdir(parents=True)

    def run(self) -> Counter[str]:
        """Kills, damages and resumes until the program is done; raises AssertionError when a promise is broken."""
        valid_step = 0
        for life in range(MOST_KILLS + 1):
            code = self._live(kill=life < MOST_KILLS)
            newest = self.newest()
            found_step = newest.step if newest else 0
            noted = self._noted()
            assert found_step >= valid_step, f"a valid checkpoint was lost: {found_step} after {valid_step}"
            assert found_step >= noted["saved"], f"step {noted['saved']} was saved and is not there: {found_step}"
            assert noted["done"] - found_step <= INTERVAL_STEPS, f"{noted['done'] - found_step} steps were lost"
            assert _says_the_truth(code, completed=bool(newest and newest.completed)), f"exit code {code} at step {found_step}"
            if code == 0:
                assert self.final_state() == uninterrupted_state(), "the result is another than without interruptions"
                self.events["resumptions"] += life
                return self.events
            valid_step = self._damage(found_step)
        raise AssertionError("the program did not end although nobody killed it")

    def newest(self) -> Marker | None:
        """What a resumption would find."""
        return Checkpointer(LocalFolder(self.folder)).newest_valid()

    def final_state(self) -> tuple[bytes, bytes]:
        newest = self.newest()
        assert newest
        reader = Checkpointer(LocalFolder(self.folder)).reader(newest)
        return reader.get("model"), reader.get("ballast")

    def _live(self, *, kill: bool) -> int:
        command = [sys.executable, str(TRAINER), str(self.folder), str(self.log), str(self.random.randrange(1 << 30))]
        self.log.write_text("")
        remains = self._remains()
        with (
            (self.root / "stderr").open("ab") as complaints,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=complaints) as process,
        ):
            assert process.stdout
            # Nothing when it had nothing left to do.
            process.stdout.readline()
            if kill:
                self._kill(process, remains)
            code = process.wait()
        if code == -signal.SIGKILL:
            self.events["killed during a save"] += bool(self._remains() - remains)
        self.events[f"ended with {code}"] += 1
        return code

    def _kill(self, process: subprocess.Popen[bytes], remains: set[str]) -> None:
        """SIGTERM at a random moment and SIGKILL a random time after it; or one of them alone; or SIGKILL while a save is seen."""
        way = self.random.choice(["both", "both", "kill", "term", "in a save"])
        if way == "in a save":
            # However fast the machine is, some kills meet a save.
            while self._remains() <= remains and not ended_within(process, 0.001):
                pass
            process.kill()
            return
        if not ended_within(process, self.random.uniform(0.0, LONGEST_LIFE_SECONDS)) and way != "kill":
            process.send_signal(signal.SIGTERM)
        if way == "both":
            ended_within(process, self.random.uniform(0.0, 0.02))
        if way != "term":
            process.kill()

    def _remains(self) -> set[str]:
        """Saves without a marker."""
        saved = {path.stem for path in (self.folder / MARKERS).glob("*.json")}
        return {path.name for path in (self.folder / "data").glob("*")} - saved

    def _damage(self, found_step: int) -> int:
        """Sometimes tears the newest marker or its data, if there is an older checkpoint, or adds a torn one; the step still valid."""
        markers = sorted((self.folder / MARKERS).glob("*.json"))
        way = self.random.choice(["none", "none", "marker", "data", "added"])
        if way == "added":
            torn = markers[-1].read_bytes()[:-3] if markers else b""
            (self.folder / MARKERS).mkdir(exist_ok=True)
            (self.folder / MARKERS / f"{found_step + 1:012d}-abc-000001.json").write_bytes(torn)
        elif way in {"marker", "data"} and (newest := self.newest()):
            target = self.folder / newest.name if way == "marker" else self.folder / "data" / newest.group / "rank-00000" / "ballast"
            before = target.read_bytes()
            flipped = bytes([before[-1] ^ 1])
            target.write_bytes(self.random.choice([before[:-1], before[: len(before) // 2], before[:-1] + flipped]))
            older = self._older()
            if older is None:
                # It was the only one that is whole; what becomes of those is another test's matter.
                target.write_bytes(before)
                way = "none"
            else:
                assert older.step < found_step or older.group < newest.group
                found_step = older.step
        self.events[f"damaged: {way}"] += 1
        return found_step

    def _older(self) -> Marker | None:
        try:
            return self.newest()
        except CorruptCheckpointError:
            return None

    def _noted(self) -> dict[str, int]:
        """The furthest steps that the program told of in this life."""
        furthest = {"saved": 0, "done": 0}
        for line in self.log.read_text().splitlines():
            what, step = line.split()
            furthest[what] = max(furthest.get(what, 0), int(step))
        return furthest


@cache
def uninterrupted_state() -> tuple[bytes, bytes]:
    """What the program holds in the end when nobody stops it: computed here, without the library."""
    model = Model()
    for _ in range(TOTAL_STEPS):
        model.train()
    return pickle.dumps((model.random.getstate(), model.weights)), model.ballast


def run_trials(count: int, first_seed: int = 0, side_by_side: int = 2) -> Counter[str]:
    """So many trials; what happened in them."""
    uninterrupted_state()

    def trial(seed: int) -> Counter[str]:
        with folder_in_memory() as root:
            try:
                return Trial(root, seed).run()
            except AssertionError as error:
                raise AssertionError(f"trial {seed}: {error}") from error

    with ThreadPoolExecutor(side_by_side) as pool:
        return sum(pool.map(trial, range(first_seed, first_seed + count)), Counter[str]())


def ended_within(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _says_the_truth(code: int, *, completed: bool) -> bool:
    """0 only when all is done, 143 only when it is not; by a signal at any time, by SIGTERM only when the program listens no more."""
    return {0: completed, INTERRUPTED_EXIT_CODE: not completed, -signal.SIGTERM: completed, -signal.SIGKILL: True}.get(code, False)
