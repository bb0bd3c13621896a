"""kube-state-metrics and Prometheus as programs of the lab: on loopback, with settings and data in the lab's folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from components.measurement.exporter_pods import exporter_arguments
from lab.part import Part
from lab.ports import HOST
from lab.tools.families import family_named

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from lab.home import LabHome
    from lab.tools.build import Tools

KUBE_STATE_METRICS, PROMETHEUS = "kube-state-metrics", "prometheus"
PORTS = (KUBE_STATE_METRICS, f"{KUBE_STATE_METRICS}-telemetry", PROMETHEUS)
"""The names of the ports that both listen on."""

_RETENTION = "100y"
"""Longer than any month that is looked at: Prometheus removes blocks that are older than its newest by more than this."""


def kube_state_metrics(home: LabHome, tools: Tools, ports: dict[str, int]) -> Part:
    """kube-state-metrics of the lab's API server, with the arguments that a stack gives it."""
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


def prometheus(  # noqa: PLR0913, PLR0917 -- what a program is made of
    home: LabHome, tools: Tools, ports: dict[str, int], settings: dict[str, Any], data: Path, flags: Sequence[str] = ()
) -> Part:
    """Prometheus with its blocks in `data`; `settings` are those of its configuration file, `flags` more of its command line."""
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
    """Settings of a Prometheus that scrapes kube-state-metrics, and evaluates the file `rules`, every `scrape_seconds`.

    Labels of the scraped pod are set on the target, and win over those that kube-state-metrics tells, as with a ServiceMonitor whose
    honorLabels is not set: what is told of a pod called p is then in the label exported_pod.
    """
    every = f"{scrape_seconds}s"
    pod = {"namespace": "monitoring", "pod": f"{KUBE_STATE_METRICS}-0", "container": KUBE_STATE_METRICS}
    target = {"targets": [f"{HOST}:{ports[KUBE_STATE_METRICS]}"], "labels": pod}
    return {
        "global": {"scrape_interval": every, "scrape_timeout": every, "evaluation_interval": every},
        "rule_files": [] if rules is None else [str(rules)],
        "scrape_configs": [{"job_name": KUBE_STATE_METRICS, "honor_labels": False, "static_configs": [target]}],
    }
