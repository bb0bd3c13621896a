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
from infra.cli.report_tables import Table, markdown_table, print_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from capacity.chargeback.saved_report import MonthOf, Row, Trend


def trend_json(trend: Trend) -> str:
    """Everything, as one object."""
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
        "teams": [_row_data(trend, row) for row in trend.rows],
        "total": _row_data(trend, trend.total),
        "notes": list(trend.notes),
    }
    return json.dumps(data, indent=2, allow_nan=False) + "\n"


def _row_data(trend: Trend, row: Row) -> dict[str, Any]:
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
    return f"Chargeback {first.name} to {last.name} ({last.timezone}), USD of nodes"


def _tables(trend: Trend) -> Iterator[Table]:
    names = tuple(each.month.name + ("" if each.over else " so far") for each in trend.months)
    rows = (*trend.rows, trend.total)
    paid = tuple((row.team, *(_paid(trend, number, each) for number, each in enumerate(row.months))) for row in rows)
    yield Table("by month", ("team", *names), paid)
    if any(each.change is not None for each in trend.total.months):
        changes = tuple((row.team, *map(_change, row.months)) for row in rows)
        yield Table("change against the month before", ("team", *names), changes)


def _paid(trend: Trend, number: int, each: MonthOf) -> str:
    missing = " +?" if trend.months[number].missing else ""
    return f"{each.usd:,}{missing}"


def _change(each: MonthOf) -> str:
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
