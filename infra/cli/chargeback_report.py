"""The chargeback report for a terminal, for an issue or a message, and for programs. Money is text, so that no program rounds it."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rich.text import Text

from capacity.chargeback.consumers import TOP_CONSUMERS
from capacity.chargeback.nodes import UNKNOWN
from capacity.chargeback.report import DIMENSIONS, HOUR
from capacity.values.quantities import as_decimal
from capacity.values.shown_text import spreadsheet_cell
from infra.cli import chargeback_words as words
from infra.cli.chargeback_consumers import consumer_data
from infra.cli.console import table_console
from infra.cli.cost_report import literal
from infra.cli.report_tables import markdown_table, print_table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from fractions import Fraction

    from capacity.chargeback.report import Report, Totals


_FIGURES = (
    "allocated_gpu_hours",
    "measured_gpu_hours",
    "used_gpu_hours",
    "unpriced_gpu_hours",
    "saved_usd",
    "allocated_usd",
    "idle_usd",
    "total_usd",
)


def report_json(report: Report, top: int = TOP_CONSUMERS, of: dict[str, str] | None = None) -> str:
    """Everything, as one object, with so many consumers of each team; `of` says where it was read: two clusters differ in it."""
    return json.dumps(report_data(report, top) | ({} if of is None else {"of": of}), indent=2, allow_nan=False) + "\n"


def report_csv(report: Report) -> str:
    """The lines, then storage and egress, then credits, in one table: `total_usd` sums to all that is paid."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("period", *DIMENSIONS, "kind", *_FIGURES))
    for line in report.lines:
        figures = _figures(line.totals)
        writer.writerow(
            (
                report.period.name,
                *map(spreadsheet_cell, asdict(line.key).values()),
                "nodes",
                *(figures[each] for each in _FIGURES),
            )
        )
    for each in report.extra:
        key = (spreadsheet_cell(each.team), spreadsheet_cell(each.project), *("",) * (len(DIMENSIONS) - 2))
        writer.writerow((report.period.name, *key, each.kind.value, *("",) * (len(_FIGURES) - 1), str(each.usd)))
    for each in report.credits:
        for names, usd in each.lines.items():
            key = (*map(spreadsheet_cell, names), *("",) * (len(DIMENSIONS) - 2))
            writer.writerow((report.period.name, *key, "credit", *("",) * (len(_FIGURES) - 1), str(-usd)))
    return text.getvalue()


def report_data(report: Report, top: int = TOP_CONSUMERS) -> dict[str, Any]:
    """As plain data."""
    period = report.period
    return {
        "period": {"name": period.name, "timezone": period.timezone, "from": utc(period.start), "to": utc(period.end)},
        "currency": "USD",
        "step_seconds": report.step,
        "idle_policy": report.idle.value,
        "complete": report.complete,
        "node_hours": round(report.node_seconds / HOUR, 4),
        "gpu_hours": round(report.gpu_seconds / HOUR, 4),
        "node_usd": str(report.node_usd),
        "idle_usd": str(report.idle_usd),
        "platform_usd": str(report.platform_usd),
        "total": _figures(report.total),
        "nodes": [{**asdict(each), "node_hours": round(each.node_seconds / HOUR, 4), "usd": str(each.usd)} for each in report.nodes],
        "lines": [{**asdict(line.key), **_figures(line.totals)} for line in report.lines],
        "by": {each: [{each: key[0], **_figures(totals)} for key, totals in report.by(each).items()] for each in DIMENSIONS},
        "top_consumers": consumer_data(report, top),
        "extra": [{**each.model_dump(mode="json", exclude_none=True), "usd": str(each.usd)} for each in report.extra],
        "extra_usd": str(report.extra_usd),
        "credits": [
            {
                **each.credit.model_dump(mode="json", exclude_none=True),
                "usd": str(each.credit.usd),
                "used_usd": str(each.usd),
                "lines": [{"team": team, "project": project, "usd": str(usd)} for (team, project), usd in each.lines.items()],
            }
            for each in report.credits
        ],
        "credit_usd": str(report.credit_usd),
        "lost": [
            {
                **asdict(owner),
                "interruptions": each.interruptions,
                "steps": each.steps,
                "gpu_hours": round(each.gpu_seconds / HOUR, 4),
                "steps_of_unknown_pace": each.of_unknown_pace,
            }
            for owner, each in report.lost.items()
        ],
        "evictions": [
            {"cluster_queue": queue, "reason": reason, "workloads": risen} for (queue, reason), risen in report.evictions.items()
        ],
        "opencost": None
        if report.opencost is None
        else {
            "nodes": report.opencost.nodes,
            "opencost_usd": str(report.opencost.opencost_usd),
            "same_nodes_usd": str(report.opencost.report_usd),
        },
        "commitments": [
            {
                "what": each.what,
                "node_hours": round(each.seconds / HOUR, 4),
                "unused_node_hours": round(each.unused / HOUR, 4),
                "unused_usd": str(each.usd),
            }
            for each in report.commitments
        ],
        "uncommitted": [{**asdict(kind), "node_hours": round(seconds / HOUR, 4)} for kind, seconds in report.uncommitted.items()],
        "doubled": [{"of": name, "hours": round(seconds / HOUR, 4)} for name, seconds in report.doubled.items()],
        "unknown_prices": [{**asdict(price), "node_hours": round(seconds / HOUR, 4)} for price, seconds in report.unknown.items()],
        "homeless": [{**asdict(owner), "gpu_hours": round(float(seconds) / HOUR, 4)} for owner, seconds in report.homeless.items()],
        "gaps": [{"of": each.name, "from": utc(each.start), "to": utc(each.end)} for each in report.gaps],
        "prices": [
            {"source": name, "as_of": source.as_of.isoformat(), "verified": source.verified, "undated": source.undated}
            for name, source in report.sources.items()
        ],
        "spend_commitments": [
            {
                "name": each.plan.name,
                "kind": each.plan.kind.value,
                "usd_per_hour": str(each.plan.usd_per_hour),
                "committed_usd": str(each.committed_usd),
                "used_usd": str(each.used_usd),
                "unused_usd": str(each.unused_usd),
                "utilisation": None if each.utilisation is None else round(float(each.utilisation), 6),
                "coverage": None if each.coverage is None else round(float(each.coverage), 6),
                "source": each.plan.source,
            }
            for each in report.plans
        ],
        "price_changes": [
            {
                **asdict(each.what),
                "pool": None if each.pool == UNKNOWN else each.pool,
                "from": utc(each.moment),
                "usd_per_hour_before": _exact(each.before),
                "usd_per_hour": _exact(each.after),
                "source": each.source,
            }
            for each in report.price_changes
        ],
        "notes": list(report.notes),
    }


def _exact(usd: Fraction | None) -> str | None:
    return None if usd is None else f"{as_decimal(usd).normalize():f}"


def _figures(totals: Totals) -> dict[str, Any]:
    return {
        "allocated_gpu_hours": round(totals.gpu_hours, 4),
        "measured_gpu_hours": round(totals.measured / HOUR, 4),
        "used_gpu_hours": round(totals.used / HOUR, 4) if totals.measured else None,
        "unpriced_gpu_hours": round(totals.unpriced / HOUR, 4),
        "saved_usd": str(totals.saved_usd),
        "allocated_usd": str(totals.allocated_usd),
        "idle_usd": str(totals.idle_usd),
        "total_usd": str(totals.usd),
    }


def utc(moment: int) -> str:
    """A moment in seconds since 1970 as ISO 8601 has it, with Z."""
    return datetime.fromtimestamp(moment, UTC).isoformat().replace("+00:00", "Z")


def report_text(report: Report, top: int = TOP_CONSUMERS) -> str:
    """Sums first, then table by table, then what is missing. Names are shown as they are, with no markup in them."""
    text = io.StringIO()
    console = table_console(text)
    console.print(Text(words.title(report)))
    console.print(Text(f"  {words.how(report)}"))
    for name, figure in words.summary(report):
        console.print(Text(f"  {name}: {figure}"))
    for each in words.tables(report, top):
        print_table(console, each)
    for line in (*words.warnings(report), *words.price_notes(report)):
        console.print(Text(line))
    return text.getvalue()


def report_markdown(report: Report, top: int = TOP_CONSUMERS) -> str:
    """All tables. Names are shown as they are: no markup in them counts, and nobody is mentioned."""
    return "\n".join(_lines(report, top)) + "\n"


def _lines(report: Report, top: int) -> Iterator[str]:
    yield f"# {literal(words.title(report))}"
    yield ""
    yield literal(words.how(report))
    yield ""
    yield from (f"- {name}: **{literal(figure)}**" for name, figure in words.summary(report))
    for each in words.tables(report, top):
        yield from markdown_table(each)
    notes = [*words.warnings(report), *words.price_notes(report)]
    if notes:
        yield ""
        yield "## To be known"
        yield ""
        yield from (f"- {literal(each)}" for each in notes)
