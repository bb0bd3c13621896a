"""The options that `flexspot render` and `flexspot run` have in common, and the objects that they come to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
import yaml

from capacity.values.errors import ExitCode, ExplainedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from capacity.plan.model import Plan
    from capacity.workloads.pods import KubeObject

Team = Annotated[str | None, typer.Option("--team", "-t", help="The team whose quota and namespace the work uses.")]
WorkloadClass = Annotated[str | None, typer.Option("--class", "-c", help="The workload class, such as training.")]
Name = Annotated[str | None, typer.Option("--name", "-n", help="The name of the workload and its objects.")]
Image = Annotated[str | None, typer.Option("--image", "-i", help="The container image, with a release tag or a digest.")]
Gpus = Annotated[int | None, typer.Option("--gpus", help="GPUs per pod; a queued-job may have 0. Default: 1.")]
Gpu = Annotated[
    list[str] | None, typer.Option("--gpu", metavar="MODEL", help="Use only this GPU model, such as h100 or a100-80gb. Repeatable.")
]
GpuMemory = Annotated[int | None, typer.Option("--gpu-memory", metavar="GB", help="Use only GPUs with at least this much memory.")]
FastNetwork = Annotated[
    bool | None,
    typer.Option(
        "--fast-network/--ordinary-network",
        help="Use only pools with EFA, or no EFA at all. Default: EFA for a gang if all its pools have it.",
    ),
]
Pods = Annotated[int | None, typer.Option("--pods", help="The number of pods. Default: 1.")]
Cpu = Annotated[
    str | None, typer.Option("--cpu", help="vCPUs per pod. Default: three quarters of what its GPUs' share of the machine has.")
]
Memory = Annotated[str | None, typer.Option("--memory", help="Memory per pod, such as 32Gi. Default: three quarters likewise.")]
Env = Annotated[list[str] | None, typer.Option("--env", "-e", metavar="NAME=VALUE", help="An environment variable. Repeatable.")]
Secret = Annotated[
    list[str] | None,
    typer.Option("--secret", metavar="NAME=SECRET:KEY", help="An environment variable from a key of a Secret. Repeatable."),
]
PullSecret = Annotated[
    list[str] | None,
    typer.Option("--pull-secret", metavar="SECRET", help="A Secret with the credentials of the image registry. Repeatable."),
]
LauncherOption = Annotated[
    str | None,
    typer.Option("--launcher", help="How the program starts on all GPUs: ranks (Trainer, Lightning, accelerate), torchrun, jax or ray."),
]
Capacity = Annotated[list[str] | None, typer.Option("--capacity", help="Use only this capacity type of the class. Repeatable.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="FIELD=VALUE", help="Any other input of the kind, with its value as YAML. Repeatable."),
]


def fields_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a request out of a command's arguments, by their names; those that nobody gave are left out.

    Raises BadParameter for what has not the form of a pair.
    """
    named = {field: given[option] for option, field in _FIELDS.items()}
    pairs = {
        "env": dict(_pair("--env", each) for each in given["env"] or ()),
        "secrets": dict(_secret(each) for each in given["secret"] or ()),
    }
    written = {**named, **pairs}
    # An empty list is no choice; 0 and false are.
    chosen = {field: value for field, value in written.items() if value not in (None, [], {})}
    others = _set(given["settings"] or ())
    if twice := sorted(chosen.keys() & others.keys()):
        raise typer.BadParameter(f"--set and an option both give {twice[0]}; give it once.")
    return chosen | others


def rendered(plan: Plan, kind: str, fields: Mapping[str, Any], cannot: str = "cannot run") -> tuple[KubeObject, ...]:
    """A workload's objects. Raises ExplainedError with all that cannot be."""
    from capacity.workloads.kinds import objects_of  # noqa: PLC0415
    from capacity.workloads.requests import WorkloadError  # noqa: PLC0415

    try:
        return objects_of(plan, kind, fields)
    except WorkloadError as error:
        told = tuple(map(str, error.problems))
        remedy = "fix each line above, then run again; --set FIELD=VALUE gives inputs that have no option of their own."
        raise ExplainedError(f"{error.whose} {cannot}.", remedy, exit_code=ExitCode.BAD_USAGE, evidence=told) from error


_FIELDS = {
    "name": "name",
    "team": "team",
    "workload_class": "workload_class",
    "image": "image",
    "gpus": "gpus",
    "gpu": "gpu_models",
    "gpu_memory": "gpu_memory_gb",
    "fast_network": "fast_network",
    "pods": "pods",
    "cpu": "cpu",
    "memory": "memory",
    "pull_secret": "image_pull_secrets",
    "capacity": "capacity",
    "launcher": "launcher",
    "command": "command",
}
"""The field of each option that is one as it stands."""


def _set(settings: Iterable[str]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for each in settings:
        field, value = _pair("--set", each, "FIELD")
        try:
            given[field] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise typer.BadParameter(f"--set {each!r}: the value is not YAML: {error}") from error
    return given


def _secret(text: str) -> tuple[str, dict[str, str]]:
    variable, equals, source = text.partition("=")
    name, colon, key = source.partition(":")
    if not all((variable, equals, name, colon, key)):
        raise typer.BadParameter(f"--secret {text!r} is not NAME=SECRET:KEY; write it as in --secret WANDB_API_KEY=wandb:token.")
    return variable, {"secret": name, "key": key}


def _pair(option: str, text: str, name: str = "NAME") -> tuple[str, str]:
    field, equals, value = text.partition("=")
    if not field or not equals:
        raise typer.BadParameter(f"{option} {text!r} is not {name}=VALUE; write it as in {option} retries=5.")
    return field, value
