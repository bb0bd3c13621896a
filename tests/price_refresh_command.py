"""`flexspot prices refresh` as a user runs it, for tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typer.testing import CliRunner

from flexspot.capacity.values.errors import ExplainedError
from flexspot.infra.cli.app import app

if TYPE_CHECKING:
    from pathlib import Path


def refresh(*arguments: str | Path, code: int = 0) -> str:
    """Return the command's output. An ExplainedError is shown as `main` shows it."""
    result = CliRunner().invoke(app, ["prices", "refresh", *map(str, arguments)], env={"COLUMNS": "160"})
    if isinstance(result.exception, ExplainedError):
        assert result.exception.exit_code == code
        return str(result.exception)
    assert result.exit_code == code, result.output
    return result.output
