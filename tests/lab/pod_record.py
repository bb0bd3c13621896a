"""The API server's own record of the times at which pods had their GPUs. It watches them, as deleted pods would be missing. Not a test."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.node_labels import GPU_RESOURCE, TEAM_LABEL
from flexspot.lab.cluster import POD, condition

if TYPE_CHECKING:
    from collections.abc import Generator

    from flexspot.lab.cluster import Cluster, KubeObject


@dataclass
class PodTimes:
    """A pod with GPUs."""

    name: str
    namespace: str
    team: str
    gpus: int
    start: float | None = None
    """When it got them, in seconds since 1970 UTC."""

    end: float | None = None
    """When it gave them back; None while it has them."""

    def gpu_seconds(self, until: float) -> float:
        """Return the GPU-seconds it had until then."""
        return 0.0 if self.start is None else self.gpus * max(0.0, min(self.end or until, until) - self.start)


@dataclass
class PodRecord:
    """Pods by uid. `end` is when the last container ended, or else when the pod was seen to be gone."""

    pods: dict[str, PodTimes] = field(default_factory=dict[str, PodTimes])

    def look(self, found: list[KubeObject]) -> None:
        """Record all current pods."""
        now = time.time()
        for pod in found:
            if gpus := _gpus(pod):
                metadata = pod["metadata"]
                owner = metadata["labels"].get(TEAM_LABEL, "")
                times = self.pods.setdefault(metadata["uid"], PodTimes(metadata["name"], metadata["namespace"], owner, gpus))
                if times.start is None and (placed := condition(pod, "PodScheduled")):
                    times.start = _seconds(placed["lastTransitionTime"])
                if times.end is None and pod["status"]["phase"] in {"Succeeded", "Failed"}:
                    times.end = _ended(pod)
        there = {pod["metadata"]["uid"] for pod in found}
        for uid, times in self.pods.items():
            if uid not in there and times.end is None:
                times.end = now


@contextmanager
def recorded_pods(cluster: Cluster, namespace: str = "default") -> Generator[PodRecord]:
    """Yield a record of all pods. At the end a pod is created in `namespace` for a moment, to wake the watch."""
    record, over = PodRecord(), threading.Event()

    def look(pods: list[KubeObject]) -> bool:
        record.look(pods)
        return over.is_set()

    watching = threading.Thread(target=cluster.wait_for, args=(POD, look, "the end of the record"), kwargs={"timeout_seconds": 600})
    watching.start()
    try:
        yield record
    finally:
        over.set()
        # Any change of any pod ends the watch; this pod affects nothing.
        waking = cluster.create(_waking(namespace))
        watching.join()
        cluster.delete(POD, waking["metadata"]["name"], namespace)


def _waking(namespace: str) -> KubeObject:
    """Return a pod that fits on no node."""
    container = {"name": "none", "image": "none:1"}
    spec = {"containers": [container], "nodeSelector": {"flexspot.test/nowhere": "true"}, "terminationGracePeriodSeconds": 0}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "waking-", "namespace": namespace}, "spec": spec}


def _gpus(pod: KubeObject) -> int:
    return sum(int(each.get("resources", {}).get("requests", {}).get(GPU_RESOURCE, 0)) for each in pod["spec"]["containers"])


def _ended(pod: KubeObject) -> float:
    states = [each["state"]["terminated"] for each in pod["status"].get("containerStatuses", []) if "terminated" in each["state"]]
    return max((_seconds(each["finishedAt"]) for each in states), default=time.time())


def _seconds(written: str) -> float:
    return datetime.fromisoformat(written).timestamp()
