"""`flexspot chargeback-trend`: saved reports of several months side by side."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path  # noqa: TC003 -- typer reads the annotations
from typing import Annotated

import typer

from capacity.values.errors import ExitCode
from infra.cli.given_files import saved_report


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
    """Show how the teams' costs change from month to month.

    Exit code 1: a month in between is missing, or a report is incomplete. 2: bad usage, or reports that cannot be compared.
    """
    from capacity.chargeback.saved_report import read_teams, trend_of  # noqa: PLC0415
    from infra.cli.trend_report import trend_json, trend_markdown, trend_text  # noqa: PLC0415

    trend = trend_of([saved_report(each, read_teams, period="--month YYYY-MM") for each in reports])
    writers = {TrendFormat.TEXT: trend_text, TrendFormat.JSON: trend_json, TrendFormat.MARKDOWN: trend_markdown}
    sys.stdout.write(writers[form](trend))
    if not trend.complete:
        raise typer.Exit(ExitCode.UNMET)
