"""The comparison of a report with a bill for a terminal, for a comment, and for programs. Money is text, so that no program rounds it."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

from rich.text import Text

from capacity.chargeback.bills.gcp import FAMILY
from capacity.chargeback.reconciling import Reason
from capacity.values.shown_text import spreadsheet_cell
from infra.cli.console import table_console
from infra.cli.cost_report import literal
from infra.cli.report_tables import Table, markdown_table, print_table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from decimal import Decimal
    from fractions import Fraction

    from capacity.chargeback.reconciling import MachineLine, Reconciliation

_OTHERS_TOLD = 40


def reconcile_json(found: Reconciliation, percent: Decimal) -> str:
    """Everything, as one object."""
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
    return json.dumps(written, indent=2, allow_nan=False) + "\n"


def reconcile_csv(found: Reconciliation) -> str:
    """The report's amounts and every difference, a row each: `usd` sums to the bill."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("period", "cloud", "region", "machine", "bought_as", "what", "reason", "explained", "usd"))
    for line in found.lines:
        place = tuple(map(spreadsheet_cell, (line.key.cloud, line.key.region, line.key.machine, line.key.bought)))
        writer.writerow((spreadsheet_cell(found.name), *place, "", "report", "", str(line.report_usd)))
        for reason, usd in line.parts:
            writer.writerow((spreadsheet_cell(found.name), *place, "", reason.value, _yes(reason), str(usd)))
    for each in found.others:
        writer.writerow(
            (
                spreadsheet_cell(found.name),
                each.cloud,
                "",
                "",
                "",
                spreadsheet_cell(each.what),
                each.reason.value,
                _yes(each.reason),
                str(each.usd),
            )
        )
    return text.getvalue()


def reconcile_text(found: Reconciliation, percent: Decimal) -> str:
    """Sums first, then why, then machine by machine, and what else is on the bill. Names are shown as they are, with no markup in them."""
    text = io.StringIO()
    console = table_console(text)
    console.print(Text(f"Chargeback {found.name} and the bill"))
    for name, figure in _summary(found, percent):
        console.print(Text(f"  {name}: {figure}"))
    for table in _tables(found):
        print_table(console, table)
    for line in found.notes:
        console.print(Text(line))
    return text.getvalue()


def reconcile_markdown(found: Reconciliation, percent: Decimal) -> str:
    """The same for a comment or a page: no markup in names counts, and nobody is mentioned."""
    return "\n".join(_markdown(found, percent)) + "\n"


def _markdown(found: Reconciliation, percent: Decimal) -> Iterator[str]:
    yield f"# Chargeback {literal(found.name)} and the bill"
    yield ""
    yield from (f"- {name}: **{literal(figure)}**" for name, figure in _summary(found, percent))
    for table in _tables(found):
        yield from markdown_table(table)
    if found.notes:
        yield ""
        yield "## To be known"
        yield ""
        yield from (f"- {literal(each)}" for each in found.notes)


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
        yield Table("by machine", headings, tuple(map(_row, found.lines)), 2, ends_in_text=True)
    if found.others:
        dearest = sorted(found.others, key=lambda each: -abs(each.usd))
        rows = [(each.cloud, each.reason.value, each.what, f"{each.rows:,}", _signed(each.usd)) for each in dearest[:_OTHERS_TOLD]]
        if left := dearest[_OTHERS_TOLD:]:
            rows.append(("", "", f"{len(left):,} more, all in json and csv", "", _signed(sum(each.usd for each in left))))
        yield Table("else on the bill", ("cloud", "why", "what", "rows", "USD"), tuple(rows), 3)


def _row(line: MachineLine) -> tuple[str, ...]:
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
