"""`flexspot stacks`, `outputs` and `kubeconfig`: which stacks there are, and what those that are deployed give."""

from __future__ import annotations

import os
import sys
from typing import Any

from capacity.catalog.platform import Platform
from capacity.settings.platform import EksSettings, GkeSettings
from capacity.settings.stack_file import read_stack_file
from capacity.values.errors import ExitCode, ExplainedError, SettingsError
from infra.cli.command_line import AsFormat, Format
from infra.cli.console import out
from infra.cli.given_files import Stack, planned
from infra.cli.lab import lab_home
from infra.cli.stacks.deploying import Lab, stack_run
from infra.cli.tables import as_json, show
from infra.project import Project, project_here
from infra.state_file import SCHEME, deployed_resources


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
