"""How groups of commands are made: help in plain lines, in which no name is cut, at `-h` and at `--help`."""

from __future__ import annotations

import math
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


class PlainGroup(TyperGroup):
    """A group whose help says the whole first paragraph of each command; click's own cuts it to one line."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Writes the commands and what they do."""
        shown = [(name, command) for name in self.list_commands(ctx) if (command := self.get_command(ctx, name)) and not command.hidden]
        with formatter.section("Commands"):
            formatter.write_dl([(name, " ".join((command.help or "").partition("\n\n")[0].split())) for name, command in shown])


class FiniteCommand(TyperCommand):
    """A command whose numbers are finite: the range of an option lets nan pass, and infinity where it has no end."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Raises BadParameter for nan and infinity, wherever a number is asked for."""
        left = super().parse_args(ctx, args)
        for option in self.params:
            value = ctx.params.get(option.name)
            if isinstance(value, float) and not math.isfinite(value):
                raise typer.BadParameter(f"{value} is not a finite number; write a finite one.", ctx=ctx, param=option)
        return left


class _Commands(typer.Typer):
    """What has commands of that kind."""

    def command(self, name: str | None = None, *, cls: type[TyperCommand] | None = None, **more: Any) -> Any:
        """As typer's."""
        return super().command(name, cls=cls or FiniteCommand, **more)


def command_group(words: str, **more: object) -> typer.Typer:
    """A group of commands with the help text `words`.

    Plain, because Rich's tables cut the names of options where a terminal has 80 columns.
    """
    names = {"help_option_names": ["-h", "--help"]}
    return _Commands(cls=PlainGroup, help=words, no_args_is_help=True, rich_markup_mode=None, context_settings=names, **more)  # pyrefly: ignore[bad-argument-type] -- typer's own
