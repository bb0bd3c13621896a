"""Workers on one queue that are killed at random, with and without a warning, until every task has its result."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

WORKER = Path(__file__).with_name("queue_worker.py")
LONGEST_LIFE_SECONDS = 0.8

MESSAGES, KILLS = 200, 4


@dataclass
class Workers:
    """A few at a time, with a new one for each that is killed."""

    queue: str
    folder: Path
    environment: dict[str, str]
    events: Counter[str] = field(default_factory=Counter[str])

    def start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, str(WORKER), self.queue, str(self.folder)]
        return subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def kill_until(self, done: Callable[[], bool], kills: int, chance: random.Random) -> None:
        """Kill workers one after the other, `kills` times, while the others work. Then let two work until all is done, and stop them.

        `done` is called repeatedly, so it may also add work.
        """
        working = [self.start(), self.start()]
        for _ in range(kills):
            done()
            working.append(self.start())
            victim = working.pop(0)
            assert victim.stdout
            victim.stdout.readline()
            if not ended_within(victim, chance.uniform(0.0, LONGEST_LIFE_SECONDS)):
                self._strike(victim, chance.choice([signal.SIGTERM, signal.SIGKILL, signal.SIGKILL]))
            self._end(victim)
        while not done():
            assert all(worker.poll() is None for worker in working), "a worker ended although there was work"
            ended_within(working[0], 0.1)
        for worker in working:
            self._strike(worker, signal.SIGTERM)
            assert self._end(worker) == 0, "a worker that is warned has nothing to be ashamed of"

    def _strike(self, victim: subprocess.Popen[bytes], number: signal.Signals) -> None:
        self.events[number.name] += 1
        victim.send_signal(number)

    def _end(self, worker: subprocess.Popen[bytes]) -> int:
        with worker:
            code = worker.wait(60)
        assert code in {0, -signal.SIGKILL}, f"a worker ended with {code}"
        return code


def ended_within(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True
