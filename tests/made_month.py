"""A synthetic month of pods on ten nodes, and Prometheus's blocks of it from promtool.

Scrapes are a minute apart. Pods start and end on the minute, so that their GPU seconds are known exactly.
"""

from __future__ import annotations

import random
import subprocess
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from flexspot.capacity.catalog.node_labels import (
    CAPACITY_TYPE_LABEL,
    INSTANCE_TYPE_LABEL,
    KARPENTER_POOL_LABEL,
    PROJECT_LABEL,
    TEAM_LABEL,
    WORKLOAD_TYPE_LABEL,
)
from flexspot.capacity.chargeback.queries import REGION_LABEL, label_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from flexspot.capacity.chargeback.samples import Period
    from flexspot.lab.tools.build import Tools

MINUTE, HOUR, DAY = 60, 3600, 86_400
NODES = 10
GPUS_OF_NODE = 8
LANES = [(f"node-{number}", gpus) for number in range(NODES) for gpus in (4, 2, 1, 1)]
"""Lanes of a node. One pod at a time runs in each."""

TEAMS = ("vision", "speech", "search", "ads")

_LINGERS = 10 * MINUTE
"""Seconds from the end of a pod to its deletion.

OpenMetrics cannot express the end of a series, and Prometheus repeats the last sample for five minutes. Without this time pods would keep
their GPUs for those five minutes.
"""

_OFFSET = 17
"""Seconds past the minute of each scrape."""

_BLOCKS = "486h"
"""Length of a block, as after Prometheus's own compaction. promtool reads the whole file once for each block."""

_PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")


@dataclass(frozen=True)
class MadePod:
    """A pod."""

    name: str
    team: str
    node: str
    gpus: int
    start: int
    """Second of the month."""
    end: int
    """Second of the month."""


@dataclass(frozen=True)
class MadeMonth:
    """A month of pods. Nodes exist all the time."""

    period: Period
    pods: list[MadePod]

    def gpu_seconds_by_team(self) -> dict[str, int]:
        """Return the GPU seconds of each team."""
        found: defaultdict[str, int] = defaultdict(int)
        for pod in self.pods:
            found[pod.team] += pod.gpus * (pod.end - pod.start)
        return dict(found)


def made_month(period: Period, pods: int) -> MadeMonth:
    """Return a month with this many pods, one after another in each lane."""
    chance, found = random.Random(1), list[MadePod]()  # noqa: S311 -- no secret
    minutes = (period.seconds - HOUR) // MINUTE // -(-pods // len(LANES))
    for number in range(pods):
        node, gpus = LANES[number % len(LANES)]
        lasts = chance.randint(1, minutes)
        start = number // len(LANES) * minutes + chance.randint(0, minutes - lasts)
        team = chance.choices(TEAMS, (4, 3, 2, 1))[0]
        found.append(MadePod(f"job-{number}", team, node, gpus, start * MINUTE, (start + lasts) * MINUTE))
    return MadeMonth(period, found)


def write_blocks(month: MadeMonth, tools: Tools, folder: Path) -> None:
    """Write everything that the report requests into Prometheus's blocks in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    text = folder / "month.openmetrics"
    with text.open("w", encoding="ascii", buffering=2**20) as file:
        writer = _Writer(file, month.period)
        for number in range(NODES):
            _write_node(writer, f"node-{number}")
        for team in TEAMS:
            writer.always("kube_namespace_labels", {"namespace": f"ns-{team}", label_of(TEAM_LABEL): team})
            writer.always("kueue_evicted_workloads_total", {"cluster_queue": team, "reason": "Preempted"}, lambda at: at // HOUR)
        for pod in month.pods:
            _write_pod(writer, pod)
        file.write("# EOF\n")
    blocks = ["tsdb", "create-blocks-from", "--quiet", f"--max-block-duration={_BLOCKS}", "openmetrics", str(text), str(folder)]
    subprocess.run([tools.binary("promtool"), *blocks], check=True)
    text.unlink()


class _Writer:
    """A writer of series in OpenMetrics text. Times are seconds of the month."""

    def __init__(self, file: TextIO, period: Period) -> None:
        self._file, self._seconds = file, period.seconds
        self._stamps = {at: str(period.start + at + _OFFSET) for at in range(-MINUTE, period.seconds + DAY, MINUTE)}

    def seen(self, metric: str, labels: dict[str, str], moments: Iterable[int], value: Callable[[int], float] | float = 1) -> None:
        label_text = ",".join(f'{key}="{each}"' for key, each in {**labels, "instance": "10.0.0.1:8080", "job": "exporter"}.items())
        begin, stamps = f"{metric}{{{label_text}}} ", self._stamps
        self._file.writelines(f"{begin}{value(at) if callable(value) else value} {stamps[at]}\n" for at in moments)

    def always(self, metric: str, labels: dict[str, str], value: Callable[[int], float] | float = 1) -> None:
        # Starts before the month, so that its first moment has a sample.
        self.seen(metric, labels, range(-MINUTE, self._seconds, MINUTE), value)


def _write_node(writer: _Writer, name: str) -> None:
    node = {"node": name}
    is_ = {
        INSTANCE_TYPE_LABEL: "p4d.24xlarge",
        REGION_LABEL: "us-east-1",
        CAPACITY_TYPE_LABEL: "spot",
        KARPENTER_POOL_LABEL: "a100-spot",
    }
    writer.always("kube_node_info", {**node, "provider_id": f"aws:///us-east-1a/i-{name}", "kernel_version": "6.12"})
    writer.always("kube_node_labels", {**node, **{label_of(key): value for key, value in is_.items()}})
    writer.always("kube_node_status_capacity", {**node, "resource": "nvidia_com_gpu", "unit": "integer"}, GPUS_OF_NODE)
    writer.always("kube_node_status_capacity", {**node, "resource": "cpu", "unit": "core"}, 96)
    writer.always("node_total_hourly_cost", node, 12.5)


def _write_pod(writer: _Writer, pod: MadePod) -> None:
    named = {"namespace": f"ns-{pod.team}", "pod": pod.name}
    known = {**named, "uid": f"{pod.name}-0000-4000-8000-000000000000"}
    runs, there = range(pod.start, pod.end, MINUTE), range(pod.start, pod.end + _LINGERS, MINUTE)
    owners = {TEAM_LABEL: pod.team, PROJECT_LABEL: f"project-{len(pod.name) % 3}", WORKLOAD_TYPE_LABEL: "training"}
    asks = {**known, "container": "main", "node": pod.node, "resource": "nvidia_com_gpu", "unit": "integer"}
    writer.seen("kube_pod_labels", {**known, **{label_of(key): value for key, value in owners.items()}}, there)
    writer.seen("kube_pod_container_resource_requests", asks, there, pod.gpus)
    for phase in _PHASES:
        if phase == "Running":
            writer.seen("kube_pod_status_phase", {**known, "phase": phase}, there, lambda at: int(at < pod.end))
        elif phase == "Succeeded":
            writer.seen("kube_pod_status_phase", {**known, "phase": phase}, there, lambda at: int(at >= pod.end))
        else:
            writer.seen("kube_pod_status_phase", {**known, "phase": phase}, there, 0)
    for gpu in range(pod.gpus):
        device = {"gpu": str(gpu), "UUID": f"GPU-{pod.node}-{gpu}", "modelName": "NVIDIA A100-SXM4-40GB", "Hostname": pod.node}
        writer.seen("DCGM_FI_PROF_GR_ENGINE_ACTIVE", {**named, **device}, runs, 0.8)
    writer.seen("flexspot_training_step", named, runs, lambda at: (at - pod.start) // 10)
    writer.seen("flexspot_training_lost_steps", named, runs, 0)
    writer.seen("flexspot_training_interruptions_total", named, runs, 0)
