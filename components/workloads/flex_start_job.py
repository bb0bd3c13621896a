"""A job on capacity of Google's Dynamic Workload Scheduler."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types.
import pulumi

from capacity.workloads.jobs import FLEX_START_JOB, flex_start_job
from capacity.workloads.requests import JobRequest
from components.workloads.declared_objects import declare_objects
from components.workloads.job_args import JobArgs
from components.workloads.workload_args import plan_of, request_of


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
