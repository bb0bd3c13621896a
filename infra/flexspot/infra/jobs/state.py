"""States of a team's jobs, derived from objects of Kubernetes and Kueue."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from flexspot.capacity.catalog.accelerators import RESOURCES
from flexspot.capacity.catalog.node_labels import CLASS_LABEL
from flexspot.capacity.workloads.requests import NAME_LABEL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flexspot.capacity.workloads.pods import KubeObject


class State(StrEnum):
    """State of a job."""

    WAITING = "waiting"
    """It has no quota."""
    STARTING = "starting"
    """It has quota and waits for nodes and images."""
    RUNNING = "running"
    STOPPING = "stopping"
    """It was suspended, for example by a job of higher priority, and its pods are ending."""
    DONE = "done"
    FAILED = "failed"


POD_LABELS = {"Job": "batch.kubernetes.io/job-name", "JobSet": "jobset.sigs.k8s.io/jobset-name"}
"""Labels of pods with the name of their job, by its kind."""

ENDED = (State.DONE, State.FAILED)


@dataclass(frozen=True)
class JobState:
    """One Job or JobSet."""

    name: str
    work: str
    """Name of the workload it belongs to. The Jobs of a batch share it."""
    kind: str
    workload_class: str
    state: State
    why: str
    """Reason why it is not running, in the words of Kueue or Kubernetes."""
    pods: int
    """Number of ready pods."""
    of: int
    """Number of pods that it has at once."""
    gpus: int
    """Number of devices of any kind."""
    created: str
    uid: str
    grace_seconds: int
    """The longest grace period of its pods."""


def states(jobs: Iterable[KubeObject], workloads: Iterable[KubeObject], pods: Iterable[KubeObject] = ()) -> list[JobState]:
    """Return the state of each Job and JobSet, the oldest first. Jobs that a JobSet created are part of that set."""
    by_owner = {owner["uid"]: each for each in workloads for owner in each["metadata"].get("ownerReferences", [])}
    own = [each for each in jobs if not _is_owned_by_job_set(each)]
    seen = list(pods)
    return [_state(each, by_owner.get(each["metadata"]["uid"]), seen) for each in sorted(own, key=_created)]


def _is_owned_by_job_set(job: KubeObject) -> bool:
    return any(each["kind"] == "JobSet" for each in job["metadata"].get("ownerReferences", []))


def _created(each: KubeObject) -> str:
    return f"{each['metadata'].get('creationTimestamp', '')} {each['metadata']['name']}"


@dataclass(frozen=True)
class _PodGroup:
    """Pods with the same template: those of a Job or of one replicated job of a JobSet."""

    pods: int
    spec: KubeObject

    @property
    def gpus(self) -> int:
        limits = [each.get("resources", {}).get("limits", {}) for each in self.spec["containers"]]
        return self.pods * sum(int(each.get(resource, 0)) for each in limits for resource in RESOURCES)


def _parts(job: KubeObject) -> Iterator[_PodGroup]:
    """Yield the pod groups of a Job or JobSet. A set without jobs has none."""
    sets = [(each.get("replicas", 1), each["template"]["spec"]) for each in job["spec"].get("replicatedJobs") or ()]
    for replicas, spec in sets if job["kind"] == "JobSet" else [(1, job["spec"])]:
        at_once = spec.get("parallelism", 1)
        yield _PodGroup(replicas * min(at_once, spec.get("completions") or at_once), spec["template"]["spec"])


def _state(job: KubeObject, workload: KubeObject | None, pods: list[KubeObject]) -> JobState:
    labels, parts = job["metadata"].get("labels", {}), list(_parts(job))
    of, own = sum(each.pods for each in parts), pods_of(job["kind"], job["metadata"]["name"], job["metadata"]["uid"], pods)
    ready = sum(_condition(each, "Ready") is not None for each in own) if job["kind"] == "JobSet" else job.get("status", {}).get("ready", 0)
    state, why = _state_and_reason(job, workload, own, ready=ready, of=of)
    return JobState(
        name=job["metadata"]["name"],
        work=labels.get(NAME_LABEL, job["metadata"]["name"]),
        kind=job["kind"],
        workload_class=labels.get(CLASS_LABEL, ""),
        state=state,
        why=why,
        pods=ready,
        of=of,
        gpus=sum(each.gpus for each in parts),
        created=job["metadata"].get("creationTimestamp", ""),
        uid=job["metadata"]["uid"],
        grace_seconds=max((each.spec.get("terminationGracePeriodSeconds", _GRACE_SECONDS) for each in parts), default=_GRACE_SECONDS),
    )


_GRACE_SECONDS = 30
"""Kubernetes' default grace period."""


def pods_of(kind: str, name: str, uid: str, pods: Iterable[KubeObject]) -> list[KubeObject]:
    """Return the pods of a Job or JobSet, without those of an earlier Job of the same name, which may still be ending."""
    named = [each for each in pods if each["metadata"].get("labels", {}).get(POD_LABELS[kind]) == name]
    owners = [{owner["uid"] for owner in each["metadata"].get("ownerReferences", [])} for each in named]
    return [each for each, of in zip(named, owners, strict=True) if kind == "JobSet" or not of or uid in of]


def _state_and_reason(job: KubeObject, workload: KubeObject | None, pods: list[KubeObject], *, ready: int, of: int) -> tuple[State, str]:
    for name, state in (("Complete", State.DONE), ("Completed", State.DONE), ("Failed", State.FAILED)):
        if found := _condition(job, name):
            return state, "" if state is State.DONE else _reason_and_message(found)
    if job["spec"].get("suspend"):
        return (State.STOPPING, _evicted(workload)) if _has_pods(job) else (State.WAITING, _waiting(workload))
    if ready and ready >= of:
        return State.RUNNING, ""
    return (State.RUNNING if ready else State.STARTING), next(filter(None, map(_why_pending, pods)), "its pods are being created")


def _has_pods(job: KubeObject) -> bool:
    """Return whether a job has pods that have not ended. Terminating pods are not among a Job's active ones."""
    status = job.get("status", {})
    statuses = [status, *status.get("replicatedJobsStatus", [])]
    return any(each.get("active") or each.get("terminating") for each in statuses)


def _waiting(workload: KubeObject | None) -> str:
    if workload is None:
        return "Kueue has not processed it yet"
    if workload["spec"].get("active") is False:
        return f"Kueue gave up on it: {_evicted(workload)}; stop it and run it again"
    quota = _any_condition(workload, "QuotaReserved")
    if quota is not None and quota["status"] == "False" and quota.get("message"):
        return str(quota["message"])
    return _checked(workload) or _evicted(workload) or "Kueue has not processed it yet"


def _checked(workload: KubeObject) -> str:
    """Return the message of an admission check that a job with quota still waits for, such as one for DWS nodes."""
    if _condition(workload, "QuotaReserved") is None:
        return ""
    waits = [each for each in workload.get("status", {}).get("admissionChecks") or () if each.get("state") != "Ready"]
    return next((f"{each['name']}: {each.get('message') or each.get('state', '')}" for each in waits), "")


def _evicted(workload: KubeObject | None) -> str:
    found = _any_condition(workload, "Evicted") if workload else None
    return _reason_and_message(found) if found is not None and found["status"] == "True" else ""


def _why_pending(pod: KubeObject) -> str:
    """Return the reason why a pod is pending. Empty if it is not."""
    status = pod.get("status", {})
    if status.get("phase") != "Pending":
        return ""
    scheduled = next((each for each in status.get("conditions", []) if each["type"] == "PodScheduled"), None)
    if scheduled is not None and scheduled["status"] == "False":
        return f"no node yet: {scheduled.get('message', '')}"
    waiting = [each["state"]["waiting"] for each in status.get("containerStatuses", []) if each.get("state", {}).get("waiting")]
    return next((": ".join(filter(None, (each.get("reason"), each.get("message")))) for each in waiting), "")


def _reason_and_message(condition: dict[str, Any]) -> str:
    return ": ".join(filter(None, (str(condition.get("reason", "")), str(condition.get("message", "")))))


def _condition(each: KubeObject, name: str) -> dict[str, Any] | None:
    found = _any_condition(each, name)
    return found if found is not None and found["status"] == "True" else None


def _any_condition(each: KubeObject, name: str) -> dict[str, Any] | None:
    return next((found for found in each.get("status", {}).get("conditions") or [] if found["type"] == name), None)
