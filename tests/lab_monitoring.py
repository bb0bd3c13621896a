"""Temporary parts of a running lab: a real Prometheus with a real kube-state-metrics. Not a test."""

from __future__ import annotations

import shutil
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import urllib3
import yaml

from flexspot.components.measurement import exporter_arguments
from flexspot.lab.certificates import ensure_certificates
from flexspot.lab.cluster import WaitTimeoutError
from flexspot.lab.parts import Part
from flexspot.lab.ports import HOST, Reservations
from flexspot.lab.processes import (
    GRACE_SECONDS,
    POLL_SECONDS,
    PORT_ATTEMPTS,
    READY_SECONDS,
    PortTakenError,
    Prober,
    Running,
    end,
    never_ready,
    spawn,
    why_it_ended,
)
from flexspot.lab.progress import interrupts_wait
from flexspot.lab.tools.build import family_named

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from pathlib import Path

    from flexspot.lab.home import LabHome
    from flexspot.lab.tools.build import Tools


def brought_up(home: LabHome, ports: Sequence[str], parts: Callable[[dict[str, int]], list[Part]]) -> tuple[list[Running], dict[str, int]]:
    """Start parts on free ports with these names, and return once all are ready. Ends them all if one does not become ready."""
    for attempt in range(1, PORT_ATTEMPTS + 1):
        running: list[Running] = []
        try:
            with Reservations() as reservations:
                chosen = {name: reservations.choose() for name in ports}
                for part in parts(chosen):
                    with interrupts_wait():
                        running.append(spawn(home, part))
                    _wait_until_ready(home, part, running[-1], chosen)
        except PortTakenError as error:
            end(running, GRACE_SECONDS)
            if attempt == PORT_ATTEMPTS:
                raise error.again_and_again() from error
        except BaseException:
            end(running, GRACE_SECONDS)
            raise
        else:
            return running, chosen
    raise AssertionError("unreachable: the last attempt returns or raises")


def _wait_until_ready(home: LabHome, part: Part, process: Running, ports: dict[str, int]) -> None:
    prober, deadline = Prober(ensure_certificates(home.certificates)), time.monotonic() + READY_SECONDS
    while not (prober.is_ready(part, ports) and process.listens_on(ports[name] for name in part.ports)):
        if not process.is_alive:
            raise why_it_ended(home, part, "start again")
        if time.monotonic() > deadline:
            raise never_ready(home, part)
        time.sleep(POLL_SECONDS)


KUBE_STATE_METRICS, PROMETHEUS = "kube-state-metrics", "prometheus"
PORTS = (KUBE_STATE_METRICS, f"{KUBE_STATE_METRICS}-telemetry", PROMETHEUS)
"""Names of the ports that both listen on."""

_RETENTION = "100y"
"""Prometheus removes blocks that are older than its newest one by this time, which is longer than any month of the tests is ago."""


def kube_state_metrics(home: LabHome, tools: Tools, ports: dict[str, int]) -> Part:
    """Return kube-state-metrics of the lab's API server, with the arguments of a stack's."""
    port, telemetry = (ports[each] for each in PORTS[:2])
    return Part(
        name=KUBE_STATE_METRICS,
        version=family_named(KUBE_STATE_METRICS).version,
        ports=PORTS[:2],
        probe=f"http://{HOST}:{telemetry}/readyz",
        command=[
            str(tools.binary(KUBE_STATE_METRICS)),
            f"--kubeconfig={home.kubeconfig}",
            f"--host={HOST}",
            f"--port={port}",
            f"--telemetry-host={HOST}",
            f"--telemetry-port={telemetry}",
            *exporter_arguments(),
        ],
    )


def prometheus(  # noqa: PLR0913, PLR0917 -- the inputs of a program
    home: LabHome, tools: Tools, ports: dict[str, int], settings: dict[str, Any], data: Path, flags: Sequence[str] = ()
) -> Part:
    """Return Prometheus with its blocks in `data`, the content of its configuration file, and additional flags."""
    file, port = home.settings(PROMETHEUS) / "prometheus.yaml", ports[PROMETHEUS]
    kept = {"storage": {"tsdb": {"retention": {"time": _RETENTION}}}}
    return Part(
        name=PROMETHEUS,
        version=family_named(PROMETHEUS).version,
        ports=(PROMETHEUS,),
        probe=f"http://{HOST}:{port}/-/ready",
        files={file: yaml.safe_dump(settings | kept, sort_keys=False)},
        command=[
            str(tools.binary(PROMETHEUS)),
            f"--config.file={file}",
            f"--storage.tsdb.path={data}",
            f"--web.listen-address={HOST}:{port}",
            "--log.level=warn",
            *flags,
        ],
    )


def scraping(ports: dict[str, int], scrape_seconds: int, rules: Path | None) -> dict[str, Any]:
    """Return settings of a Prometheus that scrapes kube-state-metrics, and evaluates the file `rules`, every `scrape_seconds`.

    Labels of the scraped pod are set on the target, and override those from kube-state-metrics, as with a ServiceMonitor without
    honorLabels. A series about a pod then has its name in the label exported_pod.
    """
    every = f"{scrape_seconds}s"
    pod = {"namespace": "monitoring", "pod": f"{KUBE_STATE_METRICS}-0", "container": KUBE_STATE_METRICS}
    target = {"targets": [f"{HOST}:{ports[KUBE_STATE_METRICS]}"], "labels": pod}
    return {
        "global": {"scrape_interval": every, "scrape_timeout": every, "evaluation_interval": every},
        "rule_files": [] if rules is None else [str(rules)],
        "scrape_configs": [{"job_name": KUBE_STATE_METRICS, "honor_labels": False, "static_configs": [target]}],
    }


Series = list[tuple[dict[str, str], float]]
"""Labels and value of each series."""


@dataclass(frozen=True)
class PrometheusServer:
    """A Prometheus server."""

    url: str
    """Address of its API without /api/v1."""

    def instant(self, expression: str) -> Series:
        """Return the current result of an instant query: each series' labels and value. Raises ValueError with the server's error."""
        reply = urllib3.request("GET", f"{self.url}/api/v1/query", fields={"query": expression})
        found: dict[str, Any] = reply.json()
        if found["status"] != "success":
            raise ValueError(f"{expression}: {found['error']}")
        return [(each["metric"], float(each["value"][1])) for each in found["data"]["result"]]

    def wait_for(self, expression: str, look: Callable[[Series], bool], timeout_seconds: float = 60) -> Series:
        """Return the result of an instant query as soon as `look` accepts it. Raises WaitTimeoutError with the last result."""
        deadline = time.monotonic() + timeout_seconds
        while not look(found := self.instant(expression)):
            if time.monotonic() > deadline:
                raise WaitTimeoutError(f"{expression} was not as expected within {timeout_seconds:.0f} s; it was {found or 'nothing'}")
            time.sleep(POLL_SECONDS)
        return found

    def wait_until_scraped(self, moment: float, timeout_seconds: float = 60) -> None:
        """Return after every target was scraped successfully after `moment`, in seconds since 1970 UTC."""
        self.wait_for("timestamp(up == 1)", lambda found: bool(found) and all(when > moment for _, when in found), timeout_seconds)


@contextmanager
def watched(home: LabHome, tools: Tools, *, scrape_seconds: int = 5, rules: Path | None = None) -> Generator[PrometheusServer]:
    """Yield a Prometheus that scrapes kube-state-metrics of a running lab every `scrape_seconds` while the context lasts.

    It has scraped once at the start. `rules` is a file of rules, evaluated at the same interval. It starts empty and keeps nothing. Raises
    LabError if one does not become ready.
    """
    data = home.data(PROMETHEUS)
    shutil.rmtree(data, ignore_errors=True)

    def parts(ports: dict[str, int]) -> list[Part]:
        settings = scraping(ports, scrape_seconds, rules)
        return [kube_state_metrics(home, tools, ports), prometheus(home, tools, ports, settings, data / "blocks")]

    running, ports = brought_up(home, PORTS, parts)
    try:
        server = PrometheusServer(f"http://{HOST}:{ports[PROMETHEUS]}")
        server.wait_until_scraped(0)
        yield server
    finally:
        end(running, GRACE_SECONDS)
        shutil.rmtree(data, ignore_errors=True)


@contextmanager
def serving(home: LabHome, tools: Tools, blocks: Path, *flags: str) -> Generator[PrometheusServer]:
    """Yield a Prometheus over the blocks of a folder, without scraping. `flags` are added to its command line.

    Raises LabError if it does not become ready.
    """

    def parts(ports: dict[str, int]) -> list[Part]:
        return [prometheus(home, tools, ports, {}, blocks, flags)]

    running, ports = brought_up(home, PORTS, parts)
    try:
        yield PrometheusServer(f"http://{HOST}:{ports[PROMETHEUS]}")
    finally:
        end(running, GRACE_SECONDS)
