"""What every command line has: how it starts and ends, its table of commands, their help, and its version."""

from __future__ import annotations

import inspect
import math
import signal
import sys
from collections.abc import Mapping
from enum import StrEnum
from functools import wraps
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from flexspot.capacity.values.errors import ExitCode, ExplainedError
from flexspot.infra.loading import collect_rarely, explained_imports

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
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
        with explained_imports():
            app()
    except ExplainedError as error:
        # Rich takes a tenth of the linter's start.
        from flexspot.infra.cli.console import show_error  # noqa: PLC0415

        show_error(error)
        sys.exit(error.exit_code)
    except InterruptedByPersonError:
        from flexspot.infra.cli.console import show_interrupted  # noqa: PLC0415

        show_interrupted()
        sys.exit(INTERRUPTED)


class InterruptedByPersonError(BaseException):
    """Ctrl-C or a request to end. Not KeyboardInterrupt, which typer would turn into its own wordless exit."""


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise InterruptedByPersonError


def bad_usage(problem: str, remedy: str, evidence: tuple[str, ...] = ()) -> ExplainedError:
    """The error for a command that cannot be meant, or for input that cannot be used."""
    return ExplainedError(problem, remedy, exit_code=ExitCode.BAD_USAGE, evidence=evidence)


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


class Format(StrEnum):
    """How a report is printed: for people, or for programs."""

    TEXT = "text"
    JSON = "json"


class ReportFormat(StrEnum):
    """How a report is printed: for people, for programs, or for a comment on a pull request."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


AsFormat = Annotated[Format, typer.Option("--format", help="text for people, json for programs.")]


def with_options(name: str, options: Callable[..., Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Put the parameters of `options` in place of a command's parameter of that name, which gets what `options` returns for them."""
    shared = inspect.signature(options, eval_str=True).parameters

    def extended(command: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(command, eval_str=True).parameters
        listed = [option for key, one in own.items() for option in (shared.values() if key == name else (one,))]

        @wraps(command)
        def run(**given: Any) -> None:
            command(**{name: options(**{key: given.pop(key) for key in shared})}, **given)

        signature = inspect.Signature([each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in listed])
        vars(run).update(__signature__=signature, __annotations__={each.name: each.annotation for each in listed})
        return run

    return extended


class Command(NamedTuple):
    """A function of a module below flexspot.infra.cli, which is imported when the command runs or shows its help.

    `help` is the command's line in lists, and the beginning of the function's docstring.
    """

    module: str
    function: str
    help: str
    settings: Mapping[str, Any] = MappingProxyType({})

    def loaded(self, name: str) -> Any:
        """Return the command of that name."""
        # Relative, because a wheel has this package under another name.
        function = getattr(import_module(f".{self.module}", __package__), self.function)
        alone = typer.Typer(add_completion=False, rich_markup_mode=None, context_settings=_SETTINGS)
        settings = {**_SETTINGS, **self.settings}
        alone.command(name, cls=FiniteCommand, short_help=self.help, context_settings=settings)(function)
        return get_command(alone)


class CommandGroup(NamedTuple):
    """Commands under one name."""

    help: str
    commands: Mapping[str, Command]

    def loaded(self, name: str) -> Any:
        """Return the group of that name."""
        return get_command(command_group(self.help, self.commands, name=name, short_help=self.help, add_completion=False))


Table = Mapping[str, Command | CommandGroup]

_SETTINGS = {"help_option_names": ["-h", "--help"]}


class _Loaded(Mapping[str, Any]):
    """The commands of a table, each loaded when it is looked up."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def __getitem__(self, name: str) -> Any:
        return self._table[name].loaded(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)


class LazyGroup(TyperGroup):
    """A group that loads no command to list it. `instead` has what to use in place of commands that do not exist, by their words."""

    table: Table = MappingProxyType({})
    instead: Mapping[str, str] = MappingProxyType({})

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands: Any = _Loaded(self.table)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 -- typer's
        """Return the names in the order of the table."""
        return [*self.commands]

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 -- typer's
        """Write each command with its line of help."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, each.help) for name, each in self.table.items()])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Raises UsageError for a command that does not exist, with the one to use where that is known."""
        words = " ".join((*ctx.command_path.split()[1:], args[0]))
        instead = getattr(ctx.find_root().command, "instead", self.instead)
        if words in instead:
            ctx.fail(f"there is no command `{words}`; use `flexspot {instead[words]}`.")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Return what may follow: names and lines of help need no module."""
        self.commands = {name: TyperCommand(name, short_help=each.help) for name, each in self.table.items()}
        return super().shell_complete(ctx, incomplete)


def command_group(words: str, table: Table, instead: Mapping[str, str] | None = None, **more: Any) -> typer.Typer:
    """A group of commands with the help text `words`.

    Plain, because Rich's tables cut the names of options where a terminal has 80 columns.
    """
    kind = type("Commands", (LazyGroup,), {"table": table} | ({} if instead is None else {"instead": instead}))
    group = typer.Typer(cls=kind, help=words, no_args_is_help=True, rich_markup_mode=None, context_settings=_SETTINGS, **more)
    # Without commands of its own typer takes it for a group because it has a callback.
    group.callback(help=words)(_nothing)
    return group


def _nothing() -> None:
    """Runs before each command of a group."""


def _print_version(context: typer.Context, asked: bool) -> None:  # noqa: FBT001 -- typer's callback
    if asked:
        typer.echo(f"{context.command.name} {own_version()}")
        raise typer.Exit


_Version = Annotated[bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version, and nothing else.")]


def _with_version(shown: _Version = False) -> None:
    """Runs before each command of an application."""


def application(name: str, words: str, table: Table, instead: Mapping[str, str]) -> typer.Typer:
    """A command line of its own, which prints its version on request."""
    made = command_group(words, table, instead, name=name, add_completion=True, pretty_exceptions_enable=False)
    made.callback(help=words)(_with_version)
    return made


def own_version() -> str:
    """Return the version that is installed."""
    from importlib.metadata import version  # noqa: PLC0415 -- a twentieth of the linter's start, and seldom asked for

    return version("flexspot")
