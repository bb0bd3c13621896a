"""The kinds of workload, and their objects as YAML: for kubectl, or as a template with comments on what to fill in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from flexspot.capacity.values.errors import SettingsProblem, nearest
from flexspot.capacity.workloads.jobs import CHECKPOINTED_JOB, FLEX_START_JOB, QUEUED_JOB, checkpointed_job, flex_start_job, queued_job
from flexspot.capacity.workloads.models import MODEL_CACHE, MODEL_SERVER, ModelCacheRequest, model_cache, model_server
from flexspot.capacity.workloads.notebook import NOTEBOOK, notebook
from flexspot.capacity.workloads.requests import (
    JobRequest,
    ModelServerRequest,
    NotebookRequest,
    QueueWorkersRequest,
    WorkloadError,
    read_request,
)
from flexspot.capacity.workloads.workers import QUEUE_WORKERS, queue_workers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from flexspot.capacity.catalog.data_files import Record
    from flexspot.capacity.plan.model import Plan
    from flexspot.capacity.workloads.pods import KubeObject


@dataclass(frozen=True)
class WorkloadKind:
    """One kind of workload."""

    name: str
    """Name that users write."""
    component: str
    """Name of the Pulumi component."""
    summary: str
    model: type[Record]
    build: Callable[[Plan, Any], tuple[KubeObject, ...]]
    """Returns the objects for a plan and an instance of `model`."""
    shown: Mapping[str, Any]
    """Fields that a template shows where its user has not set them."""


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
    WorkloadKind("notebook", NOTEBOOK, "a Jupyter notebook that ends when it is idle", NotebookRequest, notebook, _SERVICE),
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
"""All kinds, by name."""


def kind_named(name: str) -> WorkloadKind:
    """Return the kind with this name. Raises WorkloadError, with the nearest name, for an unknown one."""
    if name not in KINDS:
        raise WorkloadError(name, [SettingsProblem("kind", repr(name), "is not a kind of workload", nearest(name, KINDS))])
    return KINDS[name]


def objects_of(plan: Plan, kind: str, fields: Mapping[str, Any]) -> tuple[KubeObject, ...]:
    """Return the objects of a workload in the order of their creation. None in `fields` stands for a default.

    Raises WorkloadError with all problems.
    """
    found = kind_named(kind)
    return found.build(plan, read_request(found.component, found.model, fields))


FILL_IN = "FILL IN"

_YOURS = {
    "name": "the name, here and in the lines that repeat it; a job submitted again under it resumes",
    "image": "your image, with the tag of a release or a digest",
    "command": "your program",
    "args": "its arguments",
}

_DERIVED = {
    "labels": "owner and kind; reports, quotas and admission use these",
    "annotations": "for the scheduler and the cloud",
    "suspend": "the queue starts a job; a person starts a session from its pattern",
    "parallelism": "all pods that train together at once",
    "backoffLimit": "real failures; interruptions are not counted",
    "maxFailedIndexes": "the first pod that fails for good ends all of them",
    "backoffLimitPerIndex": "real failures of each pod; interruptions are not counted",
    "successPolicy": "the first pod runs the program for all; its end is the job's end",
    "podFailurePolicy": "drains, reclaimed nodes and exit code 143 are no failures",
    "podReplacementPolicy": "no new pod before the old one is gone",
    "activeDeadlineSeconds": "the class's limit, counted from each admission; yours may be shorter",
    "ttlSecondsAfterFinished": "time until the finished job and its logs are deleted",
    "priorityClassName": "priority of the class",
    "affinity": "pools of the class that can hold such a pod and in which the team has a share",
    "nodeSelector": "the capacity of the class",
    "tolerations": "the taints of these pools",
    "serviceAccountName": "the team's identity in the cloud",
    "terminationGracePeriodSeconds": "at most what the capacity allows",
    "securityContext": "restricted Pod Security",
    "env": "FLEXSPOT_GRACE_SECONDS agrees with the grace period; add your own below",
    "resources": "per pod: the requested GPUs and their share of the smallest machine; more than a node has would wait forever",
    "volumes": "as the class needs; a claim must exist before the pods",
}


class _Dumper(yaml.SafeDumper):
    """Writes a part that occurs several times in full each time: kubectl's users want to change a single one."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 -- the base class's signature
        return True


def manifests_yaml(objects: Sequence[KubeObject]) -> str:
    """Return the objects as documents of one YAML file."""
    return "---\n".join(_yaml(each) for each in objects)


def template_yaml(objects: Sequence[KubeObject]) -> str:
    """Return the same with comments above the first occurrence of each field that the user fills in or that is derived, in each object."""
    return "---\n".join(_commented(_yaml(each)) for each in objects)


def _yaml(each: KubeObject) -> str:
    return yaml.dump(each, Dumper=_Dumper, sort_keys=False, width=140, default_flow_style=False)


def _commented(text: str) -> str:
    comments: dict[int, str] = {}
    said: set[str] = set()
    for line, column, key, depth in _keys(yaml.compose(text, Loader=yaml.SafeLoader), 0):
        # A container's, port's or volume's name is not the workload's.
        hint = _hint(key) if key not in said and (key != "name" or depth == _OF_METADATA) else None
        if hint is not None:
            said.add(key)
            comments[line] = f"{' ' * column}# {hint}\n"
    return "".join(comments.get(number, "") + line for number, line in enumerate(text.splitlines(keepends=True)))


_OF_METADATA = 1


def _hint(key: str) -> str | None:
    if key in _YOURS:
        return f"{FILL_IN}: {_YOURS[key]}."
    return f"Derived: {_DERIVED[key]}." if key in _DERIVED else None


def _keys(node: yaml.Node | None, depth: int) -> Iterator[tuple[int, int, str, int]]:
    """Yield line, column, key and depth of every field, in the order of the text."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield key.start_mark.line, key.start_mark.column, str(key.value), depth
            yield from _keys(value, depth + 1)
    elif isinstance(node, yaml.SequenceNode):
        for each in node.value:
            yield from _keys(each, depth + 1)
