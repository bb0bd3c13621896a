"""`flexspot rules`: which rules there are, and at which level."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from infra.cli.command_group import command_group
from infra.cli.console import out

app = command_group("The rules that lint, previews and clusters judge by.")


class ListFormat(StrEnum):
    """How the list is printed."""

    TEXT = "text"
    JSON = "json"


@app.command("list")
def list_rules(
    form: Annotated[ListFormat, typer.Option("--format", help="text for people, json for programs.")] = ListFormat.TEXT,
    config: Annotated[
        Path | None, typer.Option("--config", help="The configuration. Default: the nearest flexspot-lint.yaml, here or above.")
    ] = None,
) -> None:
    """List every rule with its code, its severity, the level that the configuration gives it, and what it finds."""
    from policies.lint.configuration import Configuration, find_configuration, read_configuration  # noqa: PLC0415

    path = config or find_configuration(Path.cwd())
    configuration = Configuration() if path is None else read_configuration(path)
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
    widths = [
        max(len(text) for text in column) for column in zip(*((rule.code, rule.name, levels[rule.name]) for rule in rules), strict=True)
    ]
    for rule in rules:
        cells = (rule.code, rule.name, levels[rule.name])
        padded = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        out.print(f"{padded}  {rule.severity.value:<8}  {rule.summary}", soft_wrap=True, markup=False, highlight=False)
