"""A gang as a JobSet: after a real failure of one pod all are started anew, once, instead of each for itself.

Fields: jobset.x-k8s.io/v1alpha2 of JobSet 0.12. Kueue takes JobSets where their controller is installed; the platform does not install it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.workloads.gang import JOBSET_GROUP

if TYPE_CHECKING:
    from capacity.workloads.job_request import JobRequest
    from capacity.workloads.pods import KubeObject

_BY_THE_SET = ("suspend", "ttlSecondsAfterFinished")
"""Fields of a Job that the JobSet has itself."""

_AT_ONCE = {"backoffLimitPerIndex": 0, "maxFailedIndexes": 0}
"""The first counted failure ends the Job of a set. By index, so that interruptions of other pods do not delay a new one."""


def jobset_of(job: KubeObject, request: JobRequest) -> KubeObject:
    """The JobSet of the Job of several pods: the first counted failure ends it, and the set makes it anew, `retries` times.

    Not after its deadline, nor after a fatal exit code: it would end the same way again.
    """
    spec = {name: value for name, value in job["spec"].items() if name not in _BY_THE_SET}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": job["metadata"],
        "spec": {
            "suspend": job["spec"]["suspend"],
            "ttlSecondsAfterFinished": request.keep_seconds,
            "network": {"enableDNSHostnames": True, "subdomain": request.name, "publishNotReadyAddresses": True},
            "failurePolicy": {
                "maxRestarts": request.retries,
                "rules": [
                    {
                        "name": "endsForGood",
                        "action": "FailJobSet",
                        "onJobFailureReasons": ["DeadlineExceeded", "PodFailurePolicy"],
                    }
                ],
            },
            "replicatedJobs": [{"name": JOBSET_GROUP, "replicas": 1, "template": {"spec": {**spec, **_AT_ONCE}}}],
        },
    }
