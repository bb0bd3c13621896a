"""What a person asks for, of each kind of workload, what is wrong with a request, and the names that workloads share with the platform.

The library imports nothing of the platform's: what it defines as well is compared in tests/components/workloads/test_shared_names.py.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeVar

from pydantic import Field, ValidationError, field_validator, model_validator

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.data_files import Record
from flexspot.capacity.catalog.node_labels import USER_LABEL
from flexspot.capacity.catalog.platform import POD_USER
from flexspot.capacity.settings.stack_file import model_at, said, shown
from flexspot.capacity.values.errors import SettingsProblem, nearest
from flexspot.capacity.values.names import (
    CHECKPOINT_FOLDER,
    GPU_MODEL,
    HOME_FOLDER,
    IMAGE,
    METRIC_QUANTITY,
    TIME_OF_DAY,
    URL_PATH,
    VARIABLE,
    LabelValue,
    Name,
    how_it_moves,
)
from flexspot.capacity.workloads.inputs import (
    VISIBLE_DEVICES,
    Amount,
    ConfigMapKey,
    EnvironmentSource,
    MountPath,
    ObjectName,
    OwnVolume,
    ResourceKey,
    SecretKey,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


NAME_LABEL = "app.kubernetes.io/name"
"""The workload's own name, by which services, budgets and people select its pods."""

SERVICE_ACCOUNT = "workloads"
"""In each team's namespace: pods that run as it act as the team in the cloud."""

CHECKPOINT_CLAIM = "checkpoints"
CHECKPOINT_PATH = "/checkpoints"
"""Where the team's folder of the checkpoint bucket is mounted, for reading and writing, in any number of pods."""

DATASET_CLAIM = "datasets"
DATASET_PATH = "/datasets"
"""Where the shared folder of the dataset bucket is mounted, for reading."""

CONTAINER = "main"
"""The workload's own container. Sidecars that a cloud adds have other names, and their exit codes decide nothing."""

GRACE_VARIABLE = "FLEXSPOT_GRACE_SECONDS"
"""From SIGTERM to the kill, preStop taken off; flexspot_runtime reads it."""

CHECKPOINT_VARIABLE = "CHECKPOINT_DIR"
"""The workload's own folder below CHECKPOINT_PATH. The program makes it: a bucket has no folders before it has files."""

GANG_SERVICE = "flexspot-gang"
"""In each team's namespace the headless Service by which pods that train together have names, in a domain of that name."""

GANG_LABEL = "flexspot.dev/gang"
GANG_SELECTOR = {GANG_LABEL: "true"}
"""On the pods that it names."""

INTERRUPTED_EXIT_CODE = 143
"""How flexspot_runtime ends a program that was interrupted: 128 and the number of SIGTERM."""

JOB_VARIABLE = "FLEXSPOT_JOB"
"""Whose checkpoints these are: the team and the workload's own folder. flexspot_runtime refuses those of another job."""

INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
"""Which of a job's pods a pod is, from 0; the Job controller sets it, and a pod that replaces another has the same."""

COMPLETIONS_VARIABLE = "JOB_COMPLETIONS"
"""How many pods the job has, for share_of of flexspot_runtime."""

INDEX_ANNOTATION = "batch.kubernetes.io/job-completion-index"
"""On a Job's pods; the Job controller sets it."""


class WorkloadError(ValueError):
    """A request that cannot be met. `whose` is the kind and name of the workload, `problems` hold input, value, what is allowed."""

    def __init__(self, whose: str, problems: Iterable[SettingsProblem]) -> None:
        self.whose = whose
        self.problems = tuple(problems)
        super().__init__("\n".join([f"{whose}: {len(self.problems)} problem(s)", *(f"  {each}" for each in self.problems)]))


def refuse(whose: str, problems: list[SettingsProblem]) -> None:
    """Raises WorkloadError if there are any problems."""
    if problems:
        raise WorkloadError(whose, problems)


Variable = Annotated[str, Field(pattern=VARIABLE)]

GpuModel = Annotated[str, Field(pattern=GPU_MODEL)]


class WorkloadType(StrEnum):
    """What sort of work it is, as reports group it. It is not the workload class, which says what the work is worth and where it runs.

    TRAINING resumes from checkpoints; BATCH begins anew where it was interrupted; WORKER pulls items from a queue; SERVING answers
    requests; NOTEBOOK is a person's; CACHE keeps model weights near.
    """

    TRAINING = "training"
    BATCH = "batch"
    WORKER = "worker"
    SERVING = "serving"
    NOTEBOOK = "notebook"
    CACHE = "cache"


class WorkloadRequest(Record):
    """A request, complete with what its author wants otherwise than it would be derived.

    `gpus` are of one pod, and so are `cpu` (such as 8 or 500m) and `memory` (such as 32Gi); default: three quarters of what belongs to so
    many GPUs on the smallest machine it may get. `secrets` and `config_maps` are variables whose value is a Secret's or a ConfigMap's,
    `env_from` all that is in one. `volumes` are the team's own, by the path where they are mounted, `image_pull_secrets` the Secrets that
    open its registry. `resources` are further ones of a node, such as ephemeral-storage: both request and limit. `project` and `labels` are
    for reports.
    `capacity` narrows the class's capacity types to those named; default: all that suit. So do `gpu_models`, such as h100 or a100-80gb,
    and `gpu_memory_gb`, the least that one GPU has, in GB as its vendor names it. With `fast_network` pods have their share of their node's
    EFA interfaces, and pools without any are left out; default: so where pods train together and all their pools have them.
    `grace_seconds` shortens the route's.
    `checkpoints` mounts the team's checkpoint folder; default: as the class says, where the platform has buckets. `checkpoint_folder` is
    the part of it that is this workload's; default: its name, so that a job submitted again under the same name resumes. `datasets` mounts
    the shared data sets. `run_as_user` is the user id of the process (at least 1: restricted Pod Security refuses root), 1000 as bucket
    mounts have; its group is theirs, so that another user writes there, too. `writable_root` lets it write into its image; default: /tmp
    alone. `allow_moving_image` accepts an image that is not pinned.
    """

    name: Name
    team: str
    workload_class: str
    image: Annotated[str, Field(pattern=IMAGE)]
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: dict[Variable, str] = Field(default_factory=dict)
    secrets: dict[Variable, SecretKey] = Field(default_factory=dict)
    config_maps: dict[Variable, ConfigMapKey] = Field(default_factory=dict)
    env_from: tuple[EnvironmentSource, ...] = ()
    volumes: dict[MountPath, OwnVolume] = Field(default_factory=dict)
    image_pull_secrets: tuple[ObjectName, ...] = ()
    resources: dict[ResourceKey, Amount] = Field(default_factory=dict)
    gpus: Annotated[int, Field(ge=1)] = 1
    cpu: str | None = None
    memory: str | None = None
    project: LabelValue | None = None
    labels: dict[str, LabelValue] = Field(default_factory=dict)
    capacity: tuple[CapacityType, ...] = ()
    gpu_models: tuple[GpuModel, ...] = ()
    gpu_memory_gb: Annotated[int, Field(ge=1, le=10_000)] | None = None
    fast_network: bool | None = None
    grace_seconds: Annotated[int, Field(ge=1)] | None = None
    checkpoints: bool | None = None
    checkpoint_folder: Annotated[str, Field(pattern=CHECKPOINT_FOLDER)] | None = None
    datasets: bool = False
    run_as_user: Annotated[int, Field(ge=1)] = POD_USER
    writable_root: bool = False
    allow_moving_image: bool = False

    @field_validator("env", "secrets", "config_maps")
    @classmethod
    def _derived_variables_stay(cls, variables: dict[str, Any]) -> dict[str, Any]:
        if GRACE_VARIABLE in variables:
            raise ValueError(f"{GRACE_VARIABLE} is derived from the grace period; set grace_seconds instead")
        if VISIBLE_DEVICES in variables:
            raise ValueError(f"{VISIBLE_DEVICES} shows a container GPUs of others, and the cluster refuses it; leave it out")
        return variables

    @model_validator(mode="after")
    def _each_variable_once(self) -> Self:
        named: dict[str, str] = {}
        for field, given in (("env", self.env), ("secrets", self.secrets), ("config_maps", self.config_maps)):
            if both := sorted(named.keys() & given.keys()):
                raise ValueError(f"{', '.join(both)} is in {named[both[0]]} and in {field}; give it in one of them")
            named |= dict.fromkeys(given, field)
        return self


RequestT = TypeVar("RequestT", bound=Record)


def read_request(kind: str, model: type[RequestT], fields: Mapping[str, Any]) -> RequestT:
    """The fields as a request of `model`; None stands for the default. Raises WorkloadError with every field that is wrong."""
    written = {name: value for name, value in fields.items() if value is not None}
    try:
        return model.model_validate(written)
    except ValidationError as error:
        raise WorkloadError(f"{kind} {written.get('name', '')}".rstrip(), [_problem(model, each) for each in error.errors()]) from error


def image_problems(request: WorkloadRequest) -> list[SettingsProblem]:
    """What is wrong with the image: it would be another one tomorrow."""
    problem = "" if request.allow_moving_image else how_it_moves(request.image)
    if not problem:
        return []
    remedy = "name a release, better a digest (IMAGE@sha256:...), or say allow_moving_image"
    return [SettingsProblem("image", repr(request.image), f"{problem}: a replaced pod may run another program", remedy)]


def label_problems(request: WorkloadRequest) -> list[SettingsProblem]:
    """Labels of the platform's own, which say who pays and where work runs, and keys that Kubernetes refuses.

    For whom the work is nobody but its author knows, so that label is theirs.
    """
    return [
        SettingsProblem(f"labels.{key}", repr(value), *_label_problem(key))
        for key, value in request.labels.items()
        if key != USER_LABEL and (key.startswith(_OURS) or not _LABEL_KEY.fullmatch(key))
    ]


_OURS = ("flexspot.dev/", "kueue.x-k8s.io/", "app.kubernetes.io/")
_LABEL_KEY = re.compile(r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


def _label_problem(key: str) -> tuple[str, str]:
    if key.startswith(_OURS):
        return "is derived from the plan", "set team, project, workload_class or name; other keys are free"
    return "is no key of a label", "write one such as example.com/experiment"


def _problem(model: type[Record], error: Any) -> SettingsProblem:
    location = tuple(step for step in error["loc"] if step != "[key]")
    path = ".".join(map(str, location)) or "(all)"
    if error["type"] == "extra_forbidden":
        known = sorted(model_at(model, location[:-1]).model_fields)
        return SettingsProblem(path, "", "is not an input", nearest(str(location[-1]), known))
    if error["type"] == "missing":
        return SettingsProblem(path, "", "is missing", "give it")
    return SettingsProblem(path, shown(error["input"]) if location else "", *said(error))


THREE_DAYS = 3 * 24 * 3600

_MOST_PODS = 2000
"""Fewer than Kubernetes allows: the pods of one job are one decision of the queue, and one ProvisioningRequest."""

ExitCode = Annotated[int, Field(ge=1, le=255)]


class Launcher(StrEnum):
    """What starts the program. All of them are started by flexspot_runtime.launch, which the image has: it passes a warning on, gives the
    program the pod's whole grace period, and ends with 143 where it was interrupted.

    RANKS is a process for each GPU with RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as Hugging Face's Trainer, Lightning,
    accelerate and torch.distributed read them. TORCHRUN is torchrun with the job's pods as its nodes, for programs that ask for it. JAX is
    one process for each pod, which has all of its GPUs, with JAX_COORDINATOR_ADDRESS beside NNODES and NODE_RANK. RAY is one Ray cluster of
    the pods, in which the first runs the program; MASTER_PORT is Ray's, and the one above it the pods' own.
    """

    RANKS = "ranks"
    TORCHRUN = "torchrun"
    JAX = "jax"
    RAY = "ray"


class JobRequest(WorkloadRequest):
    """A request for a job.

    `gpus: 0` is work without GPUs, in the team's queue of such machines; `cpu` and `memory` are then 1 and 4Gi where nobody says more.
    `pods` is how many do the work, each with `gpus`. `at_once` lets so many of them run at a time, where they do not train together, and
    makes them one Job; default: each is a Job of its own, and the queue says how many run. `run_seconds` ends the job; default, and most:
    the class's limit. `retries` is how many real failures of a pod it survives (1 to 100), interruptions not counted. `fatal_exit_codes` of
    the program end the job at once. The finished job is deleted after `keep_seconds`, its pods' logs with it. `jobset` makes several pods a
    JobSet, which restarts all of them after a real failure of one; the cluster must have JobSet's controller. `port` is where pod 0 waits
    for the others (MASTER_PORT). `launcher` starts `command` on all GPUs of the pods: see Launcher. Default: the command is the whole one.
    """

    gpus: Annotated[int, Field(ge=0)] = 1
    pods: Annotated[int, Field(ge=1, le=_MOST_PODS)] = 1
    at_once: Annotated[int, Field(ge=1)] | None = None
    run_seconds: Annotated[int, Field(ge=60)] | None = None
    retries: Annotated[int, Field(ge=1, le=100)] = 3
    fatal_exit_codes: tuple[ExitCode, ...] = ()
    keep_seconds: Annotated[int, Field(ge=0)] = THREE_DAYS
    jobset: bool = False
    port: Annotated[int, Field(ge=1024, le=65_535)] = 29_500
    launcher: Launcher | None = None

    @field_validator("fatal_exit_codes")
    @classmethod
    def _an_interruption_is_never_fatal(cls, codes: tuple[int, ...]) -> tuple[int, ...]:
        if INTERRUPTED_EXIT_CODE in codes:
            raise ValueError(
                f"{INTERRUPTED_EXIT_CODE} is how an interrupted program ends; leave it out, or the first reclaimed node ends it"
            )
        return codes


Path = Annotated[str, Field(pattern=URL_PATH)]


class ModelServerRequest(WorkloadRequest):
    """A request for a model server.

    `replicas` are always there; with `max_replicas` above it a HorizontalPodAutoscaler adds more, by `cpu_percent` of the cpu that a pod
    asks for, or by the average of `metric` (a metric of the pods, which an adapter must serve) against `metric_target`. `port` speaks HTTP;
    `ready_path` with 200 once the model is loaded, `live_path` (default: the same) as long as the process is well. `start_seconds` is the
    longest that loading may take. `drain_seconds` is how long an ending pod goes on serving while the endpoints forget it. `callers` are
    namespaces beside the team's own that may call it. `model_cache` is the claim of a ModelCache of the team, mounted at `model_path`;
    `model_cache_gib` the size of its cache on the node.
    """

    replicas: Annotated[int, Field(ge=1, le=1000)] = 2
    max_replicas: Annotated[int, Field(ge=1, le=1000)] | None = None
    cpu_percent: Annotated[int, Field(ge=1, le=100)] = 70
    metric: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    metric_target: Annotated[str, Field(pattern=METRIC_QUANTITY)] | None = None
    port: Annotated[int, Field(ge=1024, le=65_535)] = 8000
    ready_path: Path = "/health"
    live_path: Path | None = None
    start_seconds: Annotated[int, Field(ge=10, le=7200)] = 900
    drain_seconds: Annotated[int, Field(ge=0)] = 10
    callers: tuple[Name, ...] = ()
    model_cache: Name | None = None
    model_cache_gib: Annotated[int, Field(ge=0, le=10_000)] = 0
    model_path: Path = "/models"

    @model_validator(mode="after")
    def _scaling_makes_sense(self) -> Self:
        if self.max_replicas is not None and self.max_replicas < self.replicas:
            raise ValueError(f"max_replicas is {self.max_replicas} and replicas {self.replicas}; give at least as many, or leave it out")
        if (self.metric is None) is not (self.metric_target is None):
            raise ValueError("metric and metric_target belong together; give both, or neither for the cpu")
        return self


class NotebookRequest(WorkloadRequest):
    """A request for a Jupyter notebook of one person. `command` starts the server; default: jupyter lab, as images of Jupyter have it.

    It ends after `idle_seconds` without work, and every night at `nightly_stop` (UTC). `home_gib` is the disk mounted at `home`, of
    `storage_class` (default: the cluster's own default class), which stays. The token by which the browser is let in is the key token of
    the Secret `token_secret` (default: the name and -token), which must be there. The image has Python 3, as every image of Jupyter has.
    """

    idle_seconds: Annotated[int, Field(ge=300, le=86_400)] = 3600
    nightly_stop: Annotated[str, Field(pattern=TIME_OF_DAY)] = "20:00"
    home: Annotated[str, Field(pattern=HOME_FOLDER)] = "/home/jovyan"
    home_gib: Annotated[int, Field(ge=1, le=16_384)] = 50
    storage_class: Name | None = None
    token_secret: Name | None = None


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
