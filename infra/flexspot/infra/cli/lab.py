"""`flexspot lab`: the local control plane from the command line."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from flexspot.infra.cli.command_line import Format, option
from flexspot.infra.cli.console import ConsoleProgress, out, table_console
from flexspot.infra.project import project_here

if TYPE_CHECKING:
    from flexspot.lab.control_plane import PartStatus
    from flexspot.lab.home import LabHome
    from flexspot.lab.tools.build import Family, Tools


Name = Annotated[str, option("--lab --name -n", "The lab's name; several may run at once.")]


def lab_home(name: str) -> LabHome:
    """Return the lab of this project called `name`."""
    from flexspot.lab.home import LabHome  # noqa: PLC0415 -- the lab is loaded when one of its commands runs

    return LabHome(project_here().labs, name)


def ready_tools(wanted: tuple[Family, ...] | None = None) -> Tools:
    """Return the programs of a lab, or those in `wanted`. Builds those that are not in the cache."""
    from flexspot.lab.tools.build import ensure_tools  # noqa: PLC0415

    with closing(ConsoleProgress()) as progress:
        return ensure_tools(project_here().tools, progress, wanted=wanted)


def tools(
    everything: Annotated[
        bool,
        option(
            "--all",
            "Also build what no lab needs: Prometheus, kube-state-metrics, JobSet, language hosts and actionlint, for nightly tests.",
        ),
    ] = False,
) -> None:
    """Build the lab's programs that are not in the cache."""
    from flexspot.lab.tools.build import all_families, families  # noqa: PLC0415

    built = ready_tools(all_families() if everything else families())
    out.print(f"tools are ready in {project_here().shown(built.links)}/bin")


def start(
    name: Name = "default",
    api_port: Annotated[
        int | None, typer.Option(min=1024, max=65535, help="The API server's port, kept from then on. Default: a free port.")
    ] = None,
) -> None:
    """Start or repair a lab: healthy parts are left alone, the others are started."""
    from flexspot.lab.control_plane import LabControlPlane  # noqa: PLC0415

    home = lab_home(name)
    built = ready_tools()
    with closing(ConsoleProgress()) as progress:
        report = LabControlPlane(home).start(built, progress, api_port)
    for note in report.notes:
        out.print(f"[yellow]note:[/] {note}")
    if not report.started:
        out.print(f"lab [bold]{name}[/] is running already: all {len(report.kept)} parts are well.")
    else:
        kept = f", {len(report.kept)} were well" if report.kept else ""
        out.print(f"lab [bold]{name}[/] is up: {len(report.started)} parts started{kept}.")
    show_next_steps(home)


def stop(
    name: Name = "default",
    delete: Annotated[bool, option("--delete", "Also delete the lab's folder with its objects, logs and keys.")] = False,
) -> None:
    """Stop a lab; leaves no process and no open port. Objects on the cluster stay for the next start."""
    from flexspot.lab.control_plane import LabControlPlane  # noqa: PLC0415
    from flexspot.lab.home import lab_names  # noqa: PLC0415

    home = lab_home(name)
    with closing(ConsoleProgress()) as progress:
        ended = LabControlPlane(home).stop(progress, delete=delete)
    if ended:
        out.print(f"lab [bold]{name}[/] is stopped; {len(ended)} processes ended{' and its folder deleted' * delete}.")
        return
    others = [other for other in lab_names(home.root) if other != name]
    hint = f" Labs with a folder here: {', '.join(others)}." if others else ""
    out.print(f"lab [bold]{name}[/] was not running; nothing to stop{', its folder is deleted' * delete}.{hint}")


def status(
    name: Name = "default",
    report_format: Annotated[Format, option("--format", "text for people, json for programs.")] = "text",
) -> None:
    """Show each part of a lab; exit code 1 unless all are running."""
    from flexspot.lab.control_plane import LabControlPlane, PartState  # noqa: PLC0415

    parts = LabControlPlane(lab_home(name)).status(ready_tools())
    well = all(part.state is PartState.RUNNING for part in parts)
    if report_format == "json":
        out.print_json(json.dumps({"lab": name, "parts": [dataclasses.asdict(part) for part in parts]}))
    else:
        _show_parts(name, parts)
        if not well:
            out.print(f"\n`flexspot lab start --lab {name}` starts what is not running.")
    raise typer.Exit(0 if well else 1)


def kubeconfig(
    name: Name = "default",
    raw: Annotated[bool, option("--raw", "Print the content instead of the path.")] = False,
) -> None:
    """Print the path of a lab's kubeconfig, as in: export KUBECONFIG=$(flexspot lab kubeconfig)."""
    from flexspot.lab.progress import ExitCode, LabError  # noqa: PLC0415

    home = lab_home(name)
    if not home.kubeconfig.exists():
        raise LabError(f"--lab: there is no lab {name}.", f"run `flexspot lab start --lab {name}`.", exit_code=ExitCode.BAD_USAGE)
    typer.echo(home.kubeconfig.read_text() if raw else str(home.kubeconfig), nl=not raw)


def exercise(name: Name = "default") -> None:
    """Run the course's exercise: from zero to four GPUs, a guaranteed share reclaimed by preemption, back to zero."""
    from flexspot.lab.cluster import Cluster, WaitTimeoutError  # noqa: PLC0415
    from flexspot.lab.exercise.play import play  # noqa: PLC0415
    from flexspot.lab.progress import LabError  # noqa: PLC0415

    home = lab_home(name)
    if not home.kubeconfig.exists():
        raise LabError(f"--lab: there is no lab {name}.", f"create it with `flexspot lab start --lab {name}`, then run the exercise again.")
    try:
        play(Cluster(home.kubeconfig), lambda seconds, what: out.print(f"[dim]{seconds:5.1f} s[/]  {what}"))
    except WaitTimeoutError as error:
        raise LabError(f"the exercise failed: {error}", f"see `flexspot lab status --lab {name}`.") from error


def pulumi(
    context: typer.Context,
    name: Annotated[str, option("--lab", "The lab's name.")] = "default",
) -> None:
    """Run the Pulumi command line itself against a lab, as in: flexspot lab pulumi preview -s local --policy-pack policies/pack."""
    from flexspot.lab.control_plane import LabControlPlane  # noqa: PLC0415
    from flexspot.lab.engine import engine_for  # noqa: PLC0415

    home = lab_home(name)
    control_plane = LabControlPlane(home)
    control_plane.require_created()
    tools = ready_tools()
    control_plane.require_running(tools)
    with engine_for(home.kubeconfig, tools) as engine:
        environment = os.environ | engine.command_line_environment(home, tools)
        raise typer.Exit(subprocess.run([engine.program(tools), *context.args], env=environment, check=False).returncode)  # noqa: S603


def _show_parts(name: str, parts: list[PartStatus]) -> None:
    from flexspot.lab.control_plane import PartState  # noqa: PLC0415

    colours = {PartState.RUNNING: "green", PartState.UNREADY: "yellow", PartState.STOPPED: "red"}
    table = Table(title=f"lab {name}", title_justify="left", box=None, pad_edge=False)
    for column in ("part", "version", "state", "address", "process", "up", "memory"):
        table.add_column(column, justify="right" if column in {"process", "up", "memory"} else "left", no_wrap=True)
    for part in parts:
        table.add_row(
            part.name,
            part.version,
            f"[{colours[part.state]}]{part.state}[/]",
            part.address,
            str(part.process_id or ""),
            "" if part.uptime_seconds is None else f"{part.uptime_seconds:.0f} s",
            "" if part.memory_mib is None else f"{part.memory_mib:.0f} MiB",
        )
    table_console().print(table)
    for part in parts:
        if part.last_lines:
            out.print(f"\n[bold]{part.name}[/] is {part.state}; the last lines of its log:")
            for line in part.last_lines:
                out.print(f"  | {line}", style="dim", markup=False)


def show_next_steps(home: LabHome) -> None:
    """Print how to reach a lab, what runs on it, and what to try next."""
    flexspot = "flexspot lab" if shutil.which("flexspot") else f"{Path(sys.executable).with_name('flexspot')} lab"
    chosen = "" if home.name == "default" else f" --lab {home.name}"
    kubectl = project_here().tools / "bin" / "kubectl"
    shown_kubectl = kubectl.relative_to(Path.cwd()) if kubectl.is_relative_to(Path.cwd()) else kubectl
    steps = {
        "On it": "Kubernetes, Kueue and Karpenter, each the real one; the nodes are fake and cost nothing.",
        "Reach it": f"export KUBECONFIG={home.kubeconfig}; {shown_kubectl} get nodepools,clusterqueues",
        "Try next": f"{flexspot} exercise{chosen}   (two teams, four GPUs, one preemption; one to two minutes)",
        "Look": f"{flexspot} status{chosen}",
        "Stop": f"{flexspot} stop{chosen}",
    }
    out.print()
    for title, text in steps.items():
        out.print(f"[bold]{title:9}[/] {text}")
