"""Interrupts `flexspot up` and `destroy` at random moments, and looks whether the next run ends well.

    python tests/cloud/interruptions.py --stack local --count 200 --seed 1
    python tests/cloud/interruptions.py --stack dev-gke --count 200 --plugins official --report interruptions.txt

Each trial starts a command, ends it by SIGINT or SIGKILL, and runs the next `up` or `destroy`. Then that must have ended well, a preview
must say that nothing is left to do, everything must be there once and nothing else, and the state must know how everything ended.
Exit code 1 when any trial went wrong. The Kubernetes provider is the person's official one where there is one, or as --plugins says.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

# Run by hand, the tests' folder is not on the path; this one is already.
sys.path.append(str(Path(__file__).resolve().parents[1]))

from cloud_world import CloudWorld
from credential_servers import google, write_service_account

from flexspot.infra.deployment.prerequisites import PLUGINS, plugin_command, plugin_folder, plugin_path
from flexspot.lab.control_plane import LabControlPlane
from flexspot.lab.home import LabHome
from flexspot.lab.progress import Silence
from flexspot.lab.tools.build import ensure_tools

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.lab.tools.build import Tools

CHECKOUT = Path(__file__).resolve().parents[2]
PROJECTS = {"acme-ai-dev": "ACTIVE"}
NOTHING, BASE, EDITED = "nothing", "as shipped", "edited"
_PATIENCE_SECONDS = 180.0


class Blow(StrEnum):
    """Ways to end a run: as by Ctrl-C; its own process killed, which leaves the engine running; or all of its processes killed."""

    INTERRUPT = "SIGINT"
    KILL = "SIGKILL"
    KILL_ALL = "SIGKILL to all"


class InterruptibleStack:
    """A stack on a machine with a lab, using `plugin`, the official Kubernetes provider, or a stand-in.

    `found` and `seconds` are the result and the duration of an undisturbed run to a state.
    """

    def __init__(self, world: CloudWorld, tools: Tools, stack: str, *, plugin: Path | None, small: bool = False) -> None:
        self.stack, self.world = stack, world
        root = world.checkout.folder / ".lab" if stack == "local" else world.folder / "labs"
        self._lab = LabControlPlane(LabHome(root, "default"))
        self._shipped: dict[str, Any] = {}
        self.found: dict[str, Counter[str]] = {}
        self.seconds: dict[str, float] = {}
        try:
            self._lab.start(tools, Silence())
            world.serve_clusters_by(self._lab, tools)
            if plugin is not None:
                self._use_official(plugin, tools)
            elif stack == "local":
                # As on a machine without the official parts: the lab's stand-in.
                shutil.rmtree(world.home / "plugins")
            self._shipped = self._settings(official=plugin is not None, small=small)
            self.found[NOTHING] = self.all_there()
            self._measure()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the lab."""
        self._lab.stop(Silence(), delete=True)

    def use(self, state: str) -> None:
        """Write the settings of a state into the stack file. NOTHING has the shipped settings."""
        self.world.change(self.stack, **(self._edited() if state == EDITED else self._shipped))

    def arguments(self, command: str) -> list[str]:
        """Return the arguments of `flexspot`."""
        return [command, "-s", self.stack, *(["--yes"] if command in {"up", "destroy"} else [])]

    def run(self, state: str) -> str:
        """Bring the stack to a state undisturbed. Return the problem, or ""."""
        self.use(state)
        done = self.world.flexspot(*self.arguments("destroy" if state == NOTHING else "up"))
        return "" if done.returncode == 0 else f"exit {done.returncode}: {_short(done.stderr)}"

    def all_there(self) -> Counter[str]:
        """Return everything that the control plane and the cloud have, with duplicates."""
        return Counter([*self.world.objects(), *self.world.held()])

    def problems(self, state: str) -> list[str]:
        """Return the differences from the result of an undisturbed run to this state."""
        there, wanted = self.all_there(), self.found[state]
        differing = {"missing:": wanted - there, "too much:": there - wanted}
        found = [f"{what} {', '.join(sorted(each))}" for what, each in differing.items() if each]
        pending: list[Any] = self.world.state(self.stack).get("pending_operations") or []
        found += [f"{len(pending)} pending operations"] if pending else []
        if state != NOTHING:
            done = self.world.flexspot("preview", "-s", self.stack)
            if done.returncode or "no change." not in done.stdout:
                found.append(f"preview: {_short(done.stdout[-600:] + done.stderr)}")
        return found

    def interrupt(self, command: str, after: float, blow: Blow, log: Path) -> tuple[float, str]:
        """Start a command and end it after `after` seconds. Once all its processes have ended, return when that was, and its last line."""
        started = time.monotonic()
        with log.open("w", encoding="utf-8") as output:
            process = subprocess.Popen(  # A separate group: a real Ctrl-C in the terminal of the tests is not meant for it.
                self.world.checkout.command(*self.arguments(command)),
                cwd=self.world.checkout.folder,
                env=self.world.environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
            with suppress(subprocess.TimeoutExpired):
                process.wait(after)
                return time.monotonic() - started, _last_line(log)
            seconds, last = time.monotonic() - started, _last_line(log)
            family = _kill(process.pid, blow)
            process.wait(_PATIENCE_SECONDS)
        # An engine that lost its program ends by itself, but finishes its operations in progress first.
        _, left = psutil.wait_procs(family, timeout=_PATIENCE_SECONDS)
        if left:
            raise TimeoutError(f"still running {_PATIENCE_SECONDS:g} s after the program was ended: {left}")
        return seconds, last

    def _measure(self) -> None:
        for state in (BASE, EDITED, NOTHING):
            started = time.monotonic()
            if problem := self.run(state):
                raise RuntimeError(f"an undisturbed run of {self.stack} ({state}) went wrong: {problem}")
            self.seconds[state], self.found[state] = time.monotonic() - started, self.all_there()

    def _settings(self, *, official: bool, small: bool) -> dict[str, Any]:
        own = self.world.settings(self.stack)
        chosen: dict[str, Any] = {"pools": own["pools"], "teams": own["teams"]}
        if small and self.stack != "local":
            chosen["pools"] = [pool for pool in own["pools"] if pool["name"] == "l4-spot"]
            chosen["teams"] = [{"name": "research", "shares": {"l4-spot": 2}}]
        if official and self.stack != "local":
            # The official provider would fetch Kueue's chart from a registry. The lab already has Kueue.
            chosen["queueing"] = {"existing_kueue": True}
        return chosen

    def _edited(self) -> dict[str, Any]:
        """Return settings with one more team, and another ceiling for a pool."""
        pools, teams = self._shipped["pools"], self._shipped["teams"]
        first = {**pools[0], "max_nodes": pools[0]["max_nodes"] + 2}
        audio = {"name": "audio", "shares": {pools[0]["name"]: 1}}
        return {**self._shipped, "pools": [first, *pools[1:]], "teams": [*teams, audio]}

    def _use_official(self, plugin: Path, tools: Tools) -> None:
        """Put the official Kubernetes plugin on PATH, where the engine looks first. The clouds' plugins remain stand-ins."""
        self.world.environment["PATH"] = os.pathsep.join((str(self.world.programs), str(plugin.parent), self.world.environment["PATH"]))
        found = shutil.which("pulumi")
        if found and Path(found).resolve() != tools.binary("pulumi").resolve():
            (self.world.programs / "pulumi").unlink()


@dataclass(frozen=True)
class Trial:
    """One interruption: the command and its target state, when and how it ended, the next command, and the problems found then."""

    number: int
    towards: str
    seconds: float
    blow: Blow
    at: str
    then: str
    problems: list[str]

    @property
    def line(self) -> str:
        """Return the trial as a row of the report."""
        verdict = "; ".join(self.problems) or "well"
        return f"{self.number:4} {self.towards:10} {self.seconds:6.1f} s {self.blow:15} then {self.then:10} {verdict}   [{self.at[:80]}]"


class Interruptions:
    """A series of trials on one stack, each starting where the one before has ended."""

    def __init__(self, stack: InterruptibleStack, seed: int) -> None:
        self._stack = stack
        # Not for secrets: a seed repeats the same moments.
        self._random = random.Random(seed)  # noqa: S311
        self._state = NOTHING

    def trials(self, count: int) -> Iterator[Trial]:
        """Yield the trials as they are done. Ends early after one that left the stack unrecoverable."""
        for number in range(1, count + 1):
            trial = self._trial(number)
            yield trial
            self._state = trial.then
            if trial.problems:
                self._state = NOTHING
                if self._stack.run(NOTHING) or self._stack.problems(NOTHING):
                    return

    def _trial(self, number: int) -> Trial:
        stack = self._stack
        other = EDITED if self._state == BASE else BASE
        towards = self._random.choice([BASE, EDITED] if self._state == NOTHING else [NOTHING, other, other])
        after = self._random.uniform(0, stack.seconds[towards])
        blow = self._random.choice([Blow.INTERRUPT, Blow.INTERRUPT, Blow.KILL, Blow.KILL_ALL])
        stack.use(self._state if towards == NOTHING else towards)
        log = stack.world.folder / f"interrupted-{number}.log"
        seconds, at = stack.interrupt("destroy" if towards == NOTHING else "up", after, blow, log)
        # Usually repeats the command, as a user would. Sometimes destroys or deploys everything.
        then = self._random.choice([towards, towards, towards, NOTHING if towards != NOTHING else BASE])
        problem = stack.run(then)
        return Trial(number, towards, seconds, blow, at, then, [problem] if problem else stack.problems(then))


def _kill(pid: int, blow: Blow) -> list[psutil.Process]:
    """End the process, and return all processes that it had started."""
    main = psutil.Process(pid)
    family = main.children(recursive=True)
    if blow is Blow.INTERRUPT:
        main.send_signal(signal.SIGINT)
        return family
    main.kill()
    for each in family if blow is Blow.KILL_ALL else ():
        with suppress(psutil.NoSuchProcess):
            each.kill()
    return family


def _last_line(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines()]
    return next((line for line in reversed(lines) if line and not line.startswith("@")), "")


def _short(text: str) -> str:
    return " ".join(text.split())[:400]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--stack", choices=["local", "dev-gke"], default="local")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plugins", choices=["official", "stand-in"], help="default: official where the engine would find it")
    parser.add_argument("--small", action="store_true", help="one pool and one team of dev-gke, for quick trials")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the trials there as well")
    return parser.parse_args()


def _handle_signals() -> None:
    """End in order on a signal, so that no lab is left running. Child processes ignore Ctrl-C, as background jobs do."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))


def main() -> int:
    """Run the trials that the command line requests. Return the exit code."""
    asked = _arguments()
    _handle_signals()
    plugin = None if asked.plugins == "stand-in" else plugin_path("kubernetes")
    if plugin is None and asked.plugins == "official":
        raise SystemExit(f"no Kubernetes plugin {PLUGINS['kubernetes']} on PATH or in {plugin_folder()}; {plugin_command('kubernetes')}")
    tools = ensure_tools(CHECKOUT / ".tools", Silence())
    done = wrong = 0
    with tempfile.TemporaryDirectory(prefix="interruptions-") as folder, google(PROJECTS) as address:
        world = CloudWorld(Path(folder) / "world", tools, {"google": address})
        write_service_account(world.folder / "service-account.json", address)
        stack = InterruptibleStack(world, tools, asked.stack, plugin=plugin, small=asked.small)
        try:
            for trial in Interruptions(stack, asked.seed).trials(asked.count):
                done, wrong = done + 1, wrong + bool(trial.problems)
                print(trial.line, flush=True)  # noqa: T201 -- a program for the terminal
                if asked.report:
                    with asked.report.open("a", encoding="utf-8") as report:
                        report.write(f"{trial.line}\n")
        finally:
            stack.close()
    name = "stand-in" if plugin is None else "official"
    print(f"{done} of {asked.count} interruptions of {asked.stack} with the {name} Kubernetes provider, {wrong} went wrong.")  # noqa: T201
    return 1 if wrong or done < asked.count else 0


if __name__ == "__main__":
    raise SystemExit(main())
