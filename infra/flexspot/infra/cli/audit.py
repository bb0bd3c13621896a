"""`flexspot audit`: the rules on a cluster that runs, and what it pays for nothing. It reads, and writes nothing to the cluster."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import yaml

from flexspot.capacity.values.errors import ExplainedError
from flexspot.infra.audit import MOST_MINUTES, NEW_MINUTES
from flexspot.infra.audit.formats import as_json, as_text
from flexspot.infra.cli.command_line import AsFormat, Format, bad_usage
from flexspot.infra.cli.lint import Config, FailOn, Select, choosing, configuration_of, print_whole

if TYPE_CHECKING:
    from collections.abc import Mapping


def audit(
    kubeconfig: Annotated[
        Path | None,
        typer.Option("--kubeconfig", help="The kubeconfig file. Default: the one that kubectl would use, or in a pod its service account."),
    ] = None,
    context: Annotated[str | None, typer.Option("--context", help="A context of the kubeconfig. Default: its current one.")] = None,
    namespace: Annotated[
        list[str] | None, typer.Option("--namespace", "-n", help="Check only this namespace. Repeatable. Default: all.")
    ] = None,
    form: AsFormat = Format.TEXT,
    fail_on: FailOn = None,
    config: Config = None,
    select: Select = None,
    idle_after: Annotated[
        int,
        typer.Option(
            "--idle-after", min=0, max=MOST_MINUTES, metavar="MINUTES", help="Minutes after its creation that a node may be without work."
        ),
    ] = NEW_MINUTES,
    details: Annotated[bool, typer.Option("--details", help="Also list undecided verdicts.")] = False,
    save: Annotated[
        Path | None,
        typer.Option(
            "--save", metavar="FOLDER", help="Write the objects with findings to this folder as YAML, for flexspot lint --fix --diff."
        ),
    ] = None,
) -> None:
    """Check a running cluster by the rules of lint, and report money spent on nothing. The most urgent comes first.

    Needs only permission to list. Exit code 0: no finding that fails. 1: at least one. 2: bad usage, or the cluster does not answer.
    """
    from flexspot.infra.audit.audit import audit as run  # noqa: PLC0415 -- only this command needs it
    from flexspot.infra.audit.cluster_lists import ClusterLists  # noqa: PLC0415
    from flexspot.infra.kubeconfig import access  # noqa: PLC0415

    read = configuration_of(config)
    configuration = choosing(read if fail_on is None else replace(read, fail_on=fail_on), select)
    lists = ClusterLists(access(kubeconfig, context, also_in_pod=True), namespace or ())
    if save is not None:
        _make(save)
    report = run(lists, configuration, idle_after=timedelta(minutes=idle_after))
    print_whole(as_json(report, details=details) if form is Format.JSON else as_text(report, details=details))
    if save is not None:
        _save(report.manifests, save)
    if report.failed:
        raise typer.Exit(1)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        taken = next((each for each in (folder, *folder.parents) if each.is_file()), None)
        raise _unwritable(folder, error, "" if taken is None else f"name a folder; {taken} is a file.") from error


def _save(manifests: Mapping[str, dict[str, Any]], folder: Path) -> None:
    """One file for each object, named for what it is."""
    try:
        for identity, manifest in manifests.items():
            name = re.sub(r"[^A-Za-z0-9.-]+", "_", identity)
            (folder / f"{name}.yaml").write_text(yaml.safe_dump(manifest, sort_keys=False), encoding="utf-8")
    except OSError as error:
        raise _unwritable(folder, error) from error


def _unwritable(folder: Path, error: OSError, remedy: str = "") -> ExplainedError:
    problem = f"the objects with findings cannot be written to {folder}: {error.strerror or error}."
    return bad_usage(problem, remedy or "name a writable folder with free space.")
