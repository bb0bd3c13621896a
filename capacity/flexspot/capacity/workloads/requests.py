"""Requests for each kind of workload, their problems, and the names that workloads share with the platform.

flexspot_runtime imports nothing of the platform. tests/components/workloads/test_shared_names.py compares the names that both define.
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
from flexspot.capacity.settings.stack_file import model_at, problem_and_remedy, shown
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
    unpinned_reason,
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
"""The workload's own name. Services, budgets and people select its pods by it."""

SERVICE_ACCOUNT = "workloads"
"""Service account in each team's namespace. Pods that run as it act as the team in the cloud."""

CHECKPOINT_CLAIM = "checkpoints"
CHECKPOINT_PATH = "/checkpoints"
"""Mount path of the team's folder of the checkpoint bucket. Any number of pods may read and write it."""

DATASET_CLAIM = "datasets"
DATASET_PATH = "/datasets"
"""Mount path of the dataset bucket's shared folder, read-only."""

CONTAINER = "main"
"""The workload's own container. Sidecars of a cloud have other names, and their exit codes have no effect."""

GRACE_VARIABLE = "FLEXSPOT_GRACE_SECONDS"
"""Seconds from SIGTERM to the kill, without the preStop hook. flexspot_runtime reads it."""

CHECKPOINT_VARIABLE = "CHECKPOINT_DIR"
"""The workload's own folder below CHECKPOINT_PATH. The program creates it: a bucket has no folders before it has files."""

GANG_SERVICE = "flexspot-gang"
"""Headless Service in each team's namespace. Pods that train together have names in a domain of its name."""

GANG_LABEL = "flexspot.dev/gang"
GANG_SELECTOR = {GANG_LABEL: "true"}
"""Label of the pods that the Service selects."""

INTERRUPTED_EXIT_CODE = 143
"""Exit code of an interrupted program under flexspot_runtime: 128 and the number of SIGTERM."""

JOB_VARIABLE = "FLEXSPOT_JOB"
"""Owner of the checkpoints: the team and the workload's own folder. flexspot_runtime rejects checkpoints of another job."""

INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
"""Index of the pod in its job, from 0. The Job controller sets it, and a pod that replaces another has the same index."""

COMPLETIONS_VARIABLE = "JOB_COMPLETIONS"
"""Number of the job's pods, for share_of of flexspot_runtime."""

INDEX_ANNOTATION = "batch.kubernetes.io/job-completion-index"
"""Index of a Job's pod. The Job controller sets it."""


class WorkloadError(ValueError):
    """A request that cannot be met. `workload` is its kind and name. Each of `problems` has the input, its value and a remedy."""

    def __init__(self, workload: str, problems: Iterable[SettingsProblem]) -> None:
        self.workload = workload
        self.problems = tuple(problems)
        super().__init__("\n".join([f"{workload}: {len(self.problems)} problem(s)", *(f"  {each}" for each in self.problems)]))


def refuse(workload: str, problems: list[SettingsProblem]) -> None:
    """Raise WorkloadError if there are any problems."""
    if problems:
        raise WorkloadError(workload, problems)


Variable = Annotated[str, Field(pattern=VARIABLE)]

GpuModel = Annotated[str, Field(pattern=GPU_MODEL)]


class WorkloadType(StrEnum):
    """Type of a workload, by which reports group it. Not its class, which sets priority and pools."""

    TRAINING = "training"
    """Resumes from checkpoints."""
    BATCH = "batch"
    """Starts again after an interruption."""
    WORKER = "worker"
    """Pulls items from a queue."""
    SERVING = "serving"
    """Answers requests."""
    NOTEBOOK = "notebook"
    """Used by a person."""
    CACHE = "cache"
    """Keeps model weights near the GPUs."""


class WorkloadRequest(Record):
    """A request for a workload, with its author's changes to derived values."""

    name: Name
    team: str
    workload_class: str
    image: Annotated[str, Field(pattern=IMAGE)]
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: dict[Variable, str] = Field(default_factory=dict)
    secrets: dict[Variable, SecretKey] = Field(default_factory=dict)
    """Variables whose values are in a Secret."""
    config_maps: dict[Variable, ConfigMapKey] = Field(default_factory=dict)
    """Variables whose values are in a ConfigMap."""
    env_from: tuple[EnvironmentSource, ...] = ()
    """Secrets and ConfigMaps of which all keys become variables."""
    volumes: dict[MountPath, OwnVolume] = Field(default_factory=dict)
    """Volumes of the team, by mount path."""
    image_pull_secrets: tuple[ObjectName, ...] = ()
    """Secrets for the image's registry."""
    resources: dict[ResourceKey, Amount] = Field(default_factory=dict)
    """Other resources of a node, such as ephemeral-storage. Each is both request and limit."""
    gpus: Annotated[int, Field(ge=1)] = 1
    """GPUs of one pod."""
    cpu: str | None = None
    """vCPU of one pod, such as 8 or 500m. Default: three quarters of the GPUs' share of the smallest possible machine."""
    memory: str | None = None
    """Memory of one pod, such as 32Gi. Default: as for `cpu`."""
    project: LabelValue | None = None
    """For reports, like `labels`."""
    labels: dict[str, LabelValue] = Field(default_factory=dict)
    capacity: tuple[CapacityType, ...] = ()
    """Capacity types that the workload may use. Default: all of its class that suit."""
    gpu_models: tuple[GpuModel, ...] = ()
    """GPU models that the workload may use, such as h100 or a100-80gb."""
    gpu_memory_gb: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """Least memory of one GPU, in GB as its vendor names it."""
    fast_network: bool | None = None
    """Give each pod its share of its node's EFA interfaces or RDMA cards, and leave out pools without them.

    Default: true for pods that train together if all their pools have them.
    """
    grace_seconds: Annotated[int, Field(ge=1)] | None = None
    """Shortens the route's grace period."""
    checkpoints: bool | None = None
    """Mount the team's checkpoint folder. Default: as the class says, where the platform has buckets."""
    checkpoint_folder: Annotated[str, Field(pattern=CHECKPOINT_FOLDER)] | None = None
    """This workload's part of the checkpoint folder. Default: its name, so that a job submitted again under the same name resumes."""
    datasets: bool = False
    """Mount the shared data sets."""
    run_as_user: Annotated[int, Field(ge=1)] = POD_USER
    """User id of the process.

    At least 1: restricted Pod Security rejects root. Default: 1000, the owner of bucket mounts. Other users can write there, too, because
    the group is that of the mounts.
    """
    writable_root: bool = False
    """Let the program write into its image. Default: only into /tmp and other mounts."""
    allow_moving_image: bool = False
    """Accept an image that is not pinned."""

    @field_validator("env", "secrets", "config_maps")
    @classmethod
    def _derived_variables_stay(cls, variables: dict[str, Any]) -> dict[str, Any]:
        if GRACE_VARIABLE in variables:
            raise ValueError(f"{GRACE_VARIABLE} is derived from the grace period; set grace_seconds instead")
        if VISIBLE_DEVICES in variables:
            raise ValueError(f"{VISIBLE_DEVICES} would expose other containers' GPUs, and the cluster rejects it; leave it out")
        return variables

    @model_validator(mode="after")
    def _each_variable_once(self) -> Self:
        named: dict[str, str] = {}
        for field, given in (("env", self.env), ("secrets", self.secrets), ("config_maps", self.config_maps)):
            if both := sorted(named.keys() & given.keys()):
                raise ValueError(f"{', '.join(both)} is in {named[both[0]]} and in {field}; set it in one of them")
            named |= dict.fromkeys(given, field)
        return self


RequestT = TypeVar("RequestT", bound=Record)


def read_request(kind: str, model: type[RequestT], fields: Mapping[str, Any]) -> RequestT:
    """Return the fields as a request of `model`; None stands for the default. Raises WorkloadError with every wrong field."""
    written = {name: value for name, value in fields.items() if value is not None}
    try:
        return model.model_validate(written)
    except ValidationError as error:
        raise WorkloadError(f"{kind} {written.get('name', '')}".rstrip(), [_problem(model, each) for each in error.errors()]) from error


def image_problems(request: WorkloadRequest) -> list[SettingsProblem]:
    """Return the problem of an image reference that may later point to another image."""
    problem = "" if request.allow_moving_image else unpinned_reason(request.image)
    if not problem:
        return []
    remedy = "use a version tag or, better, a digest (IMAGE@sha256:...), or set allow_moving_image"
    return [SettingsProblem("image", repr(request.image), f"{problem}: a replacement pod may run another image", remedy)]


def label_problems(request: WorkloadRequest) -> list[SettingsProblem]:
    """Return the problems of labels: those of the platform, which set who pays and where work runs, and keys that Kubernetes rejects.

    The label for the user is allowed, because only the author knows who the work is for.
    """
    return [
        SettingsProblem(f"labels.{key}", repr(value), *_label_problem(key))
        for key, value in request.labels.items()
        if key != USER_LABEL and (key.startswith(_RESERVED_PREFIXES) or not _LABEL_KEY.fullmatch(key))
    ]


_RESERVED_PREFIXES = ("flexspot.dev/", "kueue.x-k8s.io/", "app.kubernetes.io/")
_LABEL_KEY = re.compile(r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


def _label_problem(key: str) -> tuple[str, str]:
    if key.startswith(_RESERVED_PREFIXES):
        return "is derived from the plan", "set team, project, workload_class or name, or use another key"
    return "is not a valid label key", "use one such as example.com/experiment"


def _problem(model: type[Record], error: Any) -> SettingsProblem:
    location = tuple(step for step in error["loc"] if step != "[key]")
    path = ".".join(map(str, location)) or "(all)"
    if error["type"] == "extra_forbidden":
        known = sorted(model_at(model, location[:-1]).model_fields)
        return SettingsProblem(path, "", "is not an input", nearest(str(location[-1]), known))
    if error["type"] == "missing":
        return SettingsProblem(path, "", "is missing", "add it")
    return SettingsProblem(path, shown(error["input"]) if location else "", *problem_and_remedy(error))


THREE_DAYS = 3 * 24 * 3600

_MOST_PODS = 2000
"""Fewer than Kubernetes allows: the queue admits all pods of a job at once, with one ProvisioningRequest."""

ExitCode = Annotated[int, Field(ge=1, le=255)]


class Launcher(StrEnum):
    """A way to start the program.

    flexspot_runtime.launch, which the image must contain, starts every launcher. It passes on warnings, gives the program the pod's whole
    grace period, and exits with 143 after an interruption.
    """

    RANKS = "ranks"
    """One process per GPU with RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT.

    Hugging Face's Trainer, Lightning, accelerate and torch.distributed read these.
    """
    TORCHRUN = "torchrun"
    """torchrun with the job's pods as its nodes, for programs that need it."""
    JAX = "jax"
    """One process per pod, with all its GPUs and with JAX_COORDINATOR_ADDRESS in addition to NNODES and NODE_RANK."""
    RAY = "ray"
    """One Ray cluster of the pods. The first pod runs the program. MASTER_PORT is Ray's port, and the next higher one is used by the pods.
    """


class JobRequest(WorkloadRequest):
    """A request for a job."""

    gpus: Annotated[int, Field(ge=0)] = 1
    """GPUs of one pod. With 0, the job waits in the team's queue for machines without GPUs, and `cpu` and `memory` default to 1 and 4Gi."""
    pods: Annotated[int, Field(ge=1, le=_MOST_PODS)] = 1
    """Number of pods that do the work, each with `gpus`."""
    at_once: Annotated[int, Field(ge=1)] | None = None
    """Most pods that run at the same time, if they do not train together.

    All pods are then one Job. Default: each pod is a separate Job, and the queue decides how many run.
    """
    run_seconds: Annotated[int, Field(ge=60)] | None = None
    """Run time after which the job is ended. Default and maximum: the class's limit."""
    retries: Annotated[int, Field(ge=1, le=100)] = 3
    """Real failures of a pod that the job survives. Interruptions do not count."""
    fatal_exit_codes: tuple[ExitCode, ...] = ()
    """Exit codes of the program that end the job at once."""
    keep_seconds: Annotated[int, Field(ge=0)] = THREE_DAYS
    """Time until the finished job is deleted, with its pods' logs."""
    jobset: bool = False
    """Create a JobSet for several pods, which restarts all of them after a real failure of one. Needs JobSet's controller in the cluster.
    """
    port: Annotated[int, Field(ge=1024, le=65_535)] = 29_500
    """Port where pod 0 waits for the others (MASTER_PORT)."""
    launcher: Launcher | None = None
    """Starts `command` on all GPUs of the pods. Default: the command runs as it is."""

    @field_validator("fatal_exit_codes")
    @classmethod
    def _an_interruption_is_never_fatal(cls, codes: tuple[int, ...]) -> tuple[int, ...]:
        if INTERRUPTED_EXIT_CODE in codes:
            raise ValueError(
                f"{INTERRUPTED_EXIT_CODE} means that the program was interrupted: a reclaimed node would end the job; leave it out"
            )
        return codes


Path = Annotated[str, Field(pattern=URL_PATH)]


class ModelServerRequest(WorkloadRequest):
    """A request for a model server."""

    replicas: Annotated[int, Field(ge=1, le=1000)] = 2
    """Replicas that always run."""
    max_replicas: Annotated[int, Field(ge=1, le=1000)] | None = None
    """If above `replicas`, a HorizontalPodAutoscaler adds replicas up to this number."""
    cpu_percent: Annotated[int, Field(ge=1, le=100)] = 70
    """Target of the autoscaler without `metric`: percentage of the cpu that a pod requests."""
    metric: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """Metric of the pods, served by an adapter. The autoscaler compares its average with `metric_target`."""
    metric_target: Annotated[str, Field(pattern=METRIC_QUANTITY)] | None = None
    port: Annotated[int, Field(ge=1024, le=65_535)] = 8000
    """HTTP port."""
    ready_path: Path = "/health"
    """Answers 200 once the model is loaded."""
    live_path: Path | None = None
    """Answers 200 as long as the process is healthy. Default: `ready_path`."""
    start_seconds: Annotated[int, Field(ge=10, le=7200)] = 900
    """Longest time for loading the model."""
    drain_seconds: Annotated[int, Field(ge=0)] = 10
    """Time that an ending pod continues to serve while the endpoints are updated."""
    callers: tuple[Name, ...] = ()
    """Other namespaces that may call the server."""
    model_cache: Name | None = None
    """Claim of a ModelCache of the team, mounted at `model_path`."""
    model_cache_gib: Annotated[int, Field(ge=0, le=10_000)] = 0
    """Size of that cache on the node."""
    model_path: Path = "/models"

    @model_validator(mode="after")
    def _scaling_makes_sense(self) -> Self:
        if self.max_replicas is not None and self.max_replicas < self.replicas:
            raise ValueError(f"max_replicas ({self.max_replicas}) is below replicas ({self.replicas}); raise max_replicas, or leave it out")
        if (self.metric is None) is not (self.metric_target is None):
            raise ValueError("metric and metric_target need each other; set both, or neither to scale by cpu")
        return self


class NotebookRequest(WorkloadRequest):
    """A request for a Jupyter notebook of one person. `command` starts the server. Default: jupyter lab, as in Jupyter's images.

    The image needs Python 3, which every image of Jupyter has.
    """

    idle_seconds: Annotated[int, Field(ge=300, le=86_400)] = 3600
    """Time without activity after which the notebook is stopped."""
    nightly_stop: Annotated[str, Field(pattern=TIME_OF_DAY)] = "20:00"
    """Time of day (UTC) at which the notebook is stopped every night."""
    home: Annotated[str, Field(pattern=HOME_FOLDER)] = "/home/jovyan"
    """Mount path of the disk, which remains when the notebook is stopped."""
    home_gib: Annotated[int, Field(ge=1, le=16_384)] = 50
    storage_class: Name | None = None
    """Storage class of the disk. Default: the cluster's default class."""
    token_secret: Name | None = None
    """Existing Secret with the browser's login token in its key `token`. Default: the notebook's name and -token."""


class QueueWorkersRequest(WorkloadRequest):
    """A request for workers on a queue of work items."""

    queue: Annotated[str, Field(min_length=1, max_length=400)]
    """A Pub/Sub subscription on GKE, the URL of an SQS queue on EKS."""
    workers: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Most workers that run at once. Default: one without `keda`, and with it as many as the team's GPUs allow."""
    keda: bool = False
    """Scale with KEDA, whose operator must be in the cluster. No worker runs while the queue is empty."""
    items_per_worker: Annotated[int, Field(ge=1, le=1_000_000)] = 20
    """With `keda`, one worker runs for each of so many items in the queue."""
    lease_seconds: Annotated[int, Field(ge=1)] = 300
    """Time that an item belongs to a worker before another one gets it: the `lease_seconds` of the team's `work_queue`."""
    run_seconds: Annotated[int, Field(ge=60)] | None = None
    """Run time after which a worker is ended, in a queue of Kueue. Default: the class's limit."""
