"""The labels by which work names its queue, its project and what sort of work it is."""

from __future__ import annotations

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
"""The LocalQueue of a job; Kueue leaves jobs without it alone, unless their namespace has a queue called default."""

QUEUE_PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
"""The WorkloadPriorityClass of a job: its place in the queue, whatever the priority of its pods."""

PROJECT_LABEL = "flexspot.dev/project"
WORKLOAD_TYPE_LABEL = "flexspot.dev/workload-type"
"""What sort of work it is, for chargeback: the value of a WorkloadType."""

USER_LABEL = "flexspot.dev/user"
"""Who the work is for, as whoever submits it says: Kubernetes writes who made an object into its audit log alone, and no label has it."""
