"""Interrupts `flexspot up` and `destroy` at random moments, and looks whether the next run ends well.

    python tests/cloud/interruptions.py --stack local --count 200 --seed 1
    python tests/cloud/interruptions.py --stack dev-gke --count 200 --plugins official --report interruptions.txt

Each trial starts a command, ends it by SIGINT or SIGKILL, and runs the next `up` or `destroy`. Then that must have ended well, a preview
must say that nothing is left to do, everything must be there once and nothing else, and the state must know how everything ended.
Exit code 1 when any trial went wrong. The Kubernetes provider is the person's official one where there is one, or as --plugins says.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

# Run by hand, nothing has put the tests' folder on the path; this one is on it already.
sys.path.append(str(Path(__file__).resolve().parents[1]))

from credential_servers import google
from interrupted_runs import Blow, run_and_interrupt
from interruption_ground import BASE, EDITED, NOTHING, InterruptionGround, Wish, official_plugins

from infra.deployment.cloud_run import PLUGINS
from lab.progress import Silence
from lab.tools.build import Tools, ensure_tools

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CHECKOUT = Path(__file__).resolve().parents[2]
PROJECTS = {"acme-ai-dev": "ACTIVE"}


@dataclass(frozen=True)
class Trial:
    """One interruption: which command towards which state, when and how, what was done next, and what was wrong then."""

    number: int
    command: str
    towards: str
    seconds: float
    blow: Blow
    at: str
    then: str
    problems: tuple[str, ...]

    @property
    def line(self) -> str:
        """As a row of the report."""
        verdict = "; ".join(self.problems) or "well"
        return (
            f"{self.number:4} {self.command:8} {self.towards:10} {self.seconds:6.1f} s {self.blow:15} "
            f"{self.then:18} {verdict}   [{self.at[:80]}]"
        )


class Interruptions:
    """Trial after trial on one ground, each from where the one before has ended."""

    def __init__(self, ground: InterruptionGround, seed: int) -> None:
        self._ground = ground
        # Not for secrets: for moments that can be had again.
        self._random = random.Random(seed)  # noqa: S311
        self._state = NOTHING

    def trials(self, count: int) -> Iterator[Trial]:
        """The trials, as they are done. Ends early after one from which there was no way back."""
        for number in range(1, count + 1):
            trial = self._trial(number)
            yield trial
            if trial.problems and not self._recovered():
                return

    def _trial(self, number: int) -> Trial:
        ground = self._ground
        towards = self._random.choice([BASE, EDITED] if self._state == NOTHING else [NOTHING, _other(self._state), _other(self._state)])
        command = "destroy" if towards == NOTHING else "up"
        after = self._random.uniform(0, ground.reference[towards].seconds)
        blow = self._random.choice([Blow.INTERRUPT, Blow.INTERRUPT, Blow.KILL, Blow.KILL_ALL])
        ground.use(self._state if towards == NOTHING and self._state != NOTHING else towards)
        ended = run_and_interrupt(ground.to_run(command, f"interrupted-{number}.log"), after, blow)
        # Mostly the same again, as a person would; now and then all is to go, or to come back.
        then = self._random.choice([towards, towards, towards, NOTHING if towards != NOTHING else BASE])
        problem = ground.run("destroy" if then == NOTHING else "up", then)
        self._state = then
        found = [problem] if problem else self._looked_at(then)
        return Trial(number, command, towards, ended.seconds, blow, ended.last_line, f"then {then}", tuple(found))

    def _looked_at(self, state: str) -> list[str]:
        ground = self._ground
        looks = [ground.differs_from(state), ground.pending(), "" if state == NOTHING else ground.previews_a_change()]
        return [each for each in looks if each]

    def _recovered(self) -> bool:
        """Whether all could be destroyed, so that the next trial begins from nothing."""
        self._state = NOTHING
        return not self._ground.run("destroy", NOTHING) and not self._looked_at(NOTHING)


def report(trials: Iterable[Trial], tell: Iterable[Path | None]) -> tuple[int, int]:
    """Writes each trial as it is done to standard output, and to files; returns how many there were and how many went wrong."""
    files = [each for each in tell if each is not None]
    done = wrong = 0
    for trial in trials:
        done, wrong = done + 1, wrong + bool(trial.problems)
        print(trial.line, flush=True)  # noqa: T201 -- a program for the terminal
        for file in files:
            with file.open("a", encoding="utf-8") as output:
                output.write(f"{trial.line}\n")
    return done, wrong


def _other(state: str) -> str:
    return EDITED if state == BASE else BASE


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--stack", choices=["local", "dev-gke"], default="local")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plugins", choices=["official", "stand-in"], help="default: official where it is in PULUMI_HOME")
    parser.add_argument("--small", action="store_true", help="one pool and one team of dev-gke, for quick trials")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the trials there as well")
    return parser.parse_args()


def _mind_signals() -> None:
    """Ends in order when it is told to, so that no lab is left running; and what it starts hears Ctrl-C, as background jobs do not."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))


def main() -> int:
    """Runs the trials that the command line asks for; returns the exit code."""
    asked = _arguments()
    _mind_signals()
    there = (official_plugins() / f"resource-kubernetes-v{PLUGINS['kubernetes']}").is_dir()
    official = there if asked.plugins is None else asked.plugins == "official"
    tools: Tools = ensure_tools(CHECKOUT / ".tools", Silence())
    with tempfile.TemporaryDirectory(prefix="interruptions-") as folder, google(PROJECTS) as address:
        ground = InterruptionGround(Path(folder) / "world", tools, address, Wish(asked.stack, official=official, small=asked.small))
        try:
            ground.measure()
            done, wrong = report(Interruptions(ground, asked.seed).trials(asked.count), [asked.report])
        finally:
            ground.close()
    name = "official" if official else "stand-in"
    print(f"{done} of {asked.count} interruptions of {asked.stack} with the {name} Kubernetes provider, {wrong} went wrong.")  # noqa: T201
    return 1 if wrong or done < asked.count else 0


if __name__ == "__main__":
    raise SystemExit(main())
