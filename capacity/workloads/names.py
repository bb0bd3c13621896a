"""The names that workloads share with the rest of the platform, and with the library inside their containers.

The library imports nothing of the platform's: what it defines as well is compared in tests/components/workloads/test_shared_names.py.
"""

from __future__ import annotations

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
"""The LocalQueue of a job; Kueue leaves jobs without it alone, unless their namespace has a queue called default."""

QUEUE_PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
"""The WorkloadPriorityClass of a job: its place in the queue, whatever the priority of its pods."""

PROJECT_LABEL = "flexspot.dev/project"
WORKLOAD_TYPE_LABEL = "flexspot.dev/workload-type"
"""What sort of work it is, for chargeback: the value of a WorkloadType."""

NAME_LABEL = "app.kubernetes.io/name"
"""The workload's own name, by which services, budgets and people select its pods."""

SERVICE_ACCOUNT = "workloads"
"""In each team's namespace: pods that run as it act as the team in the cloud."""

CHECKPOINT_CLAIM = "checkpoints"
CHECKPOINT_PATH = "/checkpoints"
"""Where the team's folder of the checkpoint bucket is mounted, for reading and writing, in any number of pods."""

DATASET_CLAIM = "datasets"
DATASET_PATH = "/datasets"
"""Where the shared folder of the dataset bucket is mounted, for reading."""

MOVING_TAGS = ("latest", "main", "master", "nightly", "dev", "edge", "stable")
"""Tags of images that somebody moves: the pod that replaces an interrupted one might run another program."""

CONTAINER = "main"
"""The workload's own container. Sidecars that a cloud adds have other names, and their exit codes decide nothing."""

GRACE_VARIABLE = "FLEXSPOT_GRACE_SECONDS"
"""From SIGTERM to the kill, preStop taken off; flexspot_runtime reads it."""

CHECKPOINT_VARIABLE = "CHECKPOINT_DIR"
"""The workload's own folder below CHECKPOINT_PATH. The program makes it: a bucket has no folders before it has files."""

GANG_SERVICE = "flexspot-gang"
"""In each team's namespace the headless Service by which pods that train together have names, in a domain of that name."""

GANG_LABEL = "flexspot.dev/gang"
GANG_SELECTOR = {GANG_LABEL: "true"}
"""On the pods that it names."""

INTERRUPTED_EXIT_CODE = 143
"""How flexspot_runtime ends a program that was interrupted: 128 and the number of SIGTERM."""

INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
"""Which of a job's pods a pod is, from 0; the Job controller sets it, and a pod that replaces another has the same."""

COMPLETIONS_VARIABLE = "JOB_COMPLETIONS"
"""How many pods the job has, for share_of of flexspot_runtime."""

INDEX_ANNOTATION = "batch.kubernetes.io/job-completion-index"
"""On a Job's pods; the Job controller sets it."""
