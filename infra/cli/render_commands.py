"""`flexspot render`: the objects of a workload as YAML, for who submits with kubectl."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer
import yaml

from capacity.values.errors import ExitCode, ExplainedError
from infra.cli.console import Format
from infra.cli.stacks import Stack, planned

if TYPE_CHECKING:
    from collections.abc import Iterable


def render(  # noqa: PLR0913, PLR0917 -- each is an option of the command line
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND", help="checkpointed-job, queued-job, flex-start-job, queue-workers, model-server, notebook or model-cache."
        ),
    ],
    stack: Stack,
    team: Annotated[str | None, typer.Option("--team", "-t", help="The team whose quota and namespace it uses.")] = None,
    workload_class: Annotated[str | None, typer.Option("--class", "-c", help="The workload class, such as training.")] = None,
    name: Annotated[str | None, typer.Option("--name", "-n", help="The name of its objects.")] = None,
    image: Annotated[str | None, typer.Option("--image", "-i", help="The image, with the tag of a release or a digest.")] = None,
    gpus: Annotated[
        int | None, typer.Option("--gpus", help="GPUs of each pod; 0, of a queued-job, for work without any. Default: 1.")
    ] = None,
    gpu: Annotated[
        list[str] | None, typer.Option("--gpu", metavar="MODEL", help="Only this GPU, such as h100 or a100-80gb; may be repeated.")
    ] = None,
    gpu_memory: Annotated[int | None, typer.Option("--gpu-memory", metavar="GB", help="Only GPUs with at least so much memory.")] = None,
    fast_network: Annotated[
        bool | None,
        typer.Option(
            "--fast-network/--ordinary-network", help="Pools with EFA alone, or none of it. Default: EFA where all pools of a gang have it."
        ),
    ] = None,
    pods: Annotated[int | None, typer.Option("--pods", help="Pods that do the work. Default: 1.")] = None,
    cpu: Annotated[str | None, typer.Option("--cpu", help="vCPU of each pod. Default: three quarters of its GPUs' share.")] = None,
    memory: Annotated[str | None, typer.Option("--memory", help="Memory of each pod, such as 32Gi. Default: likewise.")] = None,
    env: Annotated[list[str] | None, typer.Option("--env", "-e", metavar="NAME=VALUE", help="A variable; may be repeated.")] = None,
    secret: Annotated[
        list[str] | None,
        typer.Option("--secret", metavar="NAME=SECRET:KEY", help="A variable whose value is a key of a Secret; may be repeated."),
    ] = None,
    pull_secret: Annotated[
        list[str] | None, typer.Option("--pull-secret", metavar="SECRET", help="A Secret that opens the image's registry; may be repeated.")
    ] = None,
    capacity: Annotated[list[str] | None, typer.Option("--capacity", help="Only this capacity type of the class; may be repeated.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="FIELD=VALUE", help="Any other input of the kind, its value as YAML; may be repeated."),
    ] = None,
    template: Annotated[bool, typer.Option("--template", help="Add comments that say what to fill in and what is derived.")] = False,
    form: Annotated[Format, typer.Option("--format", help="text is YAML, json a list of objects.")] = Format.TEXT,
    command: Annotated[list[str] | None, typer.Argument(metavar="-- COMMAND...", help="The program. Default: the image's own.")] = None,
) -> None:
    """Print the Kubernetes objects of a workload, derived from the stack; nothing is submitted. Exit code 2 for what cannot run there."""
    from capacity.workloads.kinds import kind_named, manifests_yaml, objects_of, template_yaml  # noqa: PLC0415
    from capacity.workloads.requests import WorkloadError  # noqa: PLC0415

    written: dict[str, Any] = {
        "name": name,
        "team": team,
        "workload_class": workload_class,
        "image": image,
        "gpus": gpus,
        "gpu_models": gpu or None,
        "gpu_memory_gb": gpu_memory,
        "fast_network": fast_network,
        "pods": pods,
        "cpu": cpu,
        "memory": memory,
        "env": dict(_pair("--env", each) for each in env) if env else None,
        "secrets": dict(_secret(each) for each in secret) if secret else None,
        "image_pull_secrets": pull_secret or None,
        "capacity": capacity or None,
        "command": command or None,
    }
    given = {field: value for field, value in written.items() if value is not None} | _set(settings or [])
    try:
        found = kind_named(kind)
        plan = planned(stack).plan
        objects = objects_of(plan, kind, {**found.shown, **given} if template else given)
    except WorkloadError as error:
        told = tuple(map(str, error.problems))
        remedy = "mend each line above, then run again; --set FIELD=VALUE gives inputs that have no option of their own."
        raise ExplainedError(f"{error.whose} cannot be rendered.", remedy, exit_code=ExitCode.BAD_USAGE, evidence=told) from error
    if form is Format.JSON:
        sys.stdout.write(json.dumps(list(objects), indent=2) + "\n")
        return
    sys.stdout.write(f"# {found.component}, for the cluster of stacks/Pulumi.{stack}.yaml\n")
    sys.stdout.write(template_yaml(objects) if template else manifests_yaml(objects))


def _set(settings: Iterable[str]) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for each in settings:
        field, value = _pair("--set", each)
        try:
            given[field] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise typer.BadParameter(f"--set {each!r}: the value is no YAML: {error}") from error
    return given


def _secret(text: str) -> tuple[str, dict[str, str]]:
    variable, source = _pair("--secret", text)
    name, colon, key = source.partition(":")
    if not name or not colon or not key:
        raise typer.BadParameter(f"--secret {text!r} has no NAME=SECRET:KEY; write it as in --secret WANDB_API_KEY=wandb:token.")
    return variable, {"secret": name, "key": key}


def _pair(option: str, text: str) -> tuple[str, str]:
    field, equals, value = text.partition("=")
    if not field or not equals:
        raise typer.BadParameter(f"{option} {text!r} has no NAME=VALUE; write it as in {option} retries=5.")
    return field, value
