"""A training job that resumes where it was interrupted."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types.
import pulumi

from capacity.workloads.jobs import CHECKPOINTED_JOB, checkpointed_job
from capacity.workloads.requests import JobRequest
from components.workloads.declared_objects import declare_objects
from components.workloads.job_args import JobArgs
from components.workloads.workload_args import plan_of, request_of


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
