"""Bringing a lab to running, from nothing or from whatever is left of it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lab.certificates import ensure_certificates
from lab.errors import ExitCode, LabError
from lab.home import LabState, StaleStateError, load_state
from lab.interrupts import interrupts_wait
from lab.kubeconfig import kubeconfig
from lab.part import LabContext
from lab.parts import PORTS, controllers, store_and_server
from lab.ports import free_port, is_free, owner_of
from lab.probes import POLL_SECONDS, PORT_ATTEMPTS, READY_SECONDS, PortTakenError, Prober, never_ready, why_it_ended
from lab.processes import GRACE_SECONDS, Running, end, end_in_order, running_parts, spawn

if TYPE_CHECKING:
    from lab.home import LabHome
    from lab.part import Part
    from lab.progress import Progress
    from lab.tools.build import Tools


@dataclass(frozen=True)
class StartReport:
    """What a start did: the parts it started, those it found well, and notes for the person."""

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
        self._again = f"`flexspot lab start --name {home.name}` again (with `lab stop --delete` before it to begin from nothing)"

    def run(self, api_port: int | None) -> StartReport:
        """See ControlPlane.start."""
        for attempt in range(1, PORT_ATTEMPTS + 1):
            try:
                self._run(api_port)
                break
            except PortTakenError as error:
                # Choosing again is all it takes.
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

    def _run(self, api_port: int | None) -> None:
        state = self._state(api_port)
        running = running_parts(self._home)
        self._choose_ports(state, running)
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
        """Ends what an unreadable lab still runs and keeps its folder under another name: nothing is lost, nothing is in the way."""
        end_in_order(running_parts(self._home))
        aside = self._home.folder.with_name(f"{self._home.name}.set-aside-{time.strftime('%Y%m%dT%H%M%S')}")
        self._home.folder.rename(aside)
        self._home.folder.mkdir(mode=0o700)
        self._report.notes.append(f"the lab could not be carried on ({why}); its folder is now {aside.name}, delete it when you like")
        return LabState()

    def _choose_ports(self, state: LabState, running: dict[str, Running]) -> None:
        """Keeps each port that a running part has or that is free; chooses others for the rest."""
        taken: set[int] = set(state.ports.values())
        for name, owner in PORTS.items():
            port = state.ports.get(name)
            if port is not None and (owner in running or is_free(port)):
                continue
            fixed = state.fixed_api_port if name == "kube-apiserver" else None
            if fixed is not None and not is_free(fixed):
                raise LabError(
                    f"port {fixed}, asked for as the API server's, is in use by {owner_of(fixed)}.",
                    "end that program, or start with another `--api-port`.",
                    exit_code=ExitCode.BAD_USAGE,
                )
            if port is not None:
                self._report.notes.append(f"port {port} of {name} is in use by {owner_of(port)}; another one was chosen")
            state.ports[name] = fixed or free_port(taken)
            taken.add(state.ports[name])

    def _install(self, lab: LabContext, state: LabState) -> None:
        from lab.cluster import Cluster  # noqa: PLC0415 -- a second to import, and a repair rarely needs it
        from lab.manifests import digest_of, install, manifests  # noqa: PLC0415

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
        """Starts those of `parts` that are not well, side by side, and returns once all of them are ready."""
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
            for name, (part, process, begun) in list(waiting.items()):
                seconds = time.monotonic() - begun
                if prober.is_ready(part, lab.ports) and process.is_alive:
                    self._progress.end(name, f"ready after {seconds:.1f} s")
                    self._report.started.append(name)
                    del waiting[name]
                elif not process.is_alive:
                    raise why_it_ended(self._home, part, self._again)
                elif seconds > READY_SECONDS:
                    raise never_ready(self._home, part)
            time.sleep(POLL_SECONDS)

    def _recovers(self, found: Running, part: Part, ports: dict[str, int], prober: Prober) -> bool:
        """Whether a live part answers, given a moment: one whose neighbour was just restarted needs that."""
        deadline = time.monotonic() + 10
        while not (ready := prober.is_ready(part, ports)) and found.is_alive and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        return ready
