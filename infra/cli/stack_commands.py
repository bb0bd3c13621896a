"""`flexspot up`, `preview` and `destroy`: a stack through the Pulumi engine."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infra.checkout import CHECKOUT
from infra.cli.console import ConsoleProgress, out
from infra.cli.lab_commands import lab_home, show_next_steps
from infra.cli.stacks import STACKS, Stack, planned

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from infra.engine import StackRun
    from lab.tools.build import Tools

Lab = Annotated[str, typer.Option("--lab", help="The lab that a `cloud: local` stack is deployed to.")]


def add_to(app: typer.Typer) -> None:
    """Registers the commands on the top-level application."""
    app.command()(preview)
    app.command()(up)
    app.command()(destroy)


def preview(
    stack: Stack,
    lab: Lab = "default",
    offline: Annotated[bool, typer.Option("--offline", help="Without any cluster or cloud, as if nothing were deployed.")] = False,
    plan_out: Annotated[
        Path | None, typer.Option("--plan-out", metavar="FILE", help="Write the plan there, for `flexspot cost`; a refused one too.")
    ] = None,
) -> None:
    """Show what `up` would change; a violated policy stops it with exit code 1."""
    with _offline_run(stack) if offline else _run(stack, lab) as run:
        if plan_out is None:
            _show(run.preview(_tell, color=out.is_terminal), "would be")
            return
        _show(_preview_to(plan_out, stack, run), "would be")


def _preview_to(path: Path, stack: str, run: StackRun) -> Mapping[str, int]:
    """A preview that is written down even when it is refused: what it costs may be why."""
    from infra.plan_file import PlannedResources, write_plan_file  # noqa: PLC0415

    heard, found = PlannedResources(), planned(stack)
    own_prices = found.settings.prices_file
    try:
        return run.preview(_tell, color=out.is_terminal, hear=heard.hear)
    finally:
        write_plan_file(path, stack, found, heard, None if own_prices is None else STACKS / own_prices)


def up(stack: Stack, lab: Lab = "default") -> None:
    """Deploy a stack; a violated policy stops it with exit code 1."""
    with _run(stack, lab) as run:
        _show(run.up(_tell, color=out.is_terminal), "were")
    show_next_steps(lab_home(lab))


def destroy(stack: Stack, lab: Lab = "default") -> None:
    """Delete every resource of a stack."""
    with _run(stack, lab) as run:
        _show(run.destroy(_tell, color=out.is_terminal), "were")


def _tell(line: str) -> None:
    sys.stdout.write(line if line.endswith("\n") else f"{line}\n")
    sys.stdout.flush()


def _show(changes: Mapping[str, int], verb: str) -> None:
    words = {"create": "created", "update": "updated", "delete": "deleted", "replace": "replaced", "same": "unchanged"}
    told = [f"{count} {verb} {words[kind]}" for kind, count in changes.items() if kind in words and kind != "same"]
    out.print(", ".join(told) if told else "no change.")


@contextmanager
def _run(stack: str, lab: str) -> Generator[StackRun]:
    """The stack, checked, with everything that the engine needs to run over it."""
    from capacity.platform import Platform  # noqa: PLC0415

    settings = planned(stack).settings
    if settings.cloud is not Platform.LOCAL:
        _require_cloud_plugins(stack, settings.cloud)
    with ExitStack() as resources:
        yield _local_run(stack, lab, resources)


@contextmanager
def _offline_run(stack: str) -> Generator[StackRun]:
    """The stack, checked, over offline providers, with a backend that is thrown away afterwards."""
    from infra.engine import StackRun  # noqa: PLC0415
    from lab.engine import offline_engine  # noqa: PLC0415

    planned(stack)
    with tempfile.TemporaryDirectory() as folder, offline_engine(_ready_tools()) as engine:
        _say(engine.notes)
        yield StackRun(stack, Path(folder) / "project", f"file://{folder}", engine.root, engine.environment)


def _ready_tools() -> Tools:
    from lab.tools.build import ensure_tools  # noqa: PLC0415

    progress = ConsoleProgress()
    try:
        return ensure_tools(CHECKOUT / ".tools", progress)
    finally:
        progress.close()


def _say(notes: tuple[str, ...]) -> None:
    for note in notes:
        out.print(f"[dim]{note}[/]")


def _require_cloud_plugins(stack: str, cloud: str) -> None:
    """A cloud stack is for the official engine and plugins alone; stand-ins never write a cloud's state."""
    from capacity.explained_error import ExitCode, ExplainedError  # noqa: PLC0415

    provider = {"gke": "gcp", "eks": "aws"}[cloud]
    plugins = Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi") / "plugins"
    missing = [f"resource plugin {name}" for name in (provider, "kubernetes") if not any(plugins.glob(f"resource-{name}-v*"))]
    if shutil.which("pulumi") is None:
        missing.insert(0, "pulumi command line")
    if missing:
        raise ExplainedError(
            f"stack {stack} needs the official {', '.join(missing)}, which this machine does not have. No state was opened.",
            "install Pulumi from https://www.pulumi.com/docs/install and run `pulumi plugin install` in the checkout.",
            exit_code=ExitCode.BAD_USAGE,
        )
    raise ExplainedError(
        f"stack {stack} has cloud {cloud}, which cannot be declared yet. No state was opened.",
        "allowed: local",
        exit_code=ExitCode.BAD_USAGE,
    )


def _local_run(stack: str, lab: str, resources: ExitStack) -> StackRun:
    """A run against a lab: its state is kept with the lab's own, so that neither outlives the other."""
    from infra.engine import StackRun  # noqa: PLC0415
    from infra.program import KUBECONFIG_VARIABLE  # noqa: PLC0415
    from lab.control_plane import ControlPlane  # noqa: PLC0415
    from lab.engine import engine_for, state_url  # noqa: PLC0415

    home = lab_home(lab)
    tools = _ready_tools()
    ControlPlane(home).require_running(tools)
    engine = resources.enter_context(engine_for(home.kubeconfig, tools))
    _say(engine.notes)
    os.environ[KUBECONFIG_VARIABLE] = str(home.kubeconfig)
    backend = os.environ.get("PULUMI_BACKEND_URL") or state_url(home)
    return StackRun(stack, home.folder / "project", backend, engine.root, engine.environment)
