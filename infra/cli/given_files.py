"""Files that a command is given, a saved chargeback report among them: what is found in one, or the error that says what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from capacity.catalog.data_files import DataFileError
from capacity.values.errors import ExitCode, ExplainedError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


FoundT = TypeVar("FoundT")


def given_file(path: Path, read: Callable[[Path], FoundT], form: str) -> FoundT:
    """What `read` finds in it; `form` says where its form is told. Raises ExplainedError."""
    try:
        return read(path)
    except FileNotFoundError as error:
        raise ExplainedError(
            f"there is no file {path}.", f"give the path of an existing file; {form}.", exit_code=ExitCode.BAD_USAGE
        ) from error
    except OSError as error:
        told = f"{path} cannot be read: {error.strerror or error}."
        raise ExplainedError(told, f"give a file that you can read; {form}.", exit_code=ExitCode.BAD_USAGE) from error
    except (DataFileError, UnicodeDecodeError) as error:
        remedy = f"fix it; {form}."
        raise ExplainedError(f"{path} cannot be used.", remedy, exit_code=ExitCode.BAD_USAGE, evidence=(str(error),)) from error


def saved_report(path: Path, read: Callable[[Path], FoundT], *, period: str = "") -> FoundT:
    """What `read` finds in it. `period`: options that the report must have been made with. Raises ExplainedError."""
    from capacity.chargeback.saved_report import ReportError  # noqa: PLC0415

    try:
        return read(path)
    except (ReportError, OSError) as error:
        made = " ".join(filter(None, ("flexspot chargeback", period, "--format json --out FILE")))
        raise ExplainedError(
            f"the report {path} cannot be used.", f"write one with {made}.", exit_code=ExitCode.BAD_USAGE, evidence=(told(error),)
        ) from error


def told(error: Exception) -> str:
    """Why a file cannot be used, without its name."""
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
