"""Parts that every command shares: start and end, the table of commands, and common files and options."""

from __future__ import annotations

import inspect
import math
import signal
import sys
from collections.abc import Mapping
from functools import wraps
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeVar, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from flexspot.capacity.values.errors import ExitCode, ExplainedError, SettingsError
from flexspot.infra.loading import collect_rarely, explained_imports

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import FrameType

    from pydantic import BaseModel

    from flexspot.capacity.plan.build import StackPlan


INTERRUPTED = 130
"""The exit code that shells use for a command ended by Ctrl-C."""


def started(app: typer.Typer) -> None:
    """Run the command line. Exit codes: 0 fine, 1 findings or an unmet expectation, 2 bad usage or input, 130 interrupted."""
    collect_rarely()
    # A terminated command cleans up like an interrupted one: it ends its children and releases its locks.
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
    """Ctrl-C or a request to end. Not KeyboardInterrupt, for which typer exits without a message."""


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise InterruptedByPersonError


def bad_usage(problem: str, remedy: str, evidence: tuple[str, ...] = ()) -> ExplainedError:
    """Return the error for a command that does not make sense, or for unusable input."""
    return ExplainedError(problem, remedy, exit_code=ExitCode.BAD_USAGE, evidence=evidence)


class FiniteCommand(TyperCommand):
    """A command that rejects numbers that are not finite. An option's range accepts nan, and infinity if it has no bound."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Raise BadParameter for nan and infinity in any number."""
        left = super().parse_args(ctx, args)
        for option in self.params:
            value = ctx.params.get(option.name)
            if isinstance(value, float) and not math.isfinite(value):
                raise typer.BadParameter(f"{value} is not a finite number. Give a finite one.", ctx=ctx, param=option)
        return left


def option(names: str, words: str, **more: Any) -> Any:
    """Return an option of a command by its names, with its line of help."""
    return typer.Option(*names.split(), help=words, **more)


Format = Literal["text", "json"]
"""Form of a report: for people, or for programs."""

ReportFormat = Literal["text", "json", "markdown"]
"""Form of a report that may also be a comment on a pull request."""

AsFormat = Annotated[Format, option("--format", "text for people, json for programs.")]


def expect(met: object) -> None:
    """End the command with exit code 1 unless `met`."""
    if not met:
        raise typer.Exit(ExitCode.UNMET)


def print_as(form: str, **writers: Callable[[], str]) -> None:
    """Print a report in one of its forms."""
    sys.stdout.write(writers[form]())


def with_options(name: str, options: Callable[..., Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that replaces a command's parameter `name` by those of `options`.

    The command gets the return value of `options`.
    """
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


def options_of(model: type[BaseModel], described: Mapping[str, tuple[str, str]]) -> Callable[..., dict[str, Any]]:
    """Return the options that set fields of a model, for `with_options`. `described` has each option's names and help, by field.

    Type and default are those of the field. Each option may be omitted: the model reports missing fields.
    """
    types = get_type_hints(model)
    listed: list[inspect.Parameter] = []
    for field, (names, words) in described.items():
        required = model.model_fields[field].is_required()
        annotation = Annotated[types[field] | None if required else types[field], option(names, words)]
        default = None if required else model.model_fields[field].default
        listed.append(inspect.Parameter(field, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation))

    def given(**values: Any) -> dict[str, Any]:
        return {field: value for field, value in values.items() if value is not None}

    vars(given)["__signature__"] = inspect.Signature(listed)
    return given


class Command(NamedTuple):
    """A function of a module below flexspot.infra.cli, which is imported when the command runs or shows its help."""

    module: str
    function: str
    help: str
    """The command's line in lists, and the beginning of the function's docstring."""
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


class LazyGroup(TyperGroup):
    """A group that loads no command to list it."""

    table: Table = MappingProxyType({})
    instead: Mapping[str, str] = MappingProxyType({})
    """Replacements for commands that do not exist, by their words."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {name: TyperCommand(name, short_help=each.help) for name, each in self.table.items()}

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command that will run or show its help. This loads its module."""
        return self.table[cmd_name].loaded(cmd_name) if cmd_name in self.table else super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 -- typer's
        """Write each command with its line of help."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, each.help) for name, each in self.table.items()])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Raise UsageError for a command that does not exist, with its replacement if there is one."""
        words = " ".join((*ctx.command_path.split()[1:], args[0]))
        instead = getattr(ctx.find_root().command, "instead", self.instead)
        if words in instead:
            ctx.fail(f"there is no command `{words}`; use `flexspot {instead[words]}`.")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Return completions. Names and lines of help need no module."""
        self.table = {}
        return super().shell_complete(ctx, incomplete)


def command_group(
    words: str, table: Table, callback: Callable[..., None] = lambda: None, instead: Mapping[str, str] = MappingProxyType({}), **more: Any
) -> typer.Typer:
    """Return a group of commands with the help text `words`. `callback` runs before each of them.

    Plain text, because Rich's tables truncate the names of options in a terminal of 80 columns.
    """
    kind = type("Commands", (LazyGroup,), {"table": table, "instead": instead})
    group = typer.Typer(cls=kind, help=words, no_args_is_help=True, rich_markup_mode=None, context_settings=_SETTINGS, **more)
    # The group has no typer commands, so typer treats it as a group only because of the callback.
    group.callback(help=words)(callback)
    return group


def _print_version(context: typer.Context, asked: bool) -> None:  # noqa: FBT001 -- typer's callback
    if asked:
        typer.echo(f"{context.command.name} {own_version()}")
        raise typer.Exit


_Version = Annotated[bool, option("--version", "Print the version, and nothing else.", callback=_print_version, is_eager=True)]


def _with_version(shown: _Version = False) -> None:
    """Accept `--version` before each command of an application."""


def application(name: str, words: str, table: Table, instead: Mapping[str, str]) -> typer.Typer:
    """Return a separate command line, which prints its version on request."""
    return command_group(words, table, _with_version, instead, name=name, add_completion=True, pretty_exceptions_enable=False)


def own_version() -> str:
    """Return the installed version."""
    from importlib.metadata import version  # noqa: PLC0415 -- the import takes 5% of the linter's start

    return version("flexspot")


FoundT = TypeVar("FoundT")


def given_file(path: Path, read: Callable[[Path], FoundT], form: str) -> FoundT:
    """Return the result of `read` for a file. Raises ExplainedError.

    `form` ends the remedy: it names the page that describes the file's format.
    """
    from flexspot.capacity.catalog.data_files import DataFileError  # noqa: PLC0415 -- pydantic takes a third of the linter's start

    try:
        return read(path)
    except FileNotFoundError as error:
        raise bad_usage(f"{path} does not exist.", f"name an existing file; {form}.") from error
    except OSError as error:
        problem = f"{path} cannot be read: {error.strerror or error}."
        raise bad_usage(problem, f"name a file that you can read; {form}.") from error
    except (DataFileError, UnicodeDecodeError) as error:
        remedy = f"fix the file; {form}."
        raise bad_usage(f"{path} cannot be used.", remedy, evidence=(str(error),)) from error


def saved_report(path: Path, read: Callable[[Path], FoundT], *, period: str = "") -> FoundT:
    """Return the result of `read` for a saved report. `period` are the options that create such a report. Raises ExplainedError."""
    from flexspot.capacity.chargeback.saved_report import ReportError  # noqa: PLC0415 -- most given files are not reports

    try:
        return read(path)
    except (ReportError, OSError) as error:
        made = " ".join(filter(None, ("flexspot chargeback report", period, "--format json --out FILE")))
        raise bad_usage(f"--report: {path} cannot be used.", f"write one with `{made}`.", evidence=(reason_of(error),)) from error


def reason_of(error: Exception) -> str:
    """Return the reason why a file cannot be used, without its name."""
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


PRICE_FORM = "its format is that of flexspot/capacity/catalog/prices"
"""Format of price files, for `given_file`."""

Stack = Annotated[str, option("--stack -s", "The stack: NAME of Pulumi.NAME.yaml in the project's folder of stacks.")]


def planned(stack: str) -> StackPlan:
    """Return a stack's settings and their plan. Raises ExplainedError with all problems of the settings."""
    from flexspot.infra.declaring.rules import checked_stack  # noqa: PLC0415

    return of_stack(stack, checked_stack)


def of_stack(stack: str, read: Callable[[Path], FoundT]) -> FoundT:
    """Return the result of `read` for the stack's file. Raises ExplainedError with all its problems."""
    from flexspot.infra.project import project_here  # noqa: PLC0415 -- listing commands needs no YAML

    project = project_here()
    path = project.stack_file(stack)
    try:
        return read(path)
    except SettingsError as error:
        evidence = tuple(map(str, error.problems))
        remedy = "fix each line above, then run again."
        raise bad_usage(f"{project.shown(path)} cannot be used.", remedy, evidence=evidence) from error


def write_whole(path: Path, text: str, what: str = "") -> None:
    """Write the whole file or nothing: no reader sees half a file. `what` names its content in the error. Raises ExplainedError."""
    half = path.with_name(f".{path.name}.half")
    try:
        half.write_text(text, encoding="utf-8", newline="")
        half.replace(path)
    except OSError as error:
        half.unlink(missing_ok=True)
        remedy = "name a file in an existing, writable folder."
        named = f"{what} cannot be written to {path}" if what else f"{path} cannot be written"
        raise bad_usage(f"{named}: {error.strerror or error}.", remedy) from error
