"""A saved chargeback report that a command is given, or the error that says what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from capacity.values.errors import ExitCode, ExplainedError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FoundT = TypeVar("FoundT")


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
