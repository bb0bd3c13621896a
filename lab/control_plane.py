"""Starting, repairing, looking at and stopping a lab."""

from __future__ import annotations

import shutil
import time
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from lab.certificates import ensure_certificates
from lab.errors import LabError
from lab.home import StaleStateError, load_state
from lab.part import LabContext
from lab.parts import PORTS, all_parts
from lab.probes import Prober
from lab.processes import Running, end_in_order, log_tail, running_parts
from lab.start import Start

if TYPE_CHECKING:
    from collections.abc import Generator

    from lab.home import LabHome
    from lab.part import Part
    from lab.progress import Progress
    from lab.start import StartReport
    from lab.tools.build import Tools


class PartState(StrEnum):
    """RUNNING answers its probe; UNREADY is alive but does not; STOPPED has no process, whether it was ended, killed or never started."""

    RUNNING = "running"
    UNREADY = "unready"
    STOPPED = "stopped"


@dataclass(frozen=True)
class PartStatus:
    """One line of `lab status`. `uptime_seconds` and `memory_mib` are of the process; `last_lines` are there when it is not running."""

    name: str
    version: str
    state: PartState
    address: str
    process_id: int | None = None
    uptime_seconds: float | None = None
    memory_mib: float | None = None
    last_lines: tuple[str, ...] = ()


class ControlPlane:
    """One lab. Every method may be called again, from another process, after any of them was interrupted."""

    def __init__(self, home: LabHome) -> None:
        self.home = home

    def start(self, tools: Tools, progress: Progress, api_port: int | None = None) -> StartReport:
        """Brings the lab to running, from nothing or from whatever is left of it.

        A part that is well is left alone; one that is gone, does not answer or has other settings than now is started anew.
        With `api_port` the API server listens there, now and later. Raises LabError when a port is taken or a part does not
        become ready; the parts started by this call are ended then.
        """
        with self._locked(progress):
            return Start(self.home, tools, progress).run(api_port)

    def stop(self, progress: Progress, *, delete: bool = False) -> list[str]:
        """Ends every process of the lab, and with `delete` removes its folder; returns the names of the parts that were running."""
        with self._locked(progress):
            running = running_parts(self.home)
            if running:
                progress.begin("stop", f"ending {len(running)} processes")
                end_in_order(running)
                progress.end("stop", "no process left")
            if delete:
                shutil.rmtree(self.home.folder, ignore_errors=True)
        return list(running)

    def status(self, tools: Tools) -> list[PartStatus]:
        """How each part is. Raises LabError when this lab was never started, or by another version."""
        lab = self._context(tools)
        running = running_parts(self.home)
        prober = Prober(lab.certificates)
        return [self._part_status(lab, part, running.get(part.name), prober) for part in all_parts(lab)]

    def require_running(self, tools: Tools) -> None:
        """Raises LabError with the names of the parts that do not run."""
        down = [part.name for part in self.status(tools) if part.state is not PartState.RUNNING]
        if down:
            raise LabError(
                f"lab {self.home.name} is not running: {', '.join(down)}.",
                f"`flexspot lab start --name {self.home.name}` starts what is missing; what is on the cluster is still there.",
            )

    def _part_status(self, lab: LabContext, part: Part, running: Running | None, prober: Prober) -> PartStatus:
        address = f"127.0.0.1:{lab.ports[part.ports[0]]}"
        if running is None:
            return PartStatus(part.name, part.version, PartState.STOPPED, address, last_lines=log_tail(self.home, part.name))
        ready = prober.is_ready(part, lab.ports)
        return PartStatus(
            part.name,
            part.version,
            PartState.RUNNING if ready else PartState.UNREADY,
            address,
            running.process.pid,
            time.time() - running.process.create_time(),
            running.process.memory_info().rss / 2**20,
            () if ready else log_tail(self.home, part.name),
        )

    def _context(self, tools: Tools) -> LabContext:
        try:
            state = load_state(self.home.state)
        except StaleStateError as error:
            raise LabError(
                f"lab {self.home.name} was made by another version of flexspot: {error}.",
                f"`flexspot lab start --name {self.home.name}` sets it aside and makes a new one.",
            ) from error
        if state is None or set(state.ports) != set(PORTS):
            raise LabError(
                f"there is no lab {self.home.name}: it was never started, or was deleted.",
                f"`flexspot lab start --name {self.home.name}` makes it.",
            )
        return LabContext(self.home, ensure_certificates(self.home.certificates), state.ports, tools)

    @contextmanager
    def _locked(self, progress: Progress) -> Generator[None]:
        """One start or stop of a lab at a time; a second one waits for the first and says so."""
        self.home.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = FileLock(self.home.lock)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            progress.begin("lock", f"waiting for another start or stop of lab {self.home.name}")
            lock.acquire()
            progress.end("lock", "done")
        try:
            yield
        finally:
            lock.release()
