"""Start, find and stop the lab's programs, and probe their readiness.

A program has the lab's folder and its own name in its environment, and is found by them. So no list of process IDs can be lost, become
outdated or name an unrelated process.
"""

from __future__ import annotations

import os
import socket
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil
import urllib3

from flexspot.lab.ports import HOST
from flexspot.lab.progress import LabError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexspot.lab.certificates import Certificates
    from flexspot.lab.home import LabHome
    from flexspot.lab.parts import Part


_TIMEOUT_SECONDS = 5.0


class Prober:
    """Sends readiness probes, with the lab's own certificates. Usable by several threads."""

    def __init__(self, certificates: Certificates) -> None:
        self._http = urllib3.PoolManager(
            ca_certs=str(certificates.certificate("ca")),
            cert_file=str(certificates.certificate("admin")),
            key_file=str(certificates.key("admin")),
            timeout=_TIMEOUT_SECONDS,
            retries=False,
        )

    def is_ready(self, part: Part, ports: dict[str, int]) -> bool:
        """Return whether `part` listens on all its ports and its probe answers 200 now."""
        return all(_accepts(ports[name]) for name in part.ports) and self._answers(part.probe)

    def _answers(self, url: str) -> bool:
        try:
            return self._http.request("GET", url).status == 200  # noqa: PLR2004 -- HTTP's own number
        except urllib3.exceptions.HTTPError:
            return False


def _accepts(port: int) -> bool:
    # Readiness does not cover the other ports: Kueue answers its probe before its metrics can be read.
    try:
        socket.create_connection((HOST, port), _TIMEOUT_SECONDS).close()
    except OSError:
        return False
    return True


READY_SECONDS = 120.0
"""Seconds a part may take until it answers."""

POLL_SECONDS = 0.1

PORT_ATTEMPTS = 3
"""Number of times ports are chosen before giving up: another program may take a port between choosing it and listening on it."""


class PortTakenError(Exception):
    """A part found its port in use."""

    def again_and_again(self) -> LabError:
        """Return the error to raise after the last attempt."""
        return LabError(f"{self}, {PORT_ATTEMPTS} times in a row.", "free some ports on loopback and start again.")


def why_it_ended(home: LabHome, part: Part, remedy: str) -> PortTakenError | LabError:
    """Return the error for a part that ended while it was starting. `remedy`: what to do after reading its log."""
    lines = log_tail(home, part.name)
    if any("address already in use" in line for line in lines):
        return PortTakenError(f"{part.name} found its port taken by another program")
    message = f"{part.name} ended while it was starting. Its last lines:"
    return LabError(message, f"read {home.log(part.name)}, then {remedy}.", evidence=lines)


def never_ready(home: LabHome, part: Part) -> LabError:
    """Return the error for a part that is alive and does not answer."""
    return LabError(
        f"{part.name} was not ready within {READY_SECONDS:.0f} s ({part.probe}). Its last lines:",
        f"read {home.log(part.name)}; on a busy machine, start again.",
        evidence=log_tail(home, part.name),
    )


_HOME = "FLEXSPOT_LAB_HOME"
_PART = "FLEXSPOT_LAB_PART"
_DIGEST = "FLEXSPOT_LAB_DIGEST"

# Parts inherit nothing else from the user's environment: a proxy, a KUBECONFIG or a GODEBUG would change their behaviour.
_INHERITED = ("PATH", "HOME", "TMPDIR")


GRACE_SECONDS = 15.0
"""Seconds a part may take to end by itself before it is killed."""


@dataclass(frozen=True)
class Running:
    """A live program of a lab. `digest` is that of the Part it was started from."""

    part: str
    digest: str
    process: psutil.Process

    @property
    def is_alive(self) -> bool:
        """False once it has ended, even while no process has collected its exit status."""
        try:
            return self.process.is_running() and self.process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    def listens_on(self, ports: Iterable[int]) -> bool:
        """Return whether this process itself listens on all of `ports`."""
        try:
            found = self.process.net_connections(kind="tcp")
        except psutil.NoSuchProcess:
            return False
        return set(ports) <= {each.laddr.port for each in found if each.status == psutil.CONN_LISTEN}


def running_parts(home: LabHome) -> dict[str, Running]:
    """Return the live programs of a lab, by part."""
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
    """Start a part in a separate session, so that it outlives this process and is not reached by Ctrl-C at the terminal.

    Its output goes to its log; the log of the run before is kept next to it.
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
        process = subprocess.Popen(  # noqa: S603 -- the programs are those that flexspot.lab.tools built
            part.command,
            env=inherited | part.environment | marks,
            cwd=data,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    # The part should outlive this object; without this, Popen warns that it is still running.
    process.returncode = 0
    return Running(part.name, part.digest, psutil.Process(process.pid))


def end(running: Iterable[Running], grace_seconds: float) -> None:
    """Terminate programs, and kill those that have not ended after `grace_seconds`. Return when none is left."""
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
    """Stop controllers first, then the API server, then its store, so that none fails because another is missing."""
    for names in (set(running) - {"etcd", "kube-apiserver"}, {"kube-apiserver"}, {"etcd"}):
        end([running[name] for name in names if name in running], GRACE_SECONDS)


def log_tail(home: LabHome, part: str, lines: int = 12) -> tuple[str, ...]:
    """Return the last lines that a part printed, oldest first."""
    try:
        with home.log(part).open("rb") as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(0, log.tell() - 64 * 1024))
            return tuple(log.read().decode("utf-8", "replace").splitlines()[-lines:])
    except FileNotFoundError:
        return ()
