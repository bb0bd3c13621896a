"""`flexspot lint`, `audit` and `rules`: check files or a running cluster by the rules, and list and test the rules."""

from __future__ import annotations

import gc
import json
import os
import re
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from flexspot.capacity.values.verdict import Severity
from flexspot.infra.audit import MOST_MINUTES, NEW_MINUTES
from flexspot.infra.cli.command_line import AsFormat, bad_usage, expect, option, own_version, write_whole
from flexspot.infra.project import here

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from flexspot.policies.lint.configuration import Configuration
    from flexspot.policies.lint.report import LintReport


Config = Annotated[
    Path | None, option("--config", "The configuration file. Default: the nearest flexspot-lint.yaml, in this folder or above.")
]
FailOn = Annotated[
    Severity | None, option("--fail-on", "Exit with 1 on findings of this severity or higher. Default: on findings of mandatory rules.")
]
Select = Annotated[
    list[str] | None, option("--select", "Check only these rules: names, codes, or patterns such as FLX00* or gpu-*.", metavar="RULE")
]


def configuration_of(config: Path | None) -> Configuration:
    """Return the configuration of `config`, or of the nearest file. The shipped configuration if there is no file."""
    from flexspot.policies.lint.configuration import Configuration, find_configuration, read_configuration  # noqa: PLC0415 -- only for commands that judge

    path = config or find_configuration(here())
    return Configuration() if path is None else read_configuration(path)


def choosing(configuration: Configuration, asked: list[str] | None) -> Configuration:
    """Restrict the configuration to the selected rules. Warn about selected rules that are disabled."""
    if not asked:
        return configuration
    from flexspot.policies.judging import Level  # noqa: PLC0415
    from flexspot.policies.lint.configuration import selected  # noqa: PLC0415

    names = [name.strip() for each in asked for name in each.split(",") if name.strip()]
    try:
        chosen = selected(names, configuration.known_rules)
    except ValueError as error:
        raise typer.BadParameter(f"--select: {error}") from error
    running = configuration.running
    off = [each.name for each in configuration.known_rules if each.name in chosen and running.level(each) is Level.DISABLED]
    if off:
        from flexspot.infra.cli.console import err  # noqa: PLC0415 -- Rich takes a tenth of the linter's start

        err.print(f"disabled by the configuration, and not checked: {', '.join(off)}.", markup=False)
    return replace(configuration, chosen=chosen)


def configured(config: Path | None, select: list[str] | None, **given: Any) -> Configuration:
    """Return the file's configuration, overridden by options of the command line."""
    read = configuration_of(config)
    return choosing(replace(read, **{name: value for name, value in given.items() if value is not None}), select)


def shows_colours() -> bool:
    """Return whether standard output shows colours, by Rich's rules: terminals and FORCE_COLOR enable them, NO_COLOR disables them."""
    return "NO_COLOR" not in os.environ and (bool(os.environ.get("FORCE_COLOR")) or sys.stdout.isatty())


def print_whole(text: str) -> None:
    """Print to standard output as UTF-8 in any locale. A reader that closes the pipe early causes no error."""
    try:
        sys.stdout.buffer.write(text.encode(errors="backslashreplace"))
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def lint(
    paths: Annotated[list[str], typer.Argument(metavar="PATH", help="Files and folders of YAML, JSON or Markdown; - is standard input.")],
    form: Annotated[
        Literal["text", "json", "sarif", "github", "junit"], option("--format", "text for people; the others for programs.")
    ] = "text",
    fail_on: FailOn = None,
    closed: Annotated[
        bool | None, option("--closed", "Treat the input as complete: objects that it refers to but does not contain are missing.")
    ] = None,
    config: Config = None,
    cluster: Annotated[
        list[str] | None,
        option("--cluster", "Files and folders of one cluster; objects are compared only within a cluster.", metavar="NAME=PATH"),
    ] = None,
    baseline: Annotated[Path | None, option("--baseline", "Accept the findings that this file lists.")] = None,
    write_baseline: Annotated[bool, option("--write-baseline", "Write all open findings to the baseline.")] = False,
    select: Select = None,
    details: Annotated[bool, option("--details", "Also list suppressed and undecided verdicts.")] = False,
    fix: Annotated[bool, option("--fix", "Write fixes that are certain into the YAML, then check it again.")] = False,
    diff: Annotated[bool, option("--diff", "Print what --fix would change; write nothing.")] = False,
    owner: Annotated[str | None, option("--owner", "The owner label that --fix adds where it is missing.", metavar="KEY=VALUE")] = None,
) -> None:
    """Check Kubernetes manifests with the same policies as previews.

    Exit code 0: no finding of a mandatory rule, or of the severity given by --fail-on. 1: at least one. 2: bad usage or a broken
    configuration.
    """
    # A short run that allocates much memory and keeps nearly all of it. Collecting reference cycles would take a fifth of the time.
    gc.disable()
    from flexspot.policies.lint.run import lint as run  # noqa: PLC0415 -- only this command needs it

    if write_baseline and select:
        raise typer.BadParameter("--write-baseline writes the findings of all rules. Remove --select.")

    clusters = _clusters(cluster or []) or None
    configuration = configured(config, select, fail_on=fail_on, closed=closed, baseline=baseline, clusters=clusters)
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
    _print_report(report, form, configuration, details=details)
    expect(not report.failed)


def _clusters(written: list[str]) -> dict[str, tuple[str, ...]]:
    """Return the clusters of the command line. Several paths of one are separated by commas, or the option is repeated."""
    found: dict[str, tuple[str, ...]] = {}
    for each in written:
        name, _, paths = each.partition("=")
        listed = [str(Path(path).absolute()) for path in paths.split(",") if path]
        if not name or not listed:
            raise typer.BadParameter(f"--cluster: {each} is not NAME=PATH. Write for example --cluster prod=clusters/prod.")
        for path in listed:
            if not Path(path).exists():
                raise typer.BadParameter(f"--cluster: {path} does not exist. Name a file or a folder.")
        found[name] = (*found.get(name, ()), *listed)
    return found


def _accepting(report: LintReport, configuration: Configuration) -> LintReport:
    if configuration.baseline is None:
        return report
    from flexspot.policies.lint.report import with_baseline  # noqa: PLC0415

    return with_baseline(report, configuration.baseline, whole=configuration.chosen is None)


def _fixed(report: LintReport, configuration: Configuration, owner: str | None, *, diff: bool) -> bool:
    """Write or show the fixes, and report the result. Return whether there are any."""
    from flexspot.infra.cli.console import err  # noqa: PLC0415 -- Rich takes a tenth of the linter's start
    from flexspot.policies.lint.fixes import fixes_of, owner_label  # noqa: PLC0415

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


def _write_baseline(report: LintReport, path: Path | None) -> None:
    from flexspot.infra.cli.console import err  # noqa: PLC0415 -- Rich takes a tenth of the linter's start
    from flexspot.policies.lint.report import written_baseline  # noqa: PLC0415

    if path is None:
        raise typer.BadParameter("--write-baseline requires --baseline FILE, or `baseline` in the configuration.")
    write_whole(path, written_baseline(report, path), "the baseline")
    err.print(f"{path}: {len(report.open)} findings are accepted until they are gone.")


def _print_report(report: LintReport, form: str, configuration: Configuration, *, details: bool) -> None:
    from flexspot.policies.lint import formats  # noqa: PLC0415

    if form == "junit":
        from flexspot.policies.lint.formats import as_junit  # noqa: PLC0415

        print_whole(as_junit(report))
        return
    writers: dict[str, Callable[[], str]] = {
        "text": lambda: formats.as_text(report, colours=shows_colours(), details=details),
        "json": lambda: formats.as_json(report, details=details),
        "sarif": lambda: formats.as_sarif(report, own_version(), configuration),
        "github": lambda: formats.as_github(report),
    }
    print_whole(writers[form]())


def try_rules(
    config: Config = None,
) -> None:
    """Test the configuration's own rules on fixtures: passes_*.yaml, fails_*.yaml and ignores_*.yaml in flexspot-rules/RULE.

    Exit code 0: each object got the verdict in its file's name. 1: one did not, or a rule has no object that passes or none that fails.
    """
    from flexspot.capacity.values.shown_text import printable  # noqa: PLC0415
    from flexspot.infra.cli.console import out  # noqa: PLC0415 -- Rich takes a tenth of the linter's start
    from flexspot.policies.lint.run import WORDS, tried  # noqa: PLC0415

    configuration = configuration_of(config)
    if not configuration.own:
        where = f"{config} has no own rules" if config else "no flexspot-lint.yaml here or above has own rules"
        raise bad_usage(f"{where}.", "add a rule; docs/lint.md describes how.")
    words = {verdict: word for word, verdict in WORDS.items()}
    right = 0
    problems: list[str] = []
    for rule in configuration.own:
        found, wrong = tried(rule, configuration.folder)
        right += sum(each.right for each in found)
        problems += wrong
        for each in found:
            if not each.right:
                got = words.get(each.got, "is undecided")
                place = f"{each.path}:{each.line}"
                problems.append(f"{place}: {rule.name} {got}, and the file says {words[each.wanted]}. {each.message}".rstrip())
    for line in problems:
        out.print(printable(line), soft_wrap=True, markup=False, highlight=False)
    out.print(f"{len(configuration.own)} rules, {right} objects as their files say, {len(problems)} problems.", highlight=False)
    expect(not problems)


def list_rules(
    form: AsFormat = "text",
    config: Config = None,
) -> None:
    """List every rule with its code, its severity, its level, and what it finds. The configuration gives the level."""
    configuration = configuration_of(config)
    rules = sorted(configuration.known_rules, key=lambda rule: rule.code)
    levels = {rule.name: configuration.settings.level(rule).value for rule in rules}
    if form == "json":
        listed = [
            {
                "code": rule.code,
                "rule": rule.name,
                "severity": rule.severity.value,
                "level": levels[rule.name],
                "clouds": [cloud.value for cloud in rule.clouds],
                "finds": rule.summary,
                "why": rule.why,
                "remediation": rule.remediation,
                "page": configuration.page(rule.page),
            }
            for rule in rules
        ]
        typer.echo(json.dumps(listed, indent=2))
        return
    from flexspot.infra.cli.console import out  # noqa: PLC0415 -- Rich takes a tenth of the linter's start

    widths = [
        max(len(text) for text in column) for column in zip(*((rule.code, rule.name, levels[rule.name]) for rule in rules), strict=True)
    ]
    for rule in rules:
        cells = (rule.code, rule.name, levels[rule.name])
        padded = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        out.print(f"{padded}  {rule.severity.value:<8}  {rule.summary}", soft_wrap=True, markup=False, highlight=False)


def audit(
    kubeconfig: Annotated[
        Path | None,
        option("--kubeconfig", "The kubeconfig file. Default: the one that kubectl would use, or in a pod its service account."),
    ] = None,
    context: Annotated[str | None, option("--context", "A context of the kubeconfig. Default: its current one.")] = None,
    namespace: Annotated[list[str] | None, option("--namespace -n", "Check only this namespace. Repeatable. Default: all.")] = None,
    form: AsFormat = "text",
    fail_on: FailOn = None,
    config: Config = None,
    select: Select = None,
    idle_after: Annotated[
        int,
        option("--idle-after", "Minutes after its creation that a node may be without work.", min=0, max=MOST_MINUTES, metavar="MINUTES"),
    ] = NEW_MINUTES,
    details: Annotated[bool, option("--details", "Also list undecided verdicts.")] = False,
    save: Annotated[
        Path | None,
        option("--save", "Write the objects with findings to this folder as YAML, for flexspot lint --fix --diff.", metavar="FOLDER"),
    ] = None,
) -> None:
    """Check a running cluster with the rules of lint, and report wasted money. The most urgent comes first.

    Needs only permission to list. Exit code 0: no finding that fails. 1: at least one. 2: bad usage, or the cluster does not answer.
    """
    from flexspot.infra.audit.audit import audit as run  # noqa: PLC0415 -- only this command needs it
    from flexspot.infra.audit.cluster_lists import ClusterLists  # noqa: PLC0415
    from flexspot.infra.audit.formats import as_json, as_text  # noqa: PLC0415
    from flexspot.infra.kubeconfig import access  # noqa: PLC0415

    configuration = configured(config, select, fail_on=fail_on)
    lists = ClusterLists(access(kubeconfig, context, also_in_pod=True), namespace or ())
    if save is not None:
        _make(save)
    report = run(lists, configuration, idle_after=timedelta(minutes=idle_after))
    print_whole(as_json(report, details=details) if form == "json" else as_text(report, details=details))
    if save is not None:
        _save(report.manifests, save)
    expect(not report.failed)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        taken = next((each for each in (folder, *folder.parents) if each.is_file()), None)
        remedy = "name a writable folder with free space." if taken is None else f"name a folder; {taken} is a file."
        raise bad_usage(f"{_SAVED} cannot be written to {folder}: {error.strerror or error}.", remedy) from error


_SAVED = "the objects with findings"


def _save(manifests: Mapping[str, dict[str, Any]], folder: Path) -> None:
    """Write one file for each object, named after it."""
    import yaml  # noqa: PLC0415

    for identity, manifest in manifests.items():
        name = re.sub(r"[^A-Za-z0-9.-]+", "_", identity)
        write_whole(folder / f"{name}.yaml", yaml.safe_dump(manifest, sort_keys=False), _SAVED)
