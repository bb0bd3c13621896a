"""What every command line has: how it is started and ended, how its groups and their help are made, and which version it is of."""

from __future__ import annotations

import math
import signal
import sys
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

from capacity.values.errors import ExplainedError
from infra.collector import collect_rarely

if TYPE_CHECKING:
    from types import FrameType


INTERRUPTED = 130
"""The exit code that shells give a command ended by Ctrl-C."""


def started(app: typer.Typer) -> None:
    """Runs the command line. Exit codes: 0 fine, 1 findings or an unmet expectation, 2 bad usage or input, 130 interrupted."""
    collect_rarely()
    # A terminated command cleans up like an interrupted one: children are ended, locks are given back.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    try:
        app()
    except ExplainedError as error:
        # Rich takes a tenth of the linter's start.
        from infra.cli.console import show_error  # noqa: PLC0415

        show_error(error)
        sys.exit(error.exit_code)
    except InterruptedByPersonError:
        from infra.cli.console import show_interrupted  # noqa: PLC0415

        show_interrupted()
        sys.exit(INTERRUPTED)


class InterruptedByPersonError(BaseException):
    """Ctrl-C or a request to end. Not KeyboardInterrupt, which typer would turn into its own wordless exit."""


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise InterruptedByPersonError


class _FirstParagraph:
    """A command or a group that a list of commands describes by the whole first paragraph of its help; click cuts it to one line."""

    help: str | None = None

    def get_short_help_str(self, limit: int = 0) -> str:  # noqa: ARG002 -- click's
        """Return the first paragraph as one line."""
        return " ".join((self.help or "").partition("\n\n")[0].split())


class PlainGroup(_FirstParagraph, TyperGroup):
    """A group of commands."""


class FiniteCommand(_FirstParagraph, TyperCommand):
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


LINTER = "flexspot_lint"
"""The package of the linter's own distribution; hatch_build.py names it so, too."""


def own_version() -> str:
    """The version of whichever it is."""
    from importlib.metadata import version  # noqa: PLC0415 -- a twentieth of the linter's start, and seldom asked for

    return version("flexspot-lint" if __name__.startswith(f"{LINTER}.") else "flexspot")
