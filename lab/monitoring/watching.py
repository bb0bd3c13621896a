"""Running Prometheus over a lab or over blocks that are there, and ending it."""

from __future__ import annotations

import shutil
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lab.monitoring.parts import PORTS, PROMETHEUS, kube_state_metrics, prometheus, scraping
from lab.monitoring.server import PrometheusServer
from lab.not_ready import POLL_SECONDS, PORT_ATTEMPTS, READY_SECONDS, PortTakenError, never_ready, why_it_ended
from lab.ports import HOST, free_port
from lab.probes import Prober
from lab.processes import GRACE_SECONDS, Running, end, interrupts_wait, spawn

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from lab.home import LabHome
    from lab.part import Part
    from lab.tools.build import Tools


@contextmanager
def watched(home: LabHome, tools: Tools, *, scrape_seconds: int = 5, rules: Path | None = None) -> Generator[PrometheusServer]:
    """A Prometheus that has scraped kube-state-metrics of a running lab once, and goes on every `scrape_seconds` while the context lasts.

    `rules` is a file of rules, evaluated as often. Begins with nothing and keeps nothing. Raises LabError when one does not become ready.
    """
    data = home.data(PROMETHEUS)
    shutil.rmtree(data, ignore_errors=True)

    def parts(ports: dict[str, int]) -> list[Part]:
        settings = scraping(ports, scrape_seconds, rules)
        return [kube_state_metrics(home, tools, ports), prometheus(home, tools, ports, settings, data / "blocks")]

    running, ports = _brought_up(home, parts)
    try:
        server = PrometheusServer(f"http://{HOST}:{ports[PROMETHEUS]}")
        server.wait_until_scraped(0)
        yield server
    finally:
        end(running, GRACE_SECONDS)
        shutil.rmtree(data, ignore_errors=True)


@contextmanager
def serving(home: LabHome, tools: Tools, blocks: Path, *flags: str) -> Generator[PrometheusServer]:
    """A Prometheus over the blocks of a folder, which scrapes nothing; `flags` are more of its command line.

    Raises LabError when it does not become ready.
    """

    def parts(ports: dict[str, int]) -> list[Part]:
        return [prometheus(home, tools, ports, {}, blocks, flags)]

    running, ports = _brought_up(home, parts)
    try:
        yield PrometheusServer(f"http://{HOST}:{ports[PROMETHEUS]}")
    finally:
        end(running, GRACE_SECONDS)


def _brought_up(home: LabHome, parts: Callable[[dict[str, int]], list[Part]]) -> tuple[list[Running], dict[str, int]]:
    """Starts parts on free ports and returns once all are ready; nothing is left of those that do not become so."""
    for attempt in range(1, PORT_ATTEMPTS + 1):
        ports: dict[str, int] = {}
        for name in PORTS:
            ports[name] = free_port(set(ports.values()))
        running: list[Running] = []
        try:
            for part in parts(ports):
                with interrupts_wait():
                    running.append(spawn(home, part))
                _wait_until_ready(home, part, running[-1], ports)
        except PortTakenError as error:
            end(running, GRACE_SECONDS)
            if attempt == PORT_ATTEMPTS:
                raise error.again_and_again() from error
        except BaseException:
            end(running, GRACE_SECONDS)
            raise
        else:
            return running, ports
    raise AssertionError("the last attempt returns or raises")


def _wait_until_ready(home: LabHome, part: Part, process: Running, ports: dict[str, int]) -> None:
    prober, deadline = Prober(), time.monotonic() + READY_SECONDS
    while not prober.is_ready(part, ports):
        if not process.is_alive:
            raise why_it_ended(home, part, "start again")
        if time.monotonic() > deadline:
            raise never_ready(home, part)
        time.sleep(POLL_SECONDS)
