"""The options that say by which rules `flexspot lint`, `audit` and `rules` judge, and the configuration that they come to."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from capacity.values.verdict import Severity
from infra.project import here

if TYPE_CHECKING:
    from policies.lint.configuration import Configuration

Config = Annotated[
    Path | None, typer.Option("--config", help="The configuration file. Default: the nearest flexspot-lint.yaml, in this folder or above.")
]
FailOn = Annotated[
    Severity | None,
    typer.Option("--fail-on", help="Exit with 1 on findings of this severity or higher. Default: on findings of mandatory rules."),
]
Select = Annotated[
    list[str] | None,
    typer.Option("--select", metavar="RULE", help="Check only these rules: names, codes, or patterns such as FLX00* or gpu-*."),
]


def configuration_of(config: Path | None) -> Configuration:
    """What the file says that is named, or else the nearest one; the shipped configuration where there is none."""
    from policies.lint.configuration import Configuration, find_configuration, read_configuration  # noqa: PLC0415 -- only those who judge

    path = config or find_configuration(here())
    return Configuration() if path is None else read_configuration(path)


def choosing(configuration: Configuration, asked: list[str] | None) -> Configuration:
    """The configuration with the rules alone that `--select` names. Those of them that are off are told of: they stay off."""
    if not asked:
        return configuration
    from dataclasses import replace  # noqa: PLC0415

    from policies.judging import Level  # noqa: PLC0415
    from policies.lint.configuration import selected  # noqa: PLC0415

    names = [name.strip() for each in asked for name in each.split(",") if name.strip()]
    try:
        chosen = selected(names, configuration.known_rules)
    except ValueError as error:
        raise typer.BadParameter(f"--select: {error}") from error
    running = configuration.running
    off = [each.name for each in configuration.known_rules if each.name in chosen and running.level(each) is Level.DISABLED]
    if off:
        from infra.cli.console import err  # noqa: PLC0415 -- Rich takes a tenth of the linter's start

        err.print(f"disabled by the configuration, and not judged by: {', '.join(off)}.", markup=False)
    return replace(configuration, chosen=chosen)


def shows_colours() -> bool:
    """Whether standard output shows colours, as Rich tells it: a terminal does, or anything with FORCE_COLOR, and nothing with NO_COLOR."""
    return "NO_COLOR" not in os.environ and (bool(os.environ.get("FORCE_COLOR")) or sys.stdout.isatty())


def print_whole(text: str) -> None:
    """To standard output as UTF-8, whatever the locale; whoever reads only its beginning is not told of a broken pipe."""
    try:
        sys.stdout.buffer.write(text.encode(errors="backslashreplace"))
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
