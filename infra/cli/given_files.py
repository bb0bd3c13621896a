"""A file that an option names, or the error that says whether it is not there or what is wrong in it."""

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
