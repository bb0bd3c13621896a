"""Starting, finding and ending the lab's programs.

A program carries the lab's folder and its own name in its environment, and is found by them. So there is no list of process
numbers that could be lost, be out of date or name somebody else's process.
"""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lab.home import LabHome
    from lab.part import Part

_HOME = "FLEXSPOT_LAB_HOME"
_PART = "FLEXSPOT_LAB_PART"
_DIGEST = "FLEXSPOT_LAB_DIGEST"

# Nothing else of the user's environment reaches a part: a proxy, a KUBECONFIG or a GODEBUG would change what it does.
_INHERITED = ("PATH", "HOME", "TMPDIR")


GRACE_SECONDS = 15.0
"""How long a part may take to end by itself before it is killed."""


@dataclass(frozen=True)
class Running:
    """A live program of a lab; `digest` is that of the Part it was started from."""

    part: str
    digest: str
    process: psutil.Process

    @property
    def is_alive(self) -> bool:
        """False once it has ended, even while nobody has collected its exit status."""
        try:
            return self.process.is_running() and self.process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False


def running_parts(home: LabHome) -> dict[str, Running]:
    """The live programs of a lab, by part."""
    found: dict[str, Running] = {}
    for process in psutil.process_iter(["environ"]):
        # None for a process of another user.
        environment: dict[str, str] = process.info["environ"] or {}
        if environment.get(_HOME) == str(home.folder):
            running = Running(environment.get(_PART, ""), environment.get(_DIGEST, ""), process)
            if running.is_alive:
                found[running.part] = running
    return found


def spawn(home: LabHome, part: Part) -> Running:
    """Starts a part in a session of its own, so that it outlives this process and a Ctrl-C at the terminal does not reach it.

    What it prints goes to its log; the log of the run before is kept beside it.
    """
    for path, text in part.files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.write_text(text, encoding="utf-8")
    log = home.log(part.name)
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists():
        log.replace(log.with_suffix(".log.1"))
    data = home.data(part.name)
    data.mkdir(parents=True, exist_ok=True)
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    marks = {_HOME: str(home.folder), _PART: part.name, _DIGEST: part.digest}
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 -- the programs are those that lab.tools built
            part.command,
            env=inherited | part.environment | marks,
            cwd=data,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    # The part is meant to outlive this object; without this, Popen warns that it is still running.
    process.returncode = 0
    return Running(part.name, part.digest, psutil.Process(process.pid))


def end(running: Iterable[Running], grace_seconds: float) -> None:
    """Asks programs to end and kills those that have not after `grace_seconds`; returns when none is left."""
    processes = [each.process for each in running]
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.terminate()
    _, left = psutil.wait_procs(processes, timeout=grace_seconds)
    for process in left:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(left)


def end_in_order(running: dict[str, Running]) -> None:
    """Ends controllers first, then the API server, then its store, so that none fails for want of another."""
    for names in (set(running) - {"etcd", "kube-apiserver"}, {"kube-apiserver"}, {"etcd"}):
        end([running[name] for name in names if name in running], GRACE_SECONDS)


def log_tail(home: LabHome, part: str, lines: int = 12) -> tuple[str, ...]:
    """The last lines that a part printed, oldest first."""
    try:
        with home.log(part).open("rb") as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(0, log.tell() - 64 * 1024))
            return tuple(log.read().decode("utf-8", "replace").splitlines()[-lines:])
    except FileNotFoundError:
        return ()
