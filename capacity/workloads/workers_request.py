"""What a person asks for of workers that pull from a queue."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from capacity.workloads.request import WorkloadRequest


class QueueWorkersRequest(WorkloadRequest):
    """A request for workers on a queue of work items.

    `queue` is a Pub/Sub subscription on GKE, the URL of an SQS queue on EKS. `workers` are the most that run at once; default: one without
    `keda`, and with it as many as the team's GPUs allow. With `keda`, whose operator the cluster must have, there are none while the queue
    is empty, and one more for each `items_per_worker` in it. `lease_seconds` is how long an item is a worker's before another gets it, the
    `lease_seconds` of the team's `work_queue`. `run_seconds` ends a worker in a queue of Kueue's; default: the class's limit.
    """

    queue: Annotated[str, Field(min_length=1, max_length=400)]
    workers: Annotated[int, Field(ge=1, le=1000)] | None = None
    keda: bool = False
    items_per_worker: Annotated[int, Field(ge=1, le=1_000_000)] = 20
    lease_seconds: Annotated[int, Field(ge=1)] = 300
    run_seconds: Annotated[int, Field(ge=60)] | None = None
