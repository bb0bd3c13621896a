"""`flexspot chargeback reconcile` and `trend`: saved reports against the cloud's bill, and side by side."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from flexspot.capacity.chargeback import reconciling
from flexspot.capacity.chargeback.bills.entries import Bill, BillError
from flexspot.capacity.chargeback.bills.folders import is_parquet, parts_of, read_delivery
from flexspot.capacity.chargeback.bills.gcp import FAMILY
from flexspot.capacity.chargeback.reconciling import Reason
from flexspot.capacity.chargeback.saved_report import read_report, read_teams, trend_of
from flexspot.capacity.values.shown_text import spreadsheet_cell
from flexspot.infra.cli.command_line import ReportFormat, bad_usage, expect, option, print_as, reason_of, saved_report
from flexspot.infra.cli.console import Table, TabularReport, as_csv, as_json
from flexspot.infra.cli.money.chargeback_formats import utc
from flexspot.infra.cli.money.machine_prices import ALL_PERCENT, number_option
from flexspot.infra.loading import library

if TYPE_CHECKING:
    from collections.abc import Iterator
    from fractions import Fraction

    from flexspot.capacity.chargeback.reconciling import MachineLine, Reconciliation
    from flexspot.capacity.chargeback.saved_report import MonthOf, ReportedMonth, Row, Trend


_OTHERS_SHOWN = 40


def reconcile_json(found: Reconciliation, percent: Decimal) -> str:
    """Return the whole reconciliation as JSON."""
    written: dict[str, Any] = {
        "period": found.name,
        "currency": "USD",
        "report_usd": str(found.report_usd),
        "bill_usd": str(found.bill_usd),
        "difference_usd": str(found.bill_usd - found.report_usd),
        "unexplained_usd": str(found.unexplained_usd),
        "tolerance_percent": str(percent),
        "within_tolerance": found.within(percent),
        "by_reason": [{"reason": reason.value, "explained": reason.explains, "usd": str(usd)} for reason, usd in found.by_reason.items()],
        "lines": [
            {
                "cloud": each.key.cloud,
                "region": each.key.region,
                "machine": each.key.machine,
                "bought_as": each.key.bought,
                "capacity_types": list(each.capacity_types),
                "unit": _unit(each),
                "report_usd": str(each.report_usd),
                "report_hours": None if each.report_hours is None else round(float(each.report_hours), 4),
                "bill_usd": str(each.bill_usd),
                "bill_hours": round(float(each.bill_hours), 4),
                "report_usd_per_hour": None if each.report_price is None else round(float(each.report_price), 6),
                "bill_usd_per_hour": None if each.bill_price is None else round(float(each.bill_price), 6),
                "difference_usd": str(each.difference),
                "why": [{"reason": reason.value, "explained": reason.explains, "usd": str(usd)} for reason, usd in each.parts],
            }
            for each in found.lines
        ],
        "others": [
            {
                "cloud": each.cloud,
                "reason": each.reason.value,
                "explained": each.reason.explains,
                "what": each.what,
                "rows": each.rows,
                "usd": str(each.usd),
            }
            for each in found.others
        ],
        "notes": list(found.notes),
    }
    return as_json(written)


def reconcile_csv(found: Reconciliation) -> str:
    """Return CSV with the report's amounts and all differences, a row each. `usd` sums to the bill."""
    period = spreadsheet_cell(found.name)
    rows: list[tuple[str, ...]] = [("period", "cloud", "region", "machine", "bought_as", "what", "reason", "explained", "usd")]
    for line in found.lines:
        place = tuple(map(spreadsheet_cell, (line.key.cloud, line.key.region, line.key.machine, line.key.bought)))
        rows.append((period, *place, "", "report", "", str(line.report_usd)))
        rows += [(period, *place, "", reason.value, _yes(reason), str(usd)) for reason, usd in line.parts]
    for each in found.others:
        what = spreadsheet_cell(each.what)
        rows.append((period, each.cloud, "", "", "", what, each.reason.value, _yes(each.reason), str(each.usd)))
    return as_csv(rows)


def reconciliation(found: Reconciliation, percent: Decimal) -> TabularReport:
    """Return the sums first, then the reasons, the machines, and other lines of the bill."""
    return TabularReport(f"Chargeback {found.name} and the bill", [*_tables(found)], found.notes, sums=[*_summary(found, percent)])


def _summary(found: Reconciliation, percent: Decimal) -> Iterator[tuple[str, str]]:
    yield "report", f"{found.report_usd:,} USD"
    yield "bill", f"{found.bill_usd:,} USD"
    yield "difference", f"{_signed(found.bill_usd - found.report_usd)} USD"
    verdict = "within" if found.within(percent) else "more than"
    yield "unexplained", f"{found.unexplained_usd:,} USD, {verdict} {percent} % of the report"


def _tables(found: Reconciliation) -> Iterator[Table]:
    reasons = ((reason.value, _signed(usd)) for reason, usd in found.by_reason.items())
    whole = (("report", f"{found.report_usd:,}"), *reasons, ("bill", f"{found.bill_usd:,}"))
    yield Table("from the report to the bill", ("why", "USD"), whole)
    if found.lines:
        headings = ("machine", "bought as", "report USD", "bill USD", "report h", "bill h", "difference", "why")
        yield Table("by machine", headings, tuple(map(_machine_row, found.lines)), 2, ends_in_text=True)
    if found.others:
        dearest = sorted(found.others, key=lambda each: -abs(each.usd))
        rows = [(each.cloud, each.reason.value, each.what, f"{each.rows:,}", _signed(each.usd)) for each in dearest[:_OTHERS_SHOWN]]
        if left := dearest[_OTHERS_SHOWN:]:
            rows.append(("", "", f"{len(left):,} more, all in json and csv", "", _signed(sum(each.usd for each in left))))
        yield Table("else on the bill", ("cloud", "why", "what", "rows", "USD"), tuple(rows), 3)


def _machine_row(line: MachineLine) -> tuple[str, ...]:
    key = line.key
    unit = " (vCPU hours)" if _unit(line) == "vCPU hours" else ""
    why = "; ".join(f"{_signed(usd)} {reason.value}{_prices(line) if reason is Reason.PRICE else ''}" for reason, usd in line.parts)
    return (
        f"{key.machine} {key.region}{unit}",
        ", ".join(line.capacity_types) or key.bought,
        f"{line.report_usd:,}",
        f"{line.bill_usd:,}",
        _hours(line.report_hours),
        _hours(line.bill_hours),
        _signed(line.difference),
        why,
    )


def _prices(line: MachineLine) -> str:
    if line.report_price is None or line.bill_price is None:
        return ""
    return f" ({float(line.report_price):,.4f} an hour, billed {float(line.bill_price):,.4f})"


def _unit(line: MachineLine) -> str:
    return "vCPU hours" if line.key.machine.endswith(FAMILY) else "node hours"


def _hours(hours: Fraction | None) -> str:
    return "?" if hours is None else f"{float(hours):,.1f}"


def _signed(usd: Decimal | int) -> str:
    return f"{usd:+,}" if usd else "0.00"


def _yes(reason: Reason) -> str:
    return "yes" if reason.explains else "no"


TOLERANCE_PERCENT = Decimal(2)
"""Default share of the report that may stay unexplained. A node that is seen one minute less in an hour is 2 % off."""


def reconcile(
    report: Annotated[Path, option("--report", "A report of `flexspot chargeback report --format json`.", metavar="FILE")],
    bills: Annotated[
        list[Path],
        option(
            "--bill",
            "A bill of AWS (CUR 2.0 or legacy) or Google Cloud (BigQuery's billing export), or a FOCUS export of either. CSV or JSON "
            "lines (Google Cloud), plain or gzip, or Parquet (needs the extra parquet). A file, or the folder of an export. Repeatable.",
            metavar="FILE",
        ),
    ],
    percent: Annotated[
        Decimal,
        number_option(
            "--tolerance-percent",
            "PERCENT",
            lambda percent: 0 <= percent <= ALL_PERCENT,
            "from 0 to 100, such as 2",
            "The percentage of the report's amount that may stay unexplained.",
        ),
    ] = TOLERANCE_PERCENT,
    form: Annotated[
        Literal["text", "csv", "json", "markdown"], option("--format", "text and markdown for people, csv and json for programs.")
    ] = "text",
) -> None:
    """Explain the differences between a chargeback report and the cloud's bill, line by line and to the cent.

    Exit code 1: more than --tolerance-percent of the report is unexplained. 2: bad usage or input.
    """
    month = saved_report(report, read_report)
    found = reconciling.reconcile(month, _bill(bills, month))
    print_as(
        form,
        text=lambda: reconciliation(found, percent).text(),
        csv=lambda: reconcile_csv(found),
        json=lambda: reconcile_json(found, percent),
        markdown=lambda: reconciliation(found, percent).markdown(),
    )
    expect(found.within(percent))


def _bill(paths: list[Path], month: ReportedMonth) -> Bill:
    bill, seen = Bill(month.period.start, month.period.end), dict[str, str]()
    for path in paths:
        try:
            if any(map(is_parquet, parts_of(path, month.period.start, month.period.end))):
                library("pyarrow.parquet", "parquet")
            for row in read_delivery(path, seen, month.period.start, month.period.end):
                bill.add(row)
        except (BillError, OSError) as error:
            raise bad_usage(
                f"--bill: {path} cannot be used.",
                "export it again as docs/guides/chargeback.md describes; nothing of it was compared.",
                evidence=(reason_of(error),),
            ) from error
    return bill


def trend_json(trend: Trend) -> str:
    """Return the whole trend as JSON."""
    data = {
        "currency": "USD",
        "complete": trend.complete,
        "months": [
            {
                "name": each.month.name,
                "timezone": each.month.timezone,
                "until": utc(each.period.end),
                "over": each.over,
                "complete": each.usable,
                "usd": str(each.node_usd),
            }
            for each in trend.months
        ],
        "missing_months": list(trend.missing),
        "teams": [_team_data(trend, row) for row in trend.rows],
        "total": _team_data(trend, trend.total),
        "notes": list(trend.notes),
    }
    return as_json(data)


def _team_data(trend: Trend, row: Row) -> dict[str, Any]:
    months = [
        {
            "month": month.month.name,
            "usd": str(each.usd),
            "change_usd": None if each.change is None else str(each.change),
            "change_share": None if each.change_share is None else round(each.change_share, 6),
        }
        for month, each in zip(trend.months, row.months, strict=True)
    ]
    return {"team": row.team, "months": months}


def trend_document(trend: Trend) -> TabularReport:
    """Return the tables, then the remarks."""
    first, last = trend.months[0].month, trend.months[-1].month
    title = f"Chargeback {first.name} to {last.name} ({last.timezone}), USD of nodes"
    return TabularReport(title, [*_trend_tables(trend)], [*_to_be_known(trend)])


def _trend_tables(trend: Trend) -> Iterator[Table]:
    names = tuple(each.month.name + ("" if each.over else " so far") for each in trend.months)
    rows = (*trend.rows, trend.total)
    marks = [" +?" if each.missing else "" for each in trend.months]
    paid = tuple((row.team, *(f"{each.usd:,}{mark}" for each, mark in zip(row.months, marks, strict=True))) for row in rows)
    yield Table("by month", ("team", *names), paid)
    if any(each.change is not None for each in trend.total.months):
        changes = tuple((row.team, *map(_month_change, row.months)) for row in rows)
        yield Table("change against the month before", ("team", *names), changes)


def _month_change(each: MonthOf) -> str:
    if each.change is None:
        return ""
    return f"{each.change:+,}" + ("" if each.change_share is None else f" ({each.change_share:+.0%})")


def _to_be_known(trend: Trend) -> Iterator[str]:
    last = trend.months[-1]
    if not last.over:
        until = datetime.fromtimestamp(last.period.end, UTC).strftime("%Y-%m-%d %H:%M UTC")
        yield f"{last.month.name} is not over: these are the figures up to {until}."
    if trend.missing:
        yield f"There is no report of {', '.join(trend.missing)}: no change is calculated across it."
    yield from trend.notes


def trend(
    reports: Annotated[
        list[Path],
        option("--report", "A report of `flexspot chargeback report --month --format json`. Repeat for each month.", metavar="FILE"),
    ],
    form: Annotated[ReportFormat, option("--format", "text and markdown for people, json for programs.")] = "text",
) -> None:
    """Show how the teams' costs change from month to month.

    Exit code 1: a month in between is missing, or a report is incomplete. 2: bad usage, or reports that cannot be compared.
    """
    trend = trend_of([saved_report(each, read_teams, period="--month YYYY-MM") for each in reports])
    document = trend_document(trend)
    print_as(form, text=document.text, json=lambda: trend_json(trend), markdown=document.markdown)
    expect(trend.complete)
