"""`flexspot chargeback-reconcile`: a month's report held against the cloud's bill of that month, both from files."""

from __future__ import annotations

import sys
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from functools import partial
from pathlib import Path  # noqa: TC003 -- typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer

from capacity.values.errors import ExitCode, ExplainedError
from infra.cli.given_files import saved_report, told

if TYPE_CHECKING:
    from capacity.chargeback.bills.entries import Bill
    from capacity.chargeback.saved_report import ReportedMonth

TOLERANCE_PERCENT = "2"
"""What may stay unexplained. A node of an hour that is seen for a minute less is 2 % off."""

MAX_PERCENT = 100


class ReconcileFormat(StrEnum):
    """How the comparison is written: for a terminal, a spreadsheet, programs, or a comment."""

    TEXT = "text"
    CSV = "csv"
    JSON = "json"
    MARKDOWN = "markdown"


def chargeback_reconcile(
    report: Annotated[Path, typer.Option("--report", metavar="FILE", help="What `flexspot chargeback --format json` wrote.")],
    bills: Annotated[
        list[Path],
        typer.Option(
            "--bill",
            metavar="FILE",
            help="A bill of AWS (CUR 2.0 or legacy) or Google Cloud (BigQuery's billing export), or a FOCUS export of either, as CSV, JSON "
            "lines (Google Cloud), plain or in gzip, or Parquet (needs the extra parquet); or the folder that an export delivers; may be "
            "repeated.",
        ),
    ],
    tolerance: Annotated[
        str, typer.Option("--tolerance-percent", help="The percentage of the report's amount that may stay unexplained.")
    ] = TOLERANCE_PERCENT,
    form: Annotated[ReconcileFormat, typer.Option("--format", help="text and markdown for people, csv and json for programs.")] = (
        ReconcileFormat.TEXT
    ),
) -> None:
    """Explain the differences between a chargeback report and the cloud's bill, line by line and to the cent.

    Exit code 1: more than --tolerance-percent of the report is unexplained. 2: bad usage or input.
    """
    from capacity.chargeback.reconciling import reconcile  # noqa: PLC0415
    from capacity.chargeback.saved_report import read_report  # noqa: PLC0415
    from infra.cli.reconcile_report import reconcile_csv, reconcile_json, reconcile_markdown, reconcile_text  # noqa: PLC0415

    percent = _percent(tolerance)
    month = saved_report(report, read_report)
    found = reconcile(month, _bill(bills, month))
    writers = {
        ReconcileFormat.TEXT: partial(reconcile_text, percent=percent),
        ReconcileFormat.CSV: reconcile_csv,
        ReconcileFormat.JSON: partial(reconcile_json, percent=percent),
        ReconcileFormat.MARKDOWN: partial(reconcile_markdown, percent=percent),
    }
    sys.stdout.write(writers[form](found))
    if not found.within(percent):
        raise typer.Exit(ExitCode.UNMET)


def _percent(written: str) -> Decimal:
    try:
        percent = Decimal(written)
    except InvalidOperation:
        percent = Decimal(-1)
    if not percent.is_finite() or not 0 <= percent <= MAX_PERCENT:
        raise ExplainedError(
            f"--tolerance-percent is {written!r}.", f"give a number from 0 to {MAX_PERCENT}, such as 2.", exit_code=ExitCode.BAD_USAGE
        )
    return percent


def _bill(paths: list[Path], month: ReportedMonth) -> Bill:
    from capacity.chargeback.bills.entries import Bill, BillError  # noqa: PLC0415
    from capacity.chargeback.bills.files import is_parquet  # noqa: PLC0415
    from capacity.chargeback.bills.folders import parts_of, read_delivery  # noqa: PLC0415
    from infra.cli.price_refresh import library  # noqa: PLC0415

    bill, seen = Bill(month.period.start, month.period.end), dict[str, str]()
    for path in paths:
        try:
            if any(map(is_parquet, parts_of(path, month.period.start, month.period.end))):
                library("pyarrow.parquet", "parquet")
            for row in read_delivery(path, seen, month.period.start, month.period.end):
                bill.add(row)
        except (BillError, OSError) as error:
            raise ExplainedError(
                f"the bill {path} cannot be used.",
                "export it again as docs/guides/chargeback.md says; nothing of it was compared.",
                exit_code=ExitCode.BAD_USAGE,
                evidence=(told(error),),
            ) from error
    return bill
