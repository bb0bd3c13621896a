"""How a stack is reached, and `flexspot stacks`, `outputs` and `kubeconfig`: which there are, and what deployed ones give."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flexspot.capacity.catalog.platform import VOCABULARIES, Platform
from flexspot.capacity.settings.platform import EksSettings, GkeSettings
from flexspot.capacity.settings.stack_file import read_stack_file
from flexspot.capacity.values.errors import ExitCode, ExplainedError, SettingsError
from flexspot.infra.cli.command_line import AsFormat, Format
from flexspot.infra.cli.console import ConsoleProgress, out
from flexspot.infra.cli.given_files import Stack, planned
from flexspot.infra.cli.lab import lab_home
from flexspot.infra.cli.tables import as_json, show
from flexspot.infra.deployment.state_file import SCHEME, deployed_resources
from flexspot.infra.loading import require
from flexspot.infra.project import STAND_IN, Project, project_here, without_secrets

if TYPE_CHECKING:
    from collections.abc import Generator

    from flexspot.capacity.plan.build import StackPlan
    from flexspot.infra.deployment.engine import StackRun
    from flexspot.lab.tools.build import Family, Tools


Lab = Annotated[str, typer.Option("--lab", help="The lab that a `cloud: local` stack is deployed to.")]


def stacks(lab: Lab = "default", form: AsFormat = Format.TEXT) -> None:
    """List the project's stacks: cloud, environment, and what is deployed.

    Asks no cloud: what is deployed is known of stacks whose state is in files, as of those in a lab.
    """
    project = project_here()
    found = [_described(project, name, lab) for name in project.stack_names()]
    if form is Format.JSON:
        sys.stdout.write(as_json(found))
        return
    rows = [(each["stack"], each["cloud"] or "", each["region"] or "", each["environment"] or "", _deployed(each)) for each in found]
    show("", ("stack", "cloud", "region", "environment", "deployed"), rows)


def _described(project: Project, name: str, lab: str) -> dict[str, Any]:
    """A stack as its file and its state describe it; null where a file has problems, and where only a backend elsewhere knows."""
    try:
        settings = read_stack_file(project.stack_file(name))
    except SettingsError as error:
        return {"stack": name, "cloud": None, "region": None, "environment": None, "resources": None, "problems": len(error.problems)}
    backend = os.environ.get("PULUMI_BACKEND_URL")
    if backend is None and settings.cloud is Platform.LOCAL:
        backend = f"{SCHEME}{lab_home(lab).folder / 'pulumi'}"
    return {
        "stack": name,
        "cloud": settings.cloud.value,
        "region": settings.region if isinstance(settings, EksSettings | GkeSettings) else None,
        "environment": settings.environment,
        "resources": deployed_resources(backend, project.name, name),
        "problems": 0,
    }


def _deployed(described: dict[str, Any]) -> str:
    if described["problems"]:
        return f"{described['problems']} problems: flexspot settings check -s {described['stack']}"
    resources = described["resources"]
    if resources is None:
        return f"not known here: flexspot outputs -s {described['stack']}"
    return f"{resources} resources" if resources else "no"


def outputs(stack: Stack, lab: Lab = "default", form: AsFormat = Format.TEXT) -> None:
    """Print the outputs of a deployed stack.

    Secrets are not shown; `pulumi stack output --show-secrets` has them.
    """
    found = _outputs(stack, lab)
    if form is Format.JSON:
        sys.stdout.write(as_json(found))
        return
    for name, value in found.items():
        out.print(f"{name}: {value if isinstance(value, str) else as_json(value).strip()}", markup=False)


def kubeconfig(stack: Stack, lab: Lab = "default") -> None:
    """Print how kubectl reaches a deployed stack.

    In a lab that is the path of its kubeconfig, on GKE and EKS the command that adds the cluster to yours.
    """
    found = _outputs(stack, lab)
    way = found.get("kubeconfig") or found.get("credentials_command")
    if way is None:
        raise ExplainedError(f"stack {stack} has no cluster among its outputs.", "name a stack that declares a platform.")
    sys.stdout.write(f"{way}\n")


def _outputs(stack: str, lab: str) -> dict[str, Any]:
    with stack_run(stack, planned(stack), lab) as run:
        found = run.outputs(secrets=False)
    if not found:
        raise ExplainedError(f"stack {stack} is not deployed.", f"deploy it: flexspot up -s {stack}", exit_code=ExitCode.UNMET)
    return found


def deployable(stack: str) -> StackPlan:
    """The settings of a stack and their plan. Raises ExplainedError without the SDK that its program needs, and what `planned` raises."""
    found = planned(stack)
    if isinstance(found.settings, EksSettings | GkeSettings):
        require(f"pulumi_{VOCABULARIES[found.settings.cloud].catalog}")
    return found


@contextmanager
def stack_run(stack: str, found: StackPlan, lab: str) -> Generator[StackRun]:
    """The stack, checked, with everything that the engine needs to run over it."""
    settings = found.settings
    with ExitStack() as resources:
        if isinstance(settings, EksSettings | GkeSettings):
            from flexspot.infra.deployment.engine import cloud_run  # noqa: PLC0415

            run, notes = cloud_run(stack, settings, resources)
            _say(notes)
            yield run
        else:
            yield _local_run(stack, lab, resources)


@contextmanager
def offline_run(stack: str) -> Generator[StackRun]:
    """The stack over offline providers, with a backend that is thrown away afterwards."""
    from flexspot.infra.deployment.engine import StackRun  # noqa: PLC0415
    from flexspot.lab.engine import offline_engine  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder, offline_engine(ready_engine) as engine:
        _say(engine.notes)
        _, secret = without_secrets(project_here().stack_file(stack).read_text(encoding="utf-8"))
        if secret:
            _say((f"offline: the secrets in {', '.join(secret)} are not read; the program gets {STAND_IN!r} for each.",))
        yield StackRun(stack, Path(folder) / "project", f"file://{folder}", engine.root, engine.environment, secrets=False)


def ready_engine() -> Tools:
    """The engine alone: an offline preview needs none of the lab's other programs."""
    from flexspot.lab.tools.build import family_named  # noqa: PLC0415

    return _ready_tools((family_named("pulumi"),))


def _ready_tools(wanted: tuple[Family, ...] | None = None) -> Tools:
    from flexspot.lab.tools.build import ensure_tools  # noqa: PLC0415

    with closing(ConsoleProgress()) as progress:
        return ensure_tools(project_here().tools, progress, wanted=wanted)


def _say(notes: tuple[str, ...]) -> None:
    for note in notes:
        out.print(f"[dim]{note}[/]")


def _local_run(stack: str, lab: str, resources: ExitStack) -> StackRun:
    """A run against a lab: its state is kept with the lab's own, so that neither outlives the other."""
    from flexspot.infra.declaring.program import KUBECONFIG_VARIABLE  # noqa: PLC0415
    from flexspot.infra.deployment.engine import StackRun  # noqa: PLC0415
    from flexspot.lab.control_plane import LabControlPlane  # noqa: PLC0415
    from flexspot.lab.engine import engine_for, state_url  # noqa: PLC0415

    home = lab_home(lab)
    control_plane = LabControlPlane(home)
    # Before the tools: without them in the cache, they are compiled for minutes.
    control_plane.require_made()
    tools = _ready_tools()
    control_plane.require_running(tools)
    engine = resources.enter_context(engine_for(home.kubeconfig, tools))
    _say(engine.notes)
    os.environ[KUBECONFIG_VARIABLE] = str(home.kubeconfig)
    backend = os.environ.get("PULUMI_BACKEND_URL") or state_url(home)
    return StackRun(stack, home.folder / "project", backend, engine.root, engine.environment)
