"""A batch that waits in the team's queue."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types.
import pulumi

from capacity.workloads.jobs import QUEUED_JOB, queued_job
from capacity.workloads.requests import JobRequest
from components.workloads.declared_objects import declare_objects
from components.workloads.job_args import JobArgs
from components.workloads.workload_args import plan_of, request_of


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
