"""The configuration of Kueue, written once: for the chart that installs it on a cloud, and for the lab that rehearses with it.

Source of every field: config.kueue.x-k8s.io/v1beta2 of Kueue 0.19.0 (apis/config/v1beta2), which is decoded strictly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flexspot.capacity.catalog.node_labels import TEAM_LABEL

FRAMEWORKS = ("batch/job", "jobset.x-k8s.io/jobset")
"""The kinds of work that queues take: what is submitted, runs, and ends.

Pods, Deployments, StatefulSets and LeaderWorkerSets are off although the chart turns them on: their webhooks stand before every pod of
every team's namespace, whose pods then cannot start while Kueue is away, and a service in a queue would never give its quota back (its
GPUs are a team's `unqueued` ones). JobSet is what multi-node training is made of; where it is not installed, Kueue waits for it. Those of
Kubeflow and Ray are for clusters that have their operators.
"""

NAMESPACE = "kueue-system"


@dataclass(frozen=True)
class PodsReady:
    """How long Kueue waits for all pods of a job, in seconds, and how often it tries again.

    `timeout_seconds` begins with the admission, `recovery_seconds` when a pod of a running job is lost. After either the job loses its
    quota, waits (60 s, doubled up to half an hour) and is admitted anew, `requeues` times. Then its Workload is deactivated with the reason
    RequeuingLimitExceeded and the Job stays suspended until somebody sets the Workload's spec.active to true.
    """

    timeout_seconds: int
    recovery_seconds: int
    requeues: int


ONE_BOOT = PodsReady(timeout_seconds=45 * 60, recovery_seconds=30 * 60, requeues=10)
"""For capacity that comes within a boot or not at all: some 25 minutes for machine, driver and a large image, with room.

A gang that has lost one pod pays for all its other nodes while it waits for a new one: it has less time than one that has none yet.
Ten requeues are about half a day of stock-out.
"""


def kueue_configuration(pods_ready: PodsReady) -> dict[str, Any]:
    """The Configuration object. Addresses are those that the released chart's Services lead to."""
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": NAMESPACE,
        "health": {"healthProbeBindAddress": ":8081"},
        # Without the queues' own metrics nobody sees who borrows what.
        "metrics": {"bindAddress": ":8443", "enableClusterQueueResources": True},
        "webhook": {"port": 9443},
        "leaderElection": {"leaderElect": True, "resourceName": "c1f6bfd2.kueue.x-k8s.io"},
        # Jobs without a queue's label are left alone, except that a namespace's queue called `default` takes its own. What Kueue manages
        # without a label, or of pods with one, is in teams' namespaces alone, never in those of the cluster's own controllers.
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
        # Without this stanza the weights of teams and cohorts do nothing. The first strategy keeps the one who is preempted at no less than
        # the one who preempts; the second lets a small share take from a large one that the first would not touch, lowest priority first.
        "fairSharing": {"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]},
        # Queues count GPUs, vCPU and memory. What else a pod asks for (ephemeral-storage, vpc.amazonaws.com/efa, hugepages) comes with the
        # node; by default Kueue would never admit such a pod, and let it wait for ever.
        "resources": {"quotaCheckStrategy": "IgnoreUndeclared"},
        # A deactivated Workload is kept: to delete it would delete the team's Job with it.
        "objectRetentionPolicies": {"workloads": {"afterFinished": "168h"}},
    }
