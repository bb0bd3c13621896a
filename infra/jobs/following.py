"""Following a job: how it is whenever that changes, and what its first pod writes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from kubernetes.client.exceptions import ApiException

from capacity.values.errors import ExplainedError
from capacity.workloads.requests import CONTAINER, INDEX_ANNOTATION
from infra.jobs.access import POD, explained, is_passing, message_of
from infra.jobs.state import ENDED, POD_LABELS, State, pods_of
from infra.jobs.submission import job_states

if TYPE_CHECKING:
    from collections.abc import Callable

    from capacity.workloads.pods import KubeObject
    from infra.jobs.access import TeamCluster
    from infra.jobs.state import JobState

_POLL_SECONDS = 2.0
_PATIENCE_SECONDS = 300.0
_EARLIER_LINES = 1000
_OVERLAP_SECONDS = 5
"""Lines are asked for so far back again; those that were seen are not shown twice."""


class LogTail:
    """The lines of one pod that have not been shown yet, of those before it is asked the last thousand."""

    def __init__(self, cluster: TeamCluster, pod: str) -> None:
        self.pod = pod
        self._cluster = cluster
        self._last, self._shown = "", set[str]()
        self._asked: float | None = None

    def fresh(self) -> list[str]:
        """The next lines, without their times. Raises ApiException where there are none to be had."""
        since = None if self._asked is None else int(time.monotonic() - self._asked) + _OVERLAP_SECONDS
        now = time.monotonic()
        text = self._cluster.log(self.pod, CONTAINER, since_seconds=since, tail=_EARLIER_LINES if self._asked is None else None)
        self._asked = now
        return self.unseen(text)

    def unseen(self, text: str) -> list[str]:
        """The lines of a text with times that are not earlier than all before it, but for those that were there already.

        Within a text lines may be out of order: output and errors are two streams.
        """
        found: list[str] = []
        since, shown = self._last, self._shown
        for line in text.splitlines():
            at, _, words = line.partition(" ")
            if at < since or line in shown:
                continue
            self._last = max(self._last, at)
            found.append(words)
            self._shown.add(line)
        self._shown = {each for each in self._shown if each.partition(" ")[0] >= self._last}
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
        try:
            pod = first_pod(_pods(self._cluster, jobs[0]))
            if pod is not None and (self._tail is None or self._tail.pod != pod):
                self._tail, self._told = LogTail(self._cluster, pod), False
            for line in self._tail.fresh() if self._tail else ():
                self._write(line)
        except (ApiException, ExplainedError) as error:
            if not self._told:
                words = message_of(error) if isinstance(error, ApiException) else error.problem
                self._say(f"the output is not available: {words}")
            self._told = True


def _pods(cluster: TeamCluster, job: JobState) -> list[KubeObject]:
    return pods_of(job.kind, job.name, job.uid, cluster.list(POD, f"{POD_LABELS[job.kind]}={job.name}"))


def follow(cluster: TeamCluster, work: str, say: Callable[[str], None], write: Callable[[str], None]) -> State:
    """Until all jobs of a workload have ended: `say` is told how they are, `write` is given lines of output. DONE if all are.

    Nothing is changed: whoever stops looking leaves the job as it is. A server that is busy, or out of reach, is asked again for some
    minutes. Raises ExplainedError after them, and for what may not be seen.
    """
    told: dict[str, str] = {}
    output = _Output(cluster, say, write)
    silent_since: float | None = None
    while True:
        try:
            found = job_states(cluster, work)
        except (ApiException, ExplainedError) as error:
            refused = error if isinstance(error, ExplainedError) else explained(error, "the jobs cannot be seen")
            passing = isinstance(error, ExplainedError) or is_passing(error)
            if silent_since is None and passing:
                say(f"{refused.problem.rstrip('.')}; looking again")
            silent_since = silent_since or time.monotonic()
            if not passing or time.monotonic() - silent_since > _PATIENCE_SECONDS:
                raise refused from error
            time.sleep(_POLL_SECONDS)
            continue
        silent_since = None
        if not found:
            say(f"{work} is gone: it was stopped, or its retention time is over")
            return State.FAILED
        for each in found:
            if (words := described(each)) != told.get(each.name):
                told[each.name] = words
                say(words)
        output.show(found)
        if all(each.state in ENDED for each in found):
            return State.DONE if all(each.state is State.DONE for each in found) else State.FAILED
        time.sleep(_POLL_SECONDS)


def described(job: JobState) -> str:
    """One line on a job."""
    pods = f", {job.pods} of {job.of} pods" if job.state in {State.RUNNING, State.STARTING} and job.of > 1 else ""
    return f"{job.name} is {job.state}{pods}{f': {job.why}' if job.why else ''}"
