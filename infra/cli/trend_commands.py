"""`flexspot chargeback-trend`: saved reports of several months side by side."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path  # noqa: TC003 -- typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer

from capacity.values.errors import ExitCode, ExplainedError

if TYPE_CHECKING:
    from capacity.chargeback.reported_months import ReportedTeams


class TrendFormat(StrEnum):
    """How the trend is written: for a terminal, for programs, and for a message or an issue."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


def chargeback_trend(
    reports: Annotated[
        list[Path],
        typer.Option(
            "--report", metavar="FILE", help="What `flexspot chargeback --month --format json` wrote, one for each month; repeated."
        ),
    ],
    form: Annotated[TrendFormat, typer.Option("--format", help="text and markdown for people, json for programs.")] = TrendFormat.TEXT,
) -> None:
    """Say how what teams pay changed from month to month, which months were unusual, and what an unfinished one will come to.

    Exit code 1: a month between is missing, or a report is not complete. 2: bad usage, or reports that cannot be put side by side.
    """
    from capacity.chargeback.trend import TrendError, trend_of  # noqa: PLC0415
    from infra.cli.trend_report import trend_json, trend_markdown, trend_text  # noqa: PLC0415

    try:
        trend = trend_of([_read(each) for each in reports])
    except TrendError as error:
        problem, _, remedy = str(error).rpartition("; ")
        raise ExplainedError(f"{problem}.", f"{remedy}.", exit_code=ExitCode.BAD_USAGE) from error
    writers = {TrendFormat.TEXT: trend_text, TrendFormat.JSON: trend_json, TrendFormat.MARKDOWN: trend_markdown}
    sys.stdout.write(writers[form](trend))
    if not trend.complete:
        raise typer.Exit(ExitCode.UNMET)


def _read(path: Path) -> ReportedTeams:
    from capacity.chargeback.reported_months import read_teams  # noqa: PLC0415
    from capacity.chargeback.reported_nodes import ReportError  # noqa: PLC0415

    try:
        return read_teams(path)
    except (ReportError, OSError) as error:
        raise ExplainedError(
            f"the report {path} cannot be used.",
            "write one with flexspot chargeback --month YYYY-MM --format json --out FILE.",
            exit_code=ExitCode.BAD_USAGE,
            evidence=((error.strerror or str(error)) if isinstance(error, OSError) else str(error),),
        ) from error
