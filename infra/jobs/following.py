"""Following a job: how it is whenever that changes, and what its first pod writes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from kubernetes.client.exceptions import ApiException

from capacity.workloads.requests import CONTAINER, INDEX_ANNOTATION
from infra.jobs.access import POD, message_of
from infra.jobs.state import ENDED, POD_LABELS, State
from infra.jobs.submission import states_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from infra.jobs.access import KubeObject, TeamCluster
    from infra.jobs.state import JobState

_POLL_SECONDS = 2.0
_OVERLAP_SECONDS = 5
"""Lines are asked for so far back again; those that were seen are not shown twice."""


class LogTail:
    """The lines of one pod that have not been shown yet; `first` limits how many of its earlier ones there are."""

    def __init__(self, cluster: TeamCluster, pod: str, first: int | None = None) -> None:
        self.pod = pod
        self._cluster, self._first = cluster, first
        self._last, self._shown_at_last = "", set[str]()
        self._asked: float | None = None

    def fresh(self) -> list[str]:
        """The next lines, without their times. Raises ApiException where there are none to be had."""
        since = None if self._asked is None else int(time.monotonic() - self._asked) + _OVERLAP_SECONDS
        now = time.monotonic()
        text = self._cluster.log(self.pod, CONTAINER, since_seconds=since, tail=self._first if self._asked is None else None)
        self._asked = now
        return self.unseen(text)

    def unseen(self, text: str) -> list[str]:
        """The lines of a text with times that are later than all before, or as late and new."""
        found: list[str] = []
        for line in text.splitlines():
            at, _, words = line.partition(" ")
            if at < self._last or (at == self._last and line in self._shown_at_last):
                continue
            if at != self._last:
                self._last, self._shown_at_last = at, set()
            self._shown_at_last.add(line)
            found.append(words)
        return found


def first_pod(pods: list[KubeObject]) -> str | None:
    """The pod whose output is shown: of index 0, the newest of that index that has begun."""
    begun = [each for each in pods if each.get("status", {}).get("phase") in {"Running", "Succeeded", "Failed"}]
    of_first = [each for each in begun if each["metadata"].get("annotations", {}).get(INDEX_ANNOTATION, "0") == "0"]
    newest = max(of_first, key=lambda each: each["metadata"].get("creationTimestamp", ""), default=None)
    return None if newest is None else newest["metadata"]["name"]


class _Output:
    """What the first pod of some jobs writes, whichever pod that is at the time."""

    def __init__(self, cluster: TeamCluster, say: Callable[[str], None], write: Callable[[str], None]) -> None:
        self._cluster, self._say, self._write = cluster, say, write
        self._tail: LogTail | None = None
        self._told = False

    def show(self, jobs: list[JobState]) -> None:
        """Writes what is new."""
        pod = first_pod(pods_of(self._cluster, jobs))
        if pod is not None and (self._tail is None or self._tail.pod != pod):
            self._tail, self._told = LogTail(self._cluster, pod), False
        if self._tail is None:
            return
        try:
            for line in self._tail.fresh():
                self._write(line)
        except ApiException as error:
            if not self._told:
                self._say(f"output of {self._tail.pod} cannot be had: {message_of(error)}")
            self._told = True


def pods_of(cluster: TeamCluster, jobs: list[JobState]) -> list[KubeObject]:
    """The pods of the first of some jobs, which are a workload's."""
    return cluster.list(POD, f"{POD_LABELS[jobs[0].kind]}={jobs[0].name}") if jobs else []


def follow(cluster: TeamCluster, work: str, say: Callable[[str], None], write: Callable[[str], None]) -> State:
    """Until all jobs of a workload have ended: `say` is told how they are, `write` is given lines of output. DONE if all are.

    Nothing is changed: whoever stops looking leaves the job as it is.
    """
    told: dict[str, str] = {}
    output = _Output(cluster, say, write)
    while found := states_of(cluster, work):
        for each in found:
            if (words := described(each)) != told.get(each.name):
                told[each.name] = words
                say(words)
        output.show(found)
        if all(each.state in ENDED for each in found):
            return State.DONE if all(each.state is State.DONE for each in found) else State.FAILED
        time.sleep(_POLL_SECONDS)
    say(f"{work} is gone: somebody stopped it, or its time to be kept is over")
    return State.FAILED


def described(job: JobState) -> str:
    """One line on a job."""
    pods = f", {job.pods} of {job.of} pods" if job.state in {State.RUNNING, State.STARTING} and job.of > 1 else ""
    return f"{job.name} is {job.state}{pods}{f': {job.why}' if job.why else ''}"
