"""Start, repair, inspect and stop a lab, whatever state it is in."""

from __future__ import annotations

import shutil
import time
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from flexspot.lab.certificates import ensure_certificates
from flexspot.lab.home import LabState, StaleStateError, load_state
from flexspot.lab.parts import PORTS, LabContext, all_parts, controllers, kubeconfig, store_and_server
from flexspot.lab.ports import Reservations, owner_of
from flexspot.lab.processes import (
    GRACE_SECONDS,
    POLL_SECONDS,
    PORT_ATTEMPTS,
    READY_SECONDS,
    PortTakenError,
    Prober,
    Running,
    end,
    end_in_order,
    log_tail,
    never_ready,
    running_parts,
    spawn,
    why_it_ended,
)
from flexspot.lab.progress import ExitCode, LabError, interrupts_wait, locked

if TYPE_CHECKING:
    from collections.abc import Generator

    from flexspot.lab.home import LabHome
    from flexspot.lab.parts import Part
    from flexspot.lab.progress import Progress
    from flexspot.lab.tools.build import Tools


@dataclass(frozen=True)
class StartReport:
    """Result of a start: the parts it started, the parts that were healthy already, and notes for the user."""

    started: list[str]
    kept: list[str]
    notes: list[str]


class Start:
    """One run of ControlPlane.start, from choosing ports to the last part's readiness."""

    def __init__(self, home: LabHome, tools: Tools, progress: Progress) -> None:
        self._home = home
        self._tools = tools
        self._progress = progress
        self._report = StartReport([], [], [])
        self._started: dict[str, Running] = {}
        self._again = f"`flexspot lab start --lab {home.name}` again (with `lab stop --delete` before it to start from nothing)"

    def run(self, api_port: int | None) -> StartReport:
        """See ControlPlane.start."""
        for attempt in range(1, PORT_ATTEMPTS + 1):
            try:
                with Reservations() as reservations:
                    self._run(api_port, reservations)
                break
            except PortTakenError as error:
                # Choosing other ports solves this.
                end_in_order(self._started)
                self._started.clear()
                self._report.started.clear()
                self._report.kept.clear()
                if attempt == PORT_ATTEMPTS:
                    raise error.again_and_again() from error
            except BaseException:
                end_in_order(self._started)
                raise
        return self._report

    def _run(self, api_port: int | None, reservations: Reservations) -> None:
        state = self._state(api_port)
        running = running_parts(self._home)
        self._choose_ports(state, running, reservations)
        state.save(self._home.state)
        lab = LabContext(self._home, ensure_certificates(self._home.certificates), state.ports, self._tools)
        self._home.kubeconfig.touch(mode=0o600)
        self._home.kubeconfig.write_text(kubeconfig(lab, "admin"), encoding="utf-8")
        prober = Prober(lab.certificates)

        for part in store_and_server(lab):
            self._bring_up([part], lab, running, prober)
        self._install(lab, state)
        self._bring_up(controllers(lab), lab, running, prober)

    def _state(self, api_port: int | None) -> LabState:
        self._home.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            state = load_state(self._home.state) or LabState()
        except StaleStateError as error:
            state = self._set_aside(error)
        if api_port is not None and state.fixed_api_port != api_port:
            state.fixed_api_port = api_port
            state.ports.pop("kube-apiserver", None)
        return state

    def _set_aside(self, why: StaleStateError) -> LabState:
        """Stop what an unreadable lab still runs, and rename its folder, so that nothing is lost and nothing is in the way."""
        end_in_order(running_parts(self._home))
        aside = self._home.folder.with_name(f"{self._home.name}.set-aside-{time.strftime('%Y%m%dT%H%M%S')}")
        self._home.folder.rename(aside)
        self._home.folder.mkdir(mode=0o700)
        self._report.notes.append(f"the lab could not be continued ({why}); its folder was renamed to {aside.name} and can be deleted")
        return LabState()

    def _choose_ports(self, state: LabState, running: dict[str, Running], reservations: Reservations) -> None:
        """Keep each port that is free or that a running part has. Choose others for the rest."""
        for name, owner in PORTS.items():
            port = state.ports.get(name)
            if port is not None and (owner in running or reservations.take(port)):
                continue
            fixed = state.fixed_api_port if name == "kube-apiserver" else None
            if fixed is not None and (port == fixed or not reservations.take(fixed)):
                raise LabError(
                    f"port {fixed}, requested for the API server, is in use by {owner_of(fixed)}.",
                    "end that program, or start with another `--api-port`.",
                    exit_code=ExitCode.BAD_USAGE,
                )
            if port is not None:
                self._report.notes.append(f"port {port} of {name} is in use by {owner_of(port)}; another one was chosen")
            state.ports[name] = fixed or reservations.choose()

    def _install(self, lab: LabContext, state: LabState) -> None:
        from flexspot.lab.cluster import Cluster, digest_of, install, manifests  # noqa: PLC0415

        objects = manifests(lab)
        digest = digest_of(objects)
        if state.installed == digest:
            return
        self._progress.begin("manifests", f"applying {len(objects)} objects")
        install(Cluster(self._home.kubeconfig), objects)
        state.installed = digest
        state.save(self._home.state)
        self._progress.end("manifests", f"{len(objects)} objects applied")

    def _bring_up(self, parts: list[Part], lab: LabContext, running: dict[str, Running], prober: Prober) -> None:
        """Start those of `parts` that are not healthy, concurrently. Return once all of them are ready."""
        waiting: dict[str, tuple[Part, Running, float]] = {}
        for part in parts:
            found = running.get(part.name)
            if found is not None and found.is_alive and found.digest == part.digest and self._recovers(found, part, lab.ports, prober):
                self._report.kept.append(part.name)
                continue
            if found is not None:
                end([found], GRACE_SECONDS)
            self._progress.begin(part.name, f"starting {part.version}")
            with interrupts_wait():
                process = spawn(self._home, part)
                self._started[part.name] = process
            waiting[part.name] = (part, process, time.monotonic())
        while waiting:
            for name, (part, process, started_at) in list(waiting.items()):
                seconds = time.monotonic() - started_at
                if prober.is_ready(part, lab.ports) and process.listens_on(lab.ports[each] for each in part.ports):
                    self._progress.end(name, f"ready after {seconds:.1f} s")
                    self._report.started.append(name)
                    del waiting[name]
                elif not process.is_alive:
                    raise why_it_ended(self._home, part, self._again)
                elif seconds > READY_SECONDS:
                    raise never_ready(self._home, part)
            time.sleep(POLL_SECONDS)

    def _recovers(self, found: Running, part: Part, ports: dict[str, int], prober: Prober) -> bool:
        """Return whether a live part answers within some seconds. It needs them if a part that it depends on was just restarted."""
        deadline = time.monotonic() + 10
        while not (ready := prober.is_ready(part, ports)) and found.is_alive and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        return ready


class PartState(StrEnum):
    """State of a part's process."""

    RUNNING = "running"
    """It answers its probe."""

    UNREADY = "unready"
    """It is alive but does not answer."""

    STOPPED = "stopped"
    """There is no process: it ended, was killed or was never started."""


@dataclass(frozen=True)
class PartStatus:
    """One line of `lab status`."""

    name: str
    version: str
    state: PartState
    address: str
    process_id: int | None = None
    uptime_seconds: float | None = None
    """Since the process started."""

    memory_mib: float | None = None
    """Resident memory of the process."""

    last_lines: tuple[str, ...] = ()
    """Last lines of its log, unless it is running."""


class LabControlPlane:
    """One lab. Every method may be called again, also from another process, after an interruption of any of them."""

    def __init__(self, home: LabHome) -> None:
        self.home = home

    def start(self, tools: Tools, progress: Progress, api_port: int | None = None) -> StartReport:
        """Start the lab, whatever state it is in.

        A healthy part is left alone. A part that is missing, does not answer or has other settings than now is started again. With
        `api_port` the API server listens there, now and later.

        Raises LabError when a port is taken or a part does not become ready; the parts started by this call are stopped then.
        """
        with self._locked(progress):
            return Start(self.home, tools, progress).run(api_port)

    def stop(self, progress: Progress, *, delete: bool = False) -> list[str]:
        """Stop every process of the lab, and with `delete` remove its folder. Return the names of the parts that were running."""
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
        """Return the status of each part. Raises LabError when this lab was never started, or by another version."""
        lab = self._context(tools)
        running = running_parts(self.home)
        prober = Prober(lab.certificates)
        return [self._part_status(lab, part, running.get(part.name), prober) for part in all_parts(lab)]

    def require_running(self, tools: Tools) -> None:
        """Raise LabError with the names of the parts that do not run."""
        down = [part.name for part in self.status(tools) if part.state is not PartState.RUNNING]
        if down:
            raise LabError(
                f"lab {self.home.name} is not running: {', '.join(down)}.",
                f"`flexspot lab start --lab {self.home.name}` starts what is missing; the cluster's objects are still there.",
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

    def require_created(self) -> LabState:
        """Return the settings this lab was started with.

        Raises LabError when it was never started, or by another version. Needs no tools.
        """
        try:
            state = load_state(self.home.state)
        except StaleStateError as error:
            raise LabError(
                f"lab {self.home.name} was created by another version of flexspot: {error}.",
                f"`flexspot lab start --lab {self.home.name}` renames its folder and creates a new one.",
            ) from error
        if state is None or set(state.ports) != set(PORTS):
            raise LabError(
                f"there is no lab {self.home.name}: it was never started, or was deleted.",
                f"`flexspot lab start --lab {self.home.name}` creates it.",
            )
        return state

    def _context(self, tools: Tools) -> LabContext:
        state = self.require_created()
        return LabContext(self.home, ensure_certificates(self.home.certificates), state.ports, tools)

    @contextmanager
    def _locked(self, progress: Progress) -> Generator[None]:
        """Allow one start or stop of a lab at a time. A second one waits for the first, and reports that."""
        self.home.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        with locked(self.home.lock, progress, "lock", f"waiting for another start or stop of lab {self.home.name}") as waited:
            if waited:
                progress.end("lock", "done")
            yield
