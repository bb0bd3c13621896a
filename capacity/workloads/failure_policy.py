"""Which ends of pods a job counts, so that a reclaimed node costs it nothing and a broken program ends it.

Run against kube-controller-manager 1.36.1: without a policy an evicted pod is counted as failed at once, whatever its exit code. With one,
a pod that exits 0 has succeeded, so an interrupted program must not; a pod that exits otherwise is judged by these rules, and Kueue's
preemption counts as neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from capacity.workloads.names import CONTAINER, INTERRUPTED_EXIT_CODE

if TYPE_CHECKING:
    from capacity.workloads.job_request import JobRequest


def pod_failure_policy(request: JobRequest, *, together: bool) -> dict[str, Any]:
    """The rules in their order; the first that matches decides, and what none matches is counted against the retries.

    1. Whatever disrupted the pod (eviction, taint, the scheduler, a node that is gone, the kubelet's shutdown) has set DisruptionTarget.
    2. Exit code 143 without it: a pod that stops because another of its job was interrupted, or that a person deleted. A program that
       always ends so is stopped by the job's deadline alone.
    3. The codes that the author calls fatal end the job, or the one index where the pods are independent.
    """
    rules: list[dict[str, Any]] = [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        {"action": "Ignore", "onExitCodes": _exit_codes(INTERRUPTED_EXIT_CODE)},
    ]
    if request.fatal_exit_codes:
        ends = "FailIndex" if request.pods > 1 and not together else "FailJob"
        rules.append({"action": ends, "onExitCodes": _exit_codes(*request.fatal_exit_codes)})
    return {"rules": rules}


def _exit_codes(*codes: int) -> dict[str, Any]:
    # Of the workload's own container: a cloud's sidecar ends with 143 whenever the pod does.
    return {"containerName": CONTAINER, "operator": "In", "values": sorted(set(codes))}
