"""`flexspot lint`: the policies over Kubernetes YAML, before anything is deployed."""

from __future__ import annotations

import gc
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from infra.cli.rule_options import Config, FailOn, Select, choosing, configuration_of, print_whole, shows_colours

if TYPE_CHECKING:
    from capacity.values.verdict import Severity
    from policies.lint.configuration import Configuration
    from policies.lint.report import Report


class LintFormat(StrEnum):
    """How a report is printed."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    GITHUB = "github"
    JUNIT = "junit"


def lint(  # noqa: PLR0913, PLR0917 -- each is an option of the command line
    paths: Annotated[list[str], typer.Argument(metavar="PATH", help="Files and folders of YAML, JSON or Markdown; - is standard input.")],
    form: Annotated[LintFormat, typer.Option("--format", help="text for people; the others for programs.")] = LintFormat.TEXT,
    fail_on: FailOn = None,
    closed: Annotated[
        bool | None, typer.Option("--closed", help="Treat the input as complete: what it refers to and does not contain is missing.")
    ] = None,
    config: Config = None,
    cluster: Annotated[
        list[str] | None,
        typer.Option(
            "--cluster", metavar="NAME=PATH", help="Files and folders of one cluster; objects are compared only within a cluster."
        ),
    ] = None,
    baseline: Annotated[Path | None, typer.Option("--baseline", help="Accept the findings that this file lists.")] = None,
    write_baseline: Annotated[bool, typer.Option("--write-baseline", help="Write all open findings to the baseline.")] = False,
    select: Select = None,
    details: Annotated[bool, typer.Option("--details", help="Also list suppressed and undecided verdicts.")] = False,
    fix: Annotated[bool, typer.Option("--fix", help="Write fixes that are certain into the YAML, then check it again.")] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Print what --fix would change; write nothing.")] = False,
    owner: Annotated[
        str | None, typer.Option("--owner", metavar="KEY=VALUE", help="The owner label that --fix adds where it is missing.")
    ] = None,
) -> None:
    """Check Kubernetes manifests by the same policies as previews.

    Exit code 0: no finding of a mandatory rule, or of the severity given by --fail-on. 1: at least one. 2: bad usage or a broken
    configuration.
    """
    # A short run that allocates much and keeps nearly all of it: collecting what refers to itself would take a fifth of the time.
    gc.disable()
    from policies.lint.run import lint as run  # noqa: PLC0415 -- only this command needs it

    if write_baseline and select:
        raise typer.BadParameter("--write-baseline writes the findings of all rules: leave out --select.")

    configuration = choosing(_configured(config, fail_on, closed, baseline, cluster or []), select)
    report = run(paths, configuration, details=details)
    if write_baseline:
        _write_baseline(report, configuration.baseline)
        return
    report = _accepting(report, configuration)
    if fix or diff or owner:
        if _fixed(report, configuration, owner, diff=diff) and not diff:
            report = _accepting(run(paths, configuration, details=details), configuration)
        if diff:
            raise typer.Exit(1 if report.failed else 0)
    print_whole(_formatted(report, form, configuration, details=details))
    if report.failed:
        raise typer.Exit(1)


def _configured(
    config: Path | None,
    fail_on: Severity | None,
    closed: bool | None,  # noqa: FBT001
    baseline: Path | None,
    clusters: list[str],
) -> Configuration:
    """The configuration file's word, and over it that of the command line."""
    from dataclasses import replace  # noqa: PLC0415

    read = configuration_of(config)
    return replace(
        read,
        fail_on=read.fail_on if fail_on is None else fail_on,
        closed=read.closed if closed is None else closed,
        baseline=read.baseline if baseline is None else baseline,
        clusters=_clusters(clusters) if clusters else read.clusters,
    )


def _clusters(written: list[str]) -> dict[str, tuple[str, ...]]:
    """The clusters of the command line; several paths of one are separated by commas, or the option comes again."""
    found: dict[str, tuple[str, ...]] = {}
    for each in written:
        name, _, paths = each.partition("=")
        listed = [str(Path(path).absolute()) for path in paths.split(",") if path]
        if not name or not listed:
            raise typer.BadParameter(f"--cluster {each}: write NAME=PATH, such as --cluster prod=clusters/prod.")
        for path in listed:
            if not Path(path).exists():
                raise typer.BadParameter(f"--cluster {each}: there is no file or folder {path}.")
        found[name] = (*found.get(name, ()), *listed)
    return found


def _accepting(report: Report, configuration: Configuration) -> Report:
    if configuration.baseline is None:
        return report
    from policies.lint.report import with_baseline  # noqa: PLC0415

    return with_baseline(report, configuration.baseline, whole=configuration.chosen is None)


def _fixed(report: Report, configuration: Configuration, owner: str | None, *, diff: bool) -> bool:
    """Writes or shows the changes, and says what came of them; whether there are any."""
    from infra.cli.console import err  # noqa: PLC0415 -- Rich takes a tenth of the linter's start
    from policies.lint.fixes import fixes_of, owner_label  # noqa: PLC0415

    fixes = fixes_of(report, owner_label(owner, configuration.settings) if owner else None)
    for change in fixes.changes:
        if diff:
            print_whole(change.diff())
        else:
            change.write()
    fixed = sum(change.fixed for change in fixes.changes)
    err.print(f"{'would fix' if diff else 'fixed'} {fixed} findings in {len(fixes.changes)} files.")
    for placed, reason in fixes.left:
        err.print(f"{placed.path}:{placed.line}: {placed.finding.rule} is left: {reason}.", markup=False)
    return bool(fixes.changes)


def _write_baseline(report: Report, path: Path | None) -> None:
    from infra.cli.console import err  # noqa: PLC0415 -- Rich takes a tenth of the linter's start
    from policies.lint.report import written_baseline  # noqa: PLC0415

    if path is None:
        raise typer.BadParameter("--write-baseline needs --baseline FILE, or `baseline` in the configuration.")
    try:
        path.write_text(written_baseline(report, path), encoding="utf-8")
    except OSError as error:
        from capacity.values.errors import ExitCode, ExplainedError  # noqa: PLC0415

        remedy = "name a file in an existing, writable folder."
        raise ExplainedError(f"the baseline {path} cannot be written: {error.strerror}.", remedy, exit_code=ExitCode.BAD_USAGE) from error
    err.print(f"{path}: {len(report.open)} findings are accepted until they are gone.")


def _formatted(report: Report, form: LintFormat, configuration: Configuration, *, details: bool) -> str:
    if form is LintFormat.JSON:
        from policies.lint.formats import as_json  # noqa: PLC0415

        return as_json(report, details=details)
    if form is LintFormat.SARIF:
        from infra.cli.command_line import own_version  # noqa: PLC0415
        from policies.lint.formats import as_sarif  # noqa: PLC0415

        return as_sarif(report, own_version(), configuration)
    if form is LintFormat.JUNIT:
        from policies.lint.junit import as_junit  # noqa: PLC0415

        return as_junit(report)
    if form is LintFormat.GITHUB:
        from policies.lint.formats import as_github  # noqa: PLC0415

        return as_github(report)
    from policies.lint.formats import as_text  # noqa: PLC0415

    return as_text(report, colours=shows_colours(), details=details)
