"""The arguments of the components whose work runs to an end."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types.
from typing import NotRequired

from components.workloads.workload_args import WorkloadArgs


class JobArgs(WorkloadArgs):
    """Arguments of CheckpointedJob, QueuedJob and FlexStartJob."""

    pods: NotRequired[int | None]
    """Pods that do the work, each with its GPUs, 1 to 2000. Default: 1."""

    at_once: NotRequired[int | None]
    """How many of them run at a time, where they are independent. Default: all."""

    run_seconds: NotRequired[int | None]
    """Seconds after which it is ended, counted from its admission, at least 60. Default, and most: the class's limit."""

    retries: NotRequired[int | None]
    """Real failures of a pod that it survives, 1 to 100; interruptions are none. Default: 3."""

    fatal_exit_codes: NotRequired[list[int] | None]
    """Exit codes of the program that no retry would help, never 143. Default: none."""

    keep_seconds: NotRequired[int | None]
    """Seconds after its end for which the job and its pods' logs are kept. Default: 259200, three days."""

    jobset: NotRequired[bool | None]
    """Whether pods that train together are a JobSet, whose controller the cluster must have. Default: false, a Job and a Service."""

    port: NotRequired[int | None]
    """The port at which pod 0 waits for the others. Default: 29500."""
