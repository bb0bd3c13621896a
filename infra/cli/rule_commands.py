"""`flexspot rules`: which rules there are, and at which level."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer

from capacity.values.errors import ExitCode, ExplainedError
from infra.cli.command_line import command_group
from infra.cli.rule_options import Config, configuration_of

app = command_group("The rules that lint, previews and clusters judge by.")


class ListFormat(StrEnum):
    """How the list is printed."""

    TEXT = "text"
    JSON = "json"


@app.command("test")
def try_rules(
    config: Config = None,
) -> None:
    """Test the configuration's own rules on fixtures: passes_*.yaml, fails_*.yaml and ignores_*.yaml in flexspot-rules/RULE.

    Exit code 0: each object got the verdict in its file's name. 1: one did not, or a rule has no object that passes or none that fails.
    """
    from capacity.values.shown_text import printable  # noqa: PLC0415
    from infra.cli.console import out  # noqa: PLC0415 -- Rich takes a tenth of the linter's start
    from policies.lint.run import WORDS, tried  # noqa: PLC0415

    configuration = configuration_of(config)
    if not configuration.own:
        where = f"{config} has no own rules" if config else "no flexspot-lint.yaml here or above has own rules"
        raise ExplainedError(f"{where}.", "docs/lint.md says how to write one.", exit_code=ExitCode.BAD_USAGE)
    words = {verdict: word for word, verdict in WORDS.items()}
    right = 0
    told: list[str] = []
    for rule in configuration.own:
        found, wrong = tried(rule, configuration.folder)
        right += sum(each.right for each in found)
        told += wrong
        for each in found:
            if not each.right:
                got = words.get(each.got, "is undecided")
                told.append(f"{each.path}:{each.line}: {rule.name} {got}, and the file says {words[each.wanted]}. {each.message}".rstrip())
    for line in told:
        out.print(printable(line), soft_wrap=True, markup=False, highlight=False)
    out.print(f"{len(configuration.own)} rules, {right} objects as their files say, {len(told)} problems.", highlight=False)
    if told:
        raise typer.Exit(1)


@app.command("list")
def list_rules(
    form: Annotated[ListFormat, typer.Option("--format", help="text for people, json for programs.")] = ListFormat.TEXT,
    config: Config = None,
) -> None:
    """List every rule with its code, its severity, the level that the configuration gives it, and what it finds."""
    configuration = configuration_of(config)
    rules = sorted(configuration.known_rules, key=lambda rule: rule.code)
    levels = {rule.name: configuration.settings.level(rule).value for rule in rules}
    if form is ListFormat.JSON:
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
    from infra.cli.console import out  # noqa: PLC0415 -- Rich takes a tenth of the linter's start

    widths = [
        max(len(text) for text in column) for column in zip(*((rule.code, rule.name, levels[rule.name]) for rule in rules), strict=True)
    ]
    for rule in rules:
        cells = (rule.code, rule.name, levels[rule.name])
        padded = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        out.print(f"{padded}  {rule.severity.value:<8}  {rule.summary}", soft_wrap=True, markup=False, highlight=False)
