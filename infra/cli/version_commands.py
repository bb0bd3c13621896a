"""`flexspot versions`: which version of everything a stack on EKS gets, and what another version of Kubernetes would change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from capacity.values.errors import ExitCode, ExplainedError
from infra.cli.command_line import command_group
from infra.cli.console import out, show_table
from infra.cli.image_commands import eks_stacks
from infra.cli.stacks import Stack  # noqa: TC001 -- typer reads it at run time
from infra.project import project_here

if TYPE_CHECKING:
    from capacity.catalog.node_images import ImageBook
    from capacity.plan.versions import VersionPlan
    from capacity.settings.platform import EksSettings

app = command_group("The versions of a stack on EKS: Kubernetes, add-ons, nodes, charts.")

CHOSEN_BY_EKS = "EKS's default"


@app.callback()
def versions() -> None:
    """The versions of a stack on EKS: Kubernetes, add-ons, nodes, charts."""


@app.command("list")
def list_versions(stack: Stack) -> None:
    """Show which version of each part a stack gets, in the order of an upgrade. Asks no cloud."""
    from capacity.plan.versions import version_plan  # noqa: PLC0415

    settings, images = _of(stack)
    table = Table("part", "version", title=f"stack {stack}", title_justify="left")
    for part, version in _parts(version_plan(settings, images), settings).items():
        table.add_row(part, version or f"[dim]{CHOSEN_BY_EKS}[/]")
    show_table(table)


@app.command()
def upgrade(
    stack: Stack,
    to: Annotated[str, typer.Option("--to", help="The next Kubernetes version, such as 1.36.")],
    ami: Annotated[
        str | None, typer.Option("--ami", help="The node image to go with it, such as al2023@v20260903. Default: the stack's own.")
    ] = None,
) -> None:
    """Show what another Kubernetes version would change in a stack, and what would break (exit code 1). Changes nothing."""
    from capacity.plan.versions import version_plan  # noqa: PLC0415

    settings, images = _of(stack)
    if settings.cluster.existing is not None:
        raise ExplainedError(f"stack {stack} is on a cluster that somebody else upgrades.", "upgrade it where it is made.")
    _next_minor(settings.cluster.version, to)
    raised = _raised(settings, to, ami)
    before, after = version_plan(settings, images), version_plan(raised, images)
    show_table(_changes(_parts(before, settings), _parts(after, settings)))
    problems = _problems(raised, images, stack)
    for problem in problems:
        out.print(f"[red]refused[/] {escape(problem)}")
    if problems:
        raise typer.Exit(ExitCode.UNMET)
    out.print(f"stack {stack} can be raised to {to}: docs/guides/eks.md says in which steps.")


def _parts(plan: VersionPlan, settings: EksSettings) -> dict[str, str]:
    """The parts of a plan that the stack has: drivers with something to mount, and in Auto Mode what it does not bring itself."""
    from capacity.catalog.versions import Addon, auto_mode, shipped_versions  # noqa: PLC0415

    wanted = {
        Addon.EFS_DRIVER: settings.storage.has_efs,
        Addon.LUSTRE_DRIVER: settings.storage.has_lustre,
        Addon.METRICS_SERVER: settings.cluster.addons.metrics_server,
    }
    missing = {addon.value for addon, installed in wanted.items() if not installed}
    if not settings.cluster.has_own_image:
        missing |= {*auto_mode().addons, "system nodes"}
    parts = {part: version for part, version in plan.parts().items() if part not in missing}
    if settings.measurement.kube_state_metrics:
        parts["image kube-state-metrics"] = shipped_versions().kube_state_metrics.version
    return parts


def _of(stack: str) -> tuple[EksSettings, ImageBook]:
    from capacity.plan.build import image_book_of  # noqa: PLC0415

    settings = eks_stacks([stack])[stack]
    return settings, image_book_of(settings, project_here().stacks, f"Pulumi.{stack}.yaml")


def _next_minor(now: str, to: str) -> None:
    """EKS raises a control plane by one minor version at a time, and never lowers it."""
    from capacity.catalog.versions import version_order  # noqa: PLC0415

    major, minor = version_order(now)
    if to != f"{major}.{minor + 1}":
        remedy = f"use --to {major}.{minor + 1}; each further version is an `up` of its own."
        raise ExplainedError(f"EKS upgrades {now} only to {major}.{minor + 1}, not to {to}.", remedy, exit_code=ExitCode.BAD_USAGE)


def _raised(settings: EksSettings, to: str, ami: str | None) -> EksSettings:
    cluster = settings.cluster.model_copy(update={"version": to} | ({"ami": ami} if ami else {}))
    return settings.model_copy(update={"cluster": cluster})


def _changes(before: dict[str, str], then: dict[str, str]) -> Table:
    """What another version changes; a part whose version EKS chose, or will not be told any more, stays."""
    table = Table("part", "now", "then", title="what changes, in this order", title_justify="left")
    for part, version in before.items():
        if not then[part]:
            table.add_row(part, version or CHOSEN_BY_EKS, "[dim]as it is[/]")
        elif then[part] != version:
            table.add_row(part, version or CHOSEN_BY_EKS, then[part])
    return table


def _problems(raised: EksSettings, images: ImageBook, stack: str) -> list[str]:
    from capacity.plan.build import build_plan, price_book_of  # noqa: PLC0415
    from capacity.values.errors import SettingsError  # noqa: PLC0415

    source = f"Pulumi.{stack}.yaml"
    try:
        build_plan(raised, source, price_book_of(raised, project_here().stacks, source), images)
    except SettingsError as error:
        return [str(each) for each in error.problems]
    return []
