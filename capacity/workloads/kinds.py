"""The kinds of workload, by the names under which people ask for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from capacity.values.errors import SettingsProblem, nearest
from capacity.workloads.jobs import (
    CHECKPOINTED_JOB,
    FLEX_START_JOB,
    QUEUED_JOB,
    checkpointed_job,
    flex_start_job,
    queued_job,
)
from capacity.workloads.model_cache import MODEL_CACHE, ModelCacheRequest, model_cache
from capacity.workloads.model_server import MODEL_SERVER, model_server
from capacity.workloads.notebook import NOTEBOOK, notebook
from capacity.workloads.requests import JobRequest, ModelServerRequest, NotebookRequest, QueueWorkersRequest, WorkloadError, read_request
from capacity.workloads.workers import QUEUE_WORKERS, queue_workers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from capacity.catalog.data_files import Record
    from capacity.plan.model import Plan
    from capacity.workloads.pods import KubeObject


@dataclass(frozen=True)
class WorkloadKind:
    """One kind. `name` is what people write, `component` what the Pulumi component is called; `build` takes a plan and a `model`.

    `shown` is what a template shows where its user has said nothing.
    """

    name: str
    component: str
    summary: str
    model: type[Record]
    build: Callable[[Plan, Any], tuple[KubeObject, ...]]
    shown: Mapping[str, Any]


_SERVICE = {"name": "my-service", "image": "registry.example.com/team/service:1.0"}
_PROGRAM = {"name": "my-job", "image": "registry.example.com/team/program:1.0", "command": ["python", "-m", "program"]}

_ALL = (
    WorkloadKind(
        "checkpointed-job", CHECKPOINTED_JOB, "training that resumes; several pods train together", JobRequest, checkpointed_job, _PROGRAM
    ),
    WorkloadKind("queued-job", QUEUED_JOB, "a batch; several pods share the work by index", JobRequest, queued_job, _PROGRAM),
    WorkloadKind("flex-start-job", FLEX_START_JOB, "a job on DWS capacity (GKE)", JobRequest, flex_start_job, _PROGRAM),
    WorkloadKind("queue-workers", QUEUE_WORKERS, "workers on a Pub/Sub or SQS queue", QueueWorkersRequest, queue_workers, _PROGRAM),
    WorkloadKind("model-server", MODEL_SERVER, "a model that answers requests", ModelServerRequest, model_server, _SERVICE),
    WorkloadKind("notebook", NOTEBOOK, "a Jupyter notebook that ends when nobody works in it", NotebookRequest, notebook, _SERVICE),
    WorkloadKind(
        "model-cache",
        MODEL_CACHE,
        "model weights of a bucket, kept on the nodes' disks",
        ModelCacheRequest,
        model_cache,
        {"name": "my-models", "bucket": "my-bucket"},
    ),
)

KINDS: dict[str, WorkloadKind] = {each.name: each for each in _ALL}
"""Every kind, by name."""


def kind_named(name: str) -> WorkloadKind:
    """The kind of that name. Raises WorkloadError, which names the nearest, for one that there is none of."""
    if name not in KINDS:
        raise WorkloadError(name, [SettingsProblem("kind", repr(name), "is no kind of workload", nearest(name, KINDS))])
    return KINDS[name]


def objects_of(plan: Plan, kind: str, fields: Mapping[str, Any]) -> tuple[KubeObject, ...]:
    """The objects of a workload, in the order in which they are made; None in `fields` stands for a default.

    Raises WorkloadError with all that is wrong.
    """
    found = kind_named(kind)
    return found.build(plan, read_request(found.component, found.model, fields))
