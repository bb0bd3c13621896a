"""The trend of chargeback months for a terminal, for a message, and for programs. Money is text, so that no program rounds it."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rich.text import Text

from infra.cli.chargeback_report import utc
from infra.cli.console import table_console
from infra.cli.cost_report import literal
from infra.cli.report_currency import renamed
from infra.cli.report_tables import Table, markdown_table, print_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from capacity.chargeback.trend import Forecast, MonthOf, Row, Trend, Unusual

_UNUSUAL = " !"
"""Stands after what is out of the usual."""


def trend_json(trend: Trend) -> str:
    """Everything, as one object."""
    data = {
        "currency": trend.currency,
        "complete": trend.complete,
        "months": [
            {
                "name": each.month.name,
                "timezone": each.month.timezone,
                "until": utc(each.end),
                "over": each.over,
                "complete": each.usable,
                "usd": str(each.usd),
            }
            for each in trend.months
        ],
        "missing_months": list(trend.missing),
        "teams": [_row_data(trend, row) for row in trend.rows],
        "total": _row_data(trend, trend.total),
        "notes": list(trend.notes),
    }
    return json.dumps(renamed(data, trend.currency), indent=2, allow_nan=False) + "\n"


def _row_data(trend: Trend, row: Row) -> dict[str, Any]:
    months = zip(trend.months, row.months, strict=True)
    return {
        "team": row.team,
        "months": [{"month": month.month.name, **_month_data(each)} for month, each in months],
        "forecast": None if row.forecast is None else _forecast_data(row.forecast),
    }


def _month_data(each: MonthOf) -> dict[str, Any]:
    return {
        "usd": str(each.usd),
        "change_usd": None if each.change is None else str(each.change),
        "change_share": None if each.change_share is None else round(each.change_share, 6),
        "unusual": None if each.unusual is None else _unusual_data(each.unusual),
    }


def _unusual_data(each: Unusual) -> dict[str, Any]:
    return {
        "usd_per_day": str(each.usd_per_day),
        "median_per_day": str(each.median_per_day),
        "deviation_per_day": str(each.deviation_per_day),
        "months": each.months,
    }


def _forecast_data(each: Forecast) -> dict[str, Any]:
    return {
        "so_far_usd": str(each.so_far),
        "expected_usd": str(each.expected),
        "low_usd": None if each.low is None else str(each.low),
        "high_usd": None if each.high is None else str(each.high),
        "months": each.months,
    }


def trend_text(trend: Trend) -> str:
    """Tables, then what must be known. Names are shown as they are, with no markup in them."""
    text = io.StringIO()
    console = table_console(text)
    console.print(Text(_title(trend)))
    for each in _tables(trend):
        print_table(console, each)
    for line in _to_be_known(trend):
        console.print(Text(line))
    return text.getvalue()


def trend_markdown(trend: Trend) -> str:
    """The same. No markup in names counts, and nobody is mentioned."""
    lines = [f"# {literal(_title(trend))}"]
    for each in _tables(trend):
        lines += markdown_table(each)
    if known := [f"- {literal(line)}" for line in _to_be_known(trend)]:
        lines += ["", "## To be known", "", *known]
    return "\n".join(lines) + "\n"


def _title(trend: Trend) -> str:
    first, last = trend.months[0].month, trend.months[-1].month
    return f"Chargeback {first.name} to {last.name} ({last.timezone}), {trend.currency} of nodes"


def _tables(trend: Trend) -> Iterator[Table]:
    names = tuple(each.month.name + ("" if each.over else " so far") for each in trend.months)
    rows = (*trend.rows, trend.total)
    paid = tuple((row.team, *(_paid(trend, number, each) for number, each in enumerate(row.months))) for row in rows)
    yield Table("by month", ("team", *names), paid)
    if any(each.change is not None for each in trend.total.months):
        changes = tuple((row.team, *map(_change, row.months)) for row in rows)
        yield Table("change against the month before", ("team", *names), changes)
    unusual = tuple(
        (
            row.team,
            month.month.name,
            f"{each.unusual.usd_per_day:,}",
            f"{each.unusual.median_per_day:,}",
            f"{each.unusual.deviation_per_day:,}",
            str(each.unusual.months),
        )
        for row in rows
        for month, each in zip(trend.months, row.months, strict=True)
        if each.unusual is not None
    )
    if unusual:
        money = trend.currency
        yield Table(
            f"out of the usual, {money} a day",
            ("team", "month", f"{money} a day", "median before", "deviation", "months before"),
            unusual,
            2,
        )
    forecasts = tuple((row.team, *_forecast(row.forecast)) for row in rows if row.forecast is not None)
    if forecasts:
        yield Table(f"forecast of {trend.months[-1].month.name}", ("team", "so far", "expected", "at least", "at most"), forecasts)


def _paid(trend: Trend, number: int, each: MonthOf) -> str:
    missing = " +?" if trend.months[number].missing else ""
    return f"{each.usd:,}{missing}{_UNUSUAL if each.unusual is not None else ''}"


def _change(each: MonthOf) -> str:
    if each.change is None:
        return ""
    return f"{each.change:+,}" + ("" if each.change_share is None else f" ({each.change_share:+.0%})")


def _forecast(each: Forecast) -> tuple[str, str, str, str]:
    low, high = ("" if usd is None else f"{usd:,}" for usd in (each.low, each.high))
    return f"{each.so_far:,}", f"{each.expected:,}", low, high


def _to_be_known(trend: Trend) -> Iterator[str]:
    last = trend.months[-1]
    if not last.over:
        until = datetime.fromtimestamp(last.end, UTC).strftime("%Y-%m-%d %H:%M UTC")
        yield f"{last.month.name} is not over: these are the figures up to {until}."
    if trend.missing:
        yield f"There is no report of {', '.join(trend.missing)}: no change is calculated across it."
    yield from trend.notes
