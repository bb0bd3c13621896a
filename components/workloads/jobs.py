"""Work that runs to an end: a batch in the team's queue, training that resumes, a job on DWS capacity."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
from typing import NotRequired

import pulumi

from capacity.workloads.jobs import CHECKPOINTED_JOB, FLEX_START_JOB, QUEUED_JOB, checkpointed_job, flex_start_job, queued_job
from capacity.workloads.requests import JobRequest
from components.workloads.declared_objects import declare_objects
from components.workloads.workload_args import WorkloadArgs, plan_of, request_of


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


class CheckpointedJob(pulumi.ComponentResource):
    """One pod, or several that train together: all of them at once, or none.

    Reclaimed nodes, drains and preemption cost it no retry, real failures do. It waits in the team's queue, runs on the capacity of its
    class that can hold it, and finds the team's checkpoints at CHECKPOINT_DIR. A program that was interrupted must end with 143.

    Raises WorkloadError, before anything is registered, for a class that keeps no checkpoints, what the team has no share of, and what
    would wait for ever.
    """

    namespace: pulumi.Output[str]
    """The team's namespace, in which the job is."""

    job: pulumi.Output[str]
    """The name of the Job or JobSet, known once it exists."""

    def __init__(self, name: str, args: JobArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        objects = checkpointed_job(plan_of(args), request_of(CHECKPOINTED_JOB, JobRequest, args))
        super().__init__("flexspot:index:CheckpointedJob", name, {**args}, opts)
        *_, declared = declare_objects(name, self, objects)
        self.namespace = pulumi.Output.from_input(str(objects[-1]["metadata"]["namespace"]))
        self.job = declared.urn.apply(lambda _: str(objects[-1]["metadata"]["name"]))
        self.register_outputs({"namespace": self.namespace, "job": self.job})


class FlexStartJob(pulumi.ComponentResource):
    """Capacity that nobody takes back before the job's time is over, of seven days at most; GKE alone has it.

    One pod gets a flex-start node. Several train together and get their nodes all at once, by a ProvisioningRequest of Kueue's.

    Raises WorkloadError, before anything is registered, for a class without such capacity, and for all that CheckpointedJob refuses.
    """

    namespace: pulumi.Output[str]
    """The team's namespace, in which the job is."""

    job: pulumi.Output[str]
    """The name of the Job or JobSet, known once it exists."""

    def __init__(self, name: str, args: JobArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        objects = flex_start_job(plan_of(args), request_of(FLEX_START_JOB, JobRequest, args))
        super().__init__("flexspot:index:FlexStartJob", name, {**args}, opts)
        *_, declared = declare_objects(name, self, objects)
        self.namespace = pulumi.Output.from_input(str(objects[-1]["metadata"]["namespace"]))
        self.job = declared.urn.apply(lambda _: str(objects[-1]["metadata"]["name"]))
        self.register_outputs({"namespace": self.namespace, "job": self.job})


class QueuedJob(pulumi.ComponentResource):
    """One pod, or several that share the work by JOB_COMPLETION_INDEX and are retried each for itself.

    As CheckpointedJob it survives interruption; without checkpoints an interrupted pod begins its part anew.

    Raises WorkloadError, before anything is registered, for what the team has no share of, and what would wait for ever.
    """

    namespace: pulumi.Output[str]
    """The team's namespace, in which the job is."""

    job: pulumi.Output[str]
    """The name of the Job or JobSet, known once it exists."""

    def __init__(self, name: str, args: JobArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        objects = queued_job(plan_of(args), request_of(QUEUED_JOB, JobRequest, args))
        super().__init__("flexspot:index:QueuedJob", name, {**args}, opts)
        *_, declared = declare_objects(name, self, objects)
        self.namespace = pulumi.Output.from_input(str(objects[-1]["metadata"]["namespace"]))
        self.job = declared.urn.apply(lambda _: str(objects[-1]["metadata"]["name"]))
        self.register_outputs({"namespace": self.namespace, "job": self.job})
