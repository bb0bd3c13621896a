"""How a team's jobs are: what a person wants to know of them, out of the objects of Kubernetes and Kueue."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from capacity.catalog.accelerators import RESOURCES
from capacity.catalog.node_labels import CLASS_LABEL
from capacity.workloads.requests import NAME_LABEL

if TYPE_CHECKING:
    from collections.abc import Iterable

    from infra.jobs.access import KubeObject


class State(StrEnum):
    """WAITING has no quota; STARTING has, and waits for nodes and images; STOPPING was told to end, as for one of higher rank."""

    WAITING = "waiting"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    DONE = "done"
    FAILED = "failed"


POD_LABELS = {"Job": "batch.kubernetes.io/job-name", "JobSet": "jobset.sigs.k8s.io/jobset-name"}
"""On pods, whose they are."""

ENDED = (State.DONE, State.FAILED)


@dataclass(frozen=True)
class JobState:
    """One Job or JobSet. `name` is its own, `work` that of the workload it belongs to: several Jobs of a batch have one.

    `why` says why it is not running, in Kueue's or Kubernetes' own words. `pods` are those that are ready, `of` those that it has at once,
    `gpus` devices of whatever kind.
    """

    name: str
    work: str
    kind: str
    workload_class: str
    state: State
    why: str
    pods: int
    of: int
    gpus: int
    created: str


def states(jobs: Iterable[KubeObject], workloads: Iterable[KubeObject], pods: Iterable[KubeObject] = ()) -> list[JobState]:
    """The state of each Job and JobSet, the oldest first. Jobs that a JobSet has made are the set's."""
    by_owner = {owner["uid"]: each for each in workloads for owner in each["metadata"].get("ownerReferences", [])}
    own = [each for each in jobs if not _made_by_a_set(each)]
    seen = list(pods)
    return [_state(each, by_owner.get(each["metadata"]["uid"]), seen) for each in sorted(own, key=_created)]


def _made_by_a_set(job: KubeObject) -> bool:
    return any(each["kind"] == "JobSet" for each in job["metadata"].get("ownerReferences", []))


def _created(each: KubeObject) -> str:
    return f"{each['metadata'].get('creationTimestamp', '')} {each['metadata']['name']}"


def _state(job: KubeObject, workload: KubeObject | None, pods: list[KubeObject]) -> JobState:
    spec, labels = job["spec"], job["metadata"].get("labels", {})
    template = spec if "template" in spec else spec["replicatedJobs"][0]["template"]["spec"]
    of = min(template.get("parallelism", 1), template.get("completions") or template.get("parallelism", 1))
    ready = _ready(job)
    state, why = _how(job, workload, [each for each in pods if _is_of(each, job)], ready=ready, of=of)
    containers = template["template"]["spec"]["containers"]
    limits = [each.get("resources", {}).get("limits", {}) for each in containers]
    gpus = sum(int(each.get(resource, 0)) for each in limits for resource in RESOURCES)
    return JobState(
        name=job["metadata"]["name"],
        work=labels.get(NAME_LABEL, job["metadata"]["name"]),
        kind=job["kind"],
        workload_class=labels.get(CLASS_LABEL, ""),
        state=state,
        why=why,
        pods=ready,
        of=of,
        gpus=gpus * of,
        created=job["metadata"].get("creationTimestamp", ""),
    )


def _ready(job: KubeObject) -> int:
    status = job.get("status", {})
    if job["kind"] == "JobSet":
        return sum(each.get("ready", 0) for each in status.get("replicatedJobsStatus", []))
    return status.get("ready", 0)


def _how(job: KubeObject, workload: KubeObject | None, pods: list[KubeObject], *, ready: int, of: int) -> tuple[State, str]:
    for name, state in (("Complete", State.DONE), ("Completed", State.DONE), ("Failed", State.FAILED)):
        if found := _condition(job, name):
            return state, "" if state is State.DONE else _words(found)
    if job["spec"].get("suspend"):
        if job.get("status", {}).get("active"):
            return State.STOPPING, _evicted(workload)
        return State.WAITING, _waiting(workload)
    if ready and ready >= of:
        return State.RUNNING, ""
    return (State.RUNNING if ready else State.STARTING), next(filter(None, map(_not_started, pods)), "its pods are being made")


def _waiting(workload: KubeObject | None) -> str:
    if workload is None:
        return "Kueue has not looked at it yet"
    if workload["spec"].get("active") is False:
        return f"Kueue has given it up: {_evicted(workload)}; stop it and run it again"
    quota = _any_condition(workload, "QuotaReserved")
    if quota is not None and quota["status"] == "False" and quota.get("message"):
        return str(quota["message"])
    return _evicted(workload) or "Kueue has not looked at it yet"


def _evicted(workload: KubeObject | None) -> str:
    found = _any_condition(workload, "Evicted") if workload else None
    return _words(found) if found is not None and found["status"] == "True" else ""


def _not_started(pod: KubeObject) -> str:
    """Why a pod does not run, empty for one that does."""
    status = pod.get("status", {})
    if status.get("phase") != "Pending":
        return ""
    scheduled = next((each for each in status.get("conditions", []) if each["type"] == "PodScheduled"), None)
    if scheduled is not None and scheduled["status"] == "False":
        return f"no node yet: {scheduled.get('message', '')}"
    waiting = [each["state"]["waiting"] for each in status.get("containerStatuses", []) if each.get("state", {}).get("waiting")]
    return next((": ".join(filter(None, (each.get("reason"), each.get("message")))) for each in waiting), "")


def _is_of(pod: KubeObject, job: KubeObject) -> bool:
    return pod["metadata"].get("labels", {}).get(POD_LABELS[job["kind"]]) == job["metadata"]["name"]


def _words(condition: dict[str, Any]) -> str:
    return ": ".join(filter(None, (str(condition.get("reason", "")), str(condition.get("message", "")))))


def _condition(each: KubeObject, name: str) -> dict[str, Any] | None:
    found = _any_condition(each, name)
    return found if found is not None and found["status"] == "True" else None


def _any_condition(each: KubeObject, name: str) -> dict[str, Any] | None:
    return next((found for found in each.get("status", {}).get("conditions") or [] if found["type"] == name), None)
