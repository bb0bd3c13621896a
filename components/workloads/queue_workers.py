"""Workers that pull from a queue of work items."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types.
from typing import NotRequired

import pulumi

from capacity.workloads.requests import QueueWorkersRequest
from capacity.workloads.workers import QUEUE_WORKERS, queue_workers
from components.workloads.declared_objects import declare_service_objects
from components.workloads.workload_args import WorkloadArgs, plan_of, request_of


class QueueWorkersArgs(WorkloadArgs):
    """Arguments of QueueWorkers."""

    queue: str
    """The queue: a Pub/Sub subscription on GKE, the URL of an SQS queue on EKS, as the stack's outputs have them."""

    workers: NotRequired[int | None]
    """The most that run at once, 1 to 1000. Default: 1; with `keda` as many as the team's GPUs allow."""

    keda: NotRequired[bool | None]
    """Whether KEDA starts them when there is work; the cluster must have its operator. Default: false."""

    items_per_worker: NotRequired[int | None]
    """Items in the queue for each of which KEDA starts one more. Default: 20."""

    lease_seconds: NotRequired[int | None]
    """How long an item is a worker's, 30 seconds over its grace period at least. Default: 300."""

    run_seconds: NotRequired[int | None]
    """Seconds after which a worker in a queue of Kueue's ends. Default: the class's limit."""


class QueueWorkers(pulumi.ComponentResource):
    """Workers on capacity that may go at any time, because the queue remembers what is left to do.

    They find the queue in FLEXSPOT_WORK_QUEUE and their lease in FLEXSPOT_LEASE_SECONDS. A class that waits in a queue of Kueue has them as
    Jobs, one without as a Deployment; with `keda` there are none while the queue of items is empty. KEDA's objects are written from its
    documentation, and no operator has acted on them.

    Raises WorkloadError, before anything is registered, for a queue that the platform's workers cannot pull from, a lease that an
    interrupted worker would outlive, and more workers than the team has GPUs for.
    """

    namespace: pulumi.Output[str]
    """The team's namespace."""

    workload: pulumi.Output[str]
    """Kind and name of what makes the workers, such as ScaledJob/score, known once all of it exists."""

    def __init__(self, name: str, args: QueueWorkersArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        objects = queue_workers(plan_of(args), request_of(QUEUE_WORKERS, QueueWorkersRequest, args))
        super().__init__("flexspot:index:QueueWorkers", name, {**args}, opts)
        *_, last = declare_service_objects(name, self, objects)
        made = f"{objects[-1]['kind']}/{objects[-1]['metadata']['name']}"
        self.namespace = pulumi.Output.from_input(str(objects[-1]["metadata"]["namespace"]))
        self.workload = last.urn.apply(lambda _: made)
        self.register_outputs({"namespace": self.namespace, "workload": self.workload})
