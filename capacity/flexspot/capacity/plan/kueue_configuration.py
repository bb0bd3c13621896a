"""The configuration of Kueue, used by the chart that installs it on a cloud and by the lab that rehearses with it.

Source of every field: config.kueue.x-k8s.io/v1beta2 of Kueue 0.19.2 (apis/config/v1beta2), which is decoded strictly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flexspot.capacity.catalog.node_labels import TEAM_LABEL

FRAMEWORKS = ("batch/job", "jobset.x-k8s.io/jobset")
"""The kinds of work that queues take: work that is submitted, runs and ends.

Pods, Deployments, StatefulSets and LeaderWorkerSets are off although the chart turns them on. Their webhooks would intercept every pod in
every team's namespace, and those pods could not start while Kueue is down. A service in a queue would never return its quota; its GPUs are
a team's `unqueued` ones. JobSet is for multi-node training; where it is not installed, Kueue waits for it. The kinds of Kubeflow and Ray
are for clusters that have their operators.
"""

NAMESPACE = "kueue-system"


@dataclass(frozen=True)
class PodsReady:
    """Times for which Kueue waits for all pods of a job.

    After a timeout the job loses its quota, waits (60 s, doubled up to half an hour) and is admitted again. After the last requeue its
    Workload is deactivated with the reason RequeuingLimitExceeded. The Job then stays suspended until a person sets the Workload's
    spec.active to true.
    """

    timeout_seconds: int
    """Seconds from the admission until all pods are ready."""
    recovery_seconds: int
    """Seconds from the loss of a running job's pod until all pods are ready again."""
    requeues: int
    """Number of times that the job is admitted again."""


ONE_BOOT = PodsReady(timeout_seconds=45 * 60, recovery_seconds=30 * 60, requeues=10)
"""Times for capacity that arrives within a boot or not at all: about 25 minutes for machine, driver and a large image, with a margin.

A gang that has lost one pod pays for all its other nodes while it waits for a new one, so it gets less time than one without pods. Ten
requeues are about half a day of stock-out.
"""


def kueue_configuration(pods_ready: PodsReady) -> dict[str, Any]:
    """Return the Configuration object. Its addresses are those that the Services of the released chart point to."""
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": NAMESPACE,
        "health": {"healthProbeBindAddress": ":8081"},
        # Without the queues' own metrics it is not visible who borrows what.
        "metrics": {"bindAddress": ":8443", "enableClusterQueueResources": True},
        "webhook": {"port": 9443},
        "leaderElection": {"leaderElect": True, "resourceName": "c1f6bfd2.kueue.x-k8s.io"},
        # Jobs without a queue label are left alone, except that a namespace's queue called `default` takes its own. What Kueue manages
        # without a label, and the pods that it manages, are only in teams' namespaces, never in those of the cluster's own controllers.
        "manageJobsWithoutQueueName": False,
        "managedJobsNamespaceSelector": {"matchExpressions": [{"key": TEAM_LABEL, "operator": "Exists"}]},
        "integrations": {"frameworks": list(FRAMEWORKS)},
        "waitForPodsReady": {
            "timeout": f"{pods_ready.timeout_seconds}s",
            "recoveryTimeout": f"{pods_ready.recovery_seconds}s",
            # One slow job would otherwise hold up the admission of all others.
            "blockAdmission": False,
            "requeuingStrategy": {
                "timestamp": "Eviction",
                "backoffLimitCount": pods_ready.requeues,
                "backoffBaseSeconds": 60,
                "backoffMaxSeconds": 1800,
            },
        },
        # Without this stanza the weights of teams and cohorts have no effect. The first strategy keeps the preempted queue at no less than
        # the preempting one. The second lets a small share take from a large one that the first would not touch, lowest priority first.
        "fairSharing": {"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]},
        # Queues count GPUs, vCPU and memory. Other resources of a pod (ephemeral-storage, vpc.amazonaws.com/efa, hugepages) come with the
        # node. By default Kueue would never admit such a pod, and let it wait forever.
        "resources": {"quotaCheckStrategy": "IgnoreUndeclared"},
        # A deactivated Workload is kept, because deleting it would delete the team's Job with it.
        "objectRetentionPolicies": {"workloads": {"afterFinished": "168h"}},
    }
