"""Files that a command is given, a saved chargeback report among them: what is found in one, or the error that says what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from flexspot.capacity.catalog.data_files import DataFileError
from flexspot.capacity.values.errors import SettingsError
from flexspot.infra.cli.command_line import bad_usage
from flexspot.infra.project import project_here

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from flexspot.capacity.plan.build import StackPlan


FoundT = TypeVar("FoundT")


def given_file(path: Path, read: Callable[[Path], FoundT], form: str) -> FoundT:
    """What `read` finds in it; `form` says where its form is told. Raises ExplainedError."""
    try:
        return read(path)
    except FileNotFoundError as error:
        raise bad_usage(f"there is no file {path}.", f"give the path of an existing file; {form}.") from error
    except OSError as error:
        told = f"{path} cannot be read: {error.strerror or error}."
        raise bad_usage(told, f"give a file that you can read; {form}.") from error
    except (DataFileError, UnicodeDecodeError) as error:
        remedy = f"fix it; {form}."
        raise bad_usage(f"{path} cannot be used.", remedy, evidence=(str(error),)) from error


def saved_report(path: Path, read: Callable[[Path], FoundT], *, period: str = "") -> FoundT:
    """What `read` finds in it. `period`: options that the report must have been made with. Raises ExplainedError."""
    from flexspot.capacity.chargeback.saved_report import ReportError  # noqa: PLC0415 -- most given files are none

    try:
        return read(path)
    except (ReportError, OSError) as error:
        made = " ".join(filter(None, ("flexspot chargeback report", period, "--format json --out FILE")))
        raise bad_usage(f"the report {path} cannot be used.", f"write one with {made}.", evidence=(told(error),)) from error


def told(error: Exception) -> str:
    """Why a file cannot be used, without its name."""
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


Stack = Annotated[str, typer.Option("--stack", "-s", help="Which stack: NAME of Pulumi.NAME.yaml in the project's folder of stacks.")]


def planned(stack: str) -> StackPlan:
    """The settings of a stack and their plan. Raises ExplainedError with everything that is wrong with them."""
    from flexspot.infra.declaring.rules import checked_stack  # noqa: PLC0415 -- the rules are loaded only for who plans a stack

    return of_stack(stack, checked_stack)


def of_stack(stack: str, read: Callable[[Path], FoundT]) -> FoundT:
    """What `read` finds in the stack's file. Raises ExplainedError with everything that is wrong with it."""
    project = project_here()
    path = project.stack_file(stack)
    try:
        return read(path)
    except SettingsError as error:
        told = tuple(map(str, error.problems))
        remedy = "fix each line above, then run again."
        raise bad_usage(f"{project.shown(path)} cannot be used.", remedy, evidence=told) from error


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
