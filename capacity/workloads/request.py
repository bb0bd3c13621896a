"""What a person asks for: a class, a team, an image, resources, a command. Everything else is derived from the plan."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeVar

from pydantic import Field, ValidationError, field_validator, model_validator

from capacity.capacity_type import CapacityType
from capacity.names import CHECKPOINT_FOLDER, IMAGE, LABEL_VALUE, VARIABLE, Name
from capacity.records import Record
from capacity.settings.problems import SettingsProblem, nearest
from capacity.settings.wording import said, shown
from capacity.workloads.names import GRACE_VARIABLE, MOVING_TAGS
from capacity.workloads.refusal import WorkloadError

if TYPE_CHECKING:
    from collections.abc import Mapping

LabelValue = Annotated[str, Field(pattern=LABEL_VALUE, min_length=1)]
Variable = Annotated[str, Field(pattern=VARIABLE)]


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


class SecretKey(Record):
    """A key of a Secret in the team's namespace."""

    secret: Name
    key: Annotated[str, Field(min_length=1, max_length=253)]


class WorkloadRequest(Record):
    """A request, complete with what its author wants otherwise than it would be derived.

    `gpus` are of one pod, and so are `cpu` (such as 8 or 500m) and `memory` (such as 32Gi); default: three quarters of what belongs to so
    many GPUs on the smallest machine it may get. `secrets` are variables whose value is a Secret's. `project` and `labels` are for reports.
    `capacity` narrows the class's capacity types to those named; default: all that suit. `grace_seconds` shortens the route's.
    `checkpoints` mounts the team's checkpoint folder; default: as the class says, where the platform has buckets. `checkpoint_folder` is
    the part of it that is this workload's; default: its name, so that a job submitted again under the same name resumes. `datasets` mounts
    the shared data sets. `run_as_user` is the user and group id of the process (at least 1: restricted Pod Security refuses root), 1000 as
    bucket mounts have. `writable_root` lets it write into its image; default: /tmp alone. `allow_moving_image` accepts an image that is not
    pinned.
    """

    name: Name
    team: str
    workload_class: str
    image: Annotated[str, Field(pattern=IMAGE)]
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: dict[Variable, str] = Field(default_factory=dict)
    secrets: dict[Variable, SecretKey] = Field(default_factory=dict)
    gpus: Annotated[int, Field(ge=1)] = 1
    cpu: str | None = None
    memory: str | None = None
    project: LabelValue | None = None
    labels: dict[str, LabelValue] = Field(default_factory=dict)
    capacity: tuple[CapacityType, ...] = ()
    grace_seconds: Annotated[int, Field(ge=1)] | None = None
    checkpoints: bool | None = None
    checkpoint_folder: Annotated[str, Field(pattern=CHECKPOINT_FOLDER)] | None = None
    datasets: bool = False
    run_as_user: Annotated[int, Field(ge=1)] = 1000
    writable_root: bool = False
    allow_moving_image: bool = False

    @field_validator("env", "secrets")
    @classmethod
    def _derived_variables_stay(cls, variables: dict[str, Any]) -> dict[str, Any]:
        if GRACE_VARIABLE in variables:
            raise ValueError(f"{GRACE_VARIABLE} is derived from the grace period; set grace_seconds instead")
        return variables

    @model_validator(mode="after")
    def _each_variable_once(self) -> Self:
        if both := sorted(self.env.keys() & self.secrets.keys()):
            raise ValueError(f"{', '.join(both)} is in env and in secrets; give it in one of them")
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
    if request.allow_moving_image or "@" in request.image:
        return []
    # A colon before the last slash is that of a registry's port.
    _, colon, tag = request.image.rpartition("/")[2].partition(":")
    if colon and tag not in MOVING_TAGS:
        return []
    problem = f"has the tag {tag}, which moves" if colon else "has neither tag nor digest, which means latest"
    remedy = "name a release, better a digest (IMAGE@sha256:...), or say allow_moving_image"
    return [SettingsProblem("image", repr(request.image), f"{problem}: a replaced pod may run another program", remedy)]


def label_problems(request: WorkloadRequest) -> list[SettingsProblem]:
    """Labels of the platform's own, which say who pays and where work runs, and keys that Kubernetes refuses."""
    return [
        SettingsProblem(f"labels.{key}", repr(value), *_label_problem(key))
        for key, value in request.labels.items()
        if key.startswith(_OURS) or not _LABEL_KEY.fullmatch(key)
    ]


_OURS = ("flexspot.dev/", "kueue.x-k8s.io/", "app.kubernetes.io/")
_LABEL_KEY = re.compile(r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


def _label_problem(key: str) -> tuple[str, str]:
    if key.startswith(_OURS):
        return "is derived from the plan", "set team, project, workload_class or name; other keys are free"
    return "is no key of a label", "write one such as example.com/experiment"


def _problem(model: type[Record], error: Any) -> SettingsProblem:
    path = ".".join(str(step) for step in error["loc"] if step != "[key]")
    if error["type"] == "extra_forbidden":
        return SettingsProblem(path, "", "is not an input", nearest(path, sorted(model.model_fields)))
    if error["type"] == "missing":
        return SettingsProblem(path, "", "is missing", "give it")
    return SettingsProblem(path, shown(error["input"]), *said(error))
