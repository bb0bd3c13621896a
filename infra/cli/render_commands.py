"""`flexspot render`: the objects of a workload as YAML, for who submits with kubectl."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from infra.cli.console import Format
from infra.cli.stacks import Stack, planned
from infra.cli.workload_options import (
    Capacity,
    Cpu,
    Env,
    FastNetwork,
    Gpu,
    GpuMemory,
    Gpus,
    Image,
    LauncherOption,
    Memory,
    Name,
    Pods,
    PullSecret,
    Secret,
    Settings,
    Team,
    WorkloadClass,
    fields_of,
    rendered,
)


def render(  # noqa: PLR0913, PLR0917 -- each is an option of the command line
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND", help="checkpointed-job, queued-job, flex-start-job, queue-workers, model-server, notebook or model-cache."
        ),
    ],
    stack: Stack,
    team: Team = None,
    workload_class: WorkloadClass = None,
    name: Name = None,
    image: Image = None,
    gpus: Gpus = None,
    gpu: Gpu = None,
    gpu_memory: GpuMemory = None,
    fast_network: FastNetwork = None,
    pods: Pods = None,
    cpu: Cpu = None,
    memory: Memory = None,
    env: Env = None,
    secret: Secret = None,
    pull_secret: PullSecret = None,
    capacity: Capacity = None,
    launcher: LauncherOption = None,
    settings: Settings = None,
    template: Annotated[bool, typer.Option("--template", help="Add comments on what to fill in and what is derived.")] = False,
    form: Annotated[Format, typer.Option("--format", help="text is YAML, json a list of objects.")] = Format.TEXT,
    command: Annotated[
        list[str] | None, typer.Argument(metavar="-- COMMAND...", help="The program and its arguments. Default: the image's own command.")
    ] = None,
) -> None:
    """Print the Kubernetes objects of a workload, derived from the stack; submits nothing. Exit code 2 if it cannot run there."""
    from capacity.workloads.kinds import KINDS, manifests_yaml, template_yaml  # noqa: PLC0415

    given = fields_of(locals())
    shown = KINDS[kind].shown if template and kind in KINDS else {}
    objects = rendered(planned(stack).plan, kind, {**shown, **given}, "cannot be rendered")
    if form is Format.JSON:
        sys.stdout.write(json.dumps(list(objects), indent=2) + "\n")
        return
    sys.stdout.write(f"# {KINDS[kind].component}, for the cluster of stacks/Pulumi.{stack}.yaml\n")
    sys.stdout.write(template_yaml(objects) if template else manifests_yaml(objects))
