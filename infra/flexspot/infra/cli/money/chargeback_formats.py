"""The chargeback report for a terminal, a message, programs, and as one HTML page without scripts. Money is text in JSON."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Any

from flexspot.capacity.chargeback.nodes import UNKNOWN
from flexspot.capacity.chargeback.report import DIMENSIONS, HOUR, TOP_CONSUMERS
from flexspot.capacity.values.shown_text import spreadsheet_cell
from flexspot.infra.cli.console import TabularReport, as_csv, as_json
from flexspot.infra.cli.money import chargeback_tables as words
from flexspot.infra.cli.money.chargeback_tables import consumer_data, exact, hours_data

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexspot.capacity.chargeback.report import Report, Totals
    from flexspot.infra.cli.console import Table


def report_json(report: Report, top: int = TOP_CONSUMERS, of: dict[str, str] | None = None) -> str:
    """Return the whole report as JSON.

    `top` is the number of consumers per team. `of` names the Prometheus server and the matcher, which differ between clusters.
    """
    return as_json(report_data(report, top) | ({} if of is None else {"of": of}))


def report_csv(report: Report) -> str:
    """Return CSV with the lines, then storage and egress, then credits. `total_usd` sums to the amount to pay."""
    figures = tuple(_figures(report.total))
    name, no_names, no_figures = report.period.name, ("",) * (len(DIMENSIONS) - 2), ("",) * (len(figures) - 1)
    rows: list[tuple[object, ...]] = [("period", *DIMENSIONS, "kind", *figures)]
    keys = ((map(spreadsheet_cell, asdict(line.key).values()), line.totals) for line in report.lines)
    rows += [(name, *key, "nodes", *_figures(totals).values()) for key, totals in keys]
    for each in report.extra:
        key = (spreadsheet_cell(each.team), spreadsheet_cell(each.project), *no_names)
        rows.append((name, *key, each.kind.value, *no_figures, str(each.usd)))
    for each in report.credits:
        rows += [(name, *map(spreadsheet_cell, names), *no_names, "credit", *no_figures, str(-usd)) for names, usd in each.lines.items()]
    return as_csv(rows)


def report_data(report: Report, top: int = TOP_CONSUMERS) -> dict[str, Any]:
    """Return the report as plain data. Money is text or Decimal."""
    period, other = report.period, report.opencost
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
        "opencost": other and {"nodes": other.nodes, "opencost_usd": other.opencost_usd, "same_nodes_usd": other.report_usd},
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
        "unmatched": [{**asdict(owner), "gpu_hours": round(float(seconds) / HOUR, 4)} for owner, seconds in report.unmatched.items()],
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
                "usd_per_hour_before": exact(each.before),
                "usd_per_hour": exact(each.after),
                "source": each.source,
            }
            for each in report.price_changes
        ],
        "notes": list(report.notes),
    }


def _figures(totals: Totals) -> dict[str, Any]:
    return {
        **hours_data(totals, "allocated_gpu_hours"),
        "saved_usd": str(totals.saved_usd),
        "allocated_usd": str(totals.allocated_usd),
        "idle_usd": str(totals.idle_usd),
        "total_usd": str(totals.usd),
    }


def utc(moment: int) -> str:
    """Return seconds since 1970 as ISO 8601, with Z."""
    return datetime.fromtimestamp(moment, UTC).isoformat().replace("+00:00", "Z")


def document(report: Report, top: int = TOP_CONSUMERS) -> TabularReport:
    """Return the sums first, then all tables, then the remarks."""
    notes = [*words.warnings(report), *words.price_notes(report)]
    return TabularReport(words.title(report), [*words.tables(report, top)], notes, words.how(report), [*words.summary(report)])


_BARS = 12
"""Most bars of a chart. The tables have all rows."""

_COLOURS = {"allocated": "first", "idle": "second", "busy": "third", "not busy": "rail"}
"""CSS class of each part of a bar."""


def charts(report: Report) -> str:
    """Return charts of each team's cost, the cost by capacity type, and how busy GPUs were, if measured."""
    teams = report.by("team")
    drawn = [
        _chart(
            name,
            ("allocated", "idle"),
            ((key[0], f"{each.usd:,}", (float(each.allocated_usd), float(each.idle_usd))) for key, each in paid.items()),
        )
        for name, paid in (("Who pays, USD", teams), ("How it was bought, USD", report.by("capacity_type")))
    ]
    if any(each.measured for each in teams.values()):
        busiest = sorted(teams.items(), key=lambda pair: -pair[1].gpu_seconds)
        drawn.append(
            _chart(
                "How busy allocated GPUs were, hours measured",
                ("busy", "not busy"),
                (
                    (key[0], f"{each.used / HOUR:,.1f} of {each.measured / HOUR:,.1f}", (each.used, max(0.0, each.measured - each.used)))
                    for key, each in busiest
                    if each.measured
                ),
            )
        )
    return "".join(drawn)


def _chart(title: str, parts: tuple[str, ...], rows: Iterable[tuple[str, str, tuple[float, ...]]]) -> str:
    found = list(rows)
    most = max((sum(values) for _, _, values in found), default=0.0) or 1.0
    key = "".join(
        f'<span><svg aria-hidden="true"><rect class="{_COLOURS[part]}" width="100%" height="100%"/></svg>{escape(part)}</span>'
        for part in parts
    )
    bars = "".join(_bar(name, figure, values, most, parts) for name, figure, values in found[:_BARS])
    more = f"<p>and {len(found) - _BARS} more, in the table below</p>" if len(found) > _BARS else ""
    return f'<section><h2>{escape(title)}</h2><div class="key">{key}</div>{bars}{more}</section>'


def _bar(name: str, figure: str, values: tuple[float, ...], most: float, parts: tuple[str, ...]) -> str:
    drawn, left = "", 0.0
    for part, value in zip(parts, values, strict=True):
        width = 100 * value / most
        if width:
            drawn += f'<rect class="{_COLOURS[part]}" x="{left:.3f}%" width="{width:.3f}%" height="100%"/>'
        left += width
    shares = ", ".join(f"{part} {value / (sum(values) or 1):.0%}" for part, value in zip(parts, values, strict=True))
    return (
        f'<div class="bar"><span>{escape(name)}</span><b>{escape(figure)}</b>'
        f'<svg role="img" aria-label="{escape(name)}: {escape(shares)}"><rect class="rail" width="100%" height="100%"/>{drawn}</svg></div>'
    )


STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --quiet: #5b6470; --line: #d4d8de; --ground: #ffffff; --warn: #fff4dc; --edge: #d1971f;
  --first: #3a62c8; --second: #b3740f; --third: #3b8a5a }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ee; --quiet: #a3acb8; --line: #3a424d; --ground: #14181d; --warn: #33290f;
  --first: #7b9bea; --second: #d59a35; --third: #62b886 } }
* { box-sizing: border-box }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--ground); max-width: 1080px; margin: 1.5rem auto;
  padding: 0 1rem }
h1 { font-size: 1.45rem; margin: 0 0 .2rem; overflow-wrap: anywhere } h2 { font-size: 1.05rem; margin: 1.8rem 0 .4rem }
p { color: var(--quiet); margin: .2rem 0 .9rem; overflow-wrap: anywhere }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); gap: .6rem; margin: 0 }
dl div { border: 1px solid var(--line); border-radius: .4rem; padding: .5rem .7rem }
dt { color: var(--quiet); font-size: .85rem } dd { margin: 0; font-weight: 600; font-variant-numeric: tabular-nums }
.notes { background: var(--warn); border-left: 4px solid var(--edge); padding: .6rem .6rem .6rem 1.7rem; margin: 1rem 0;
  overflow-wrap: anywhere }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 25rem), 1fr)); gap: 0 2rem }
.bar { display: grid; grid-template-columns: 1fr auto; gap: 0 .8rem; margin: .45rem 0; break-inside: avoid }
.bar span { overflow-wrap: anywhere } .bar b { font-weight: 500; font-variant-numeric: tabular-nums }
.bar svg { grid-column: 1 / -1; width: 100%; height: .8rem; display: block }
.key { display: flex; flex-wrap: wrap; gap: .2rem 1rem; color: var(--quiet); font-size: .85rem }
.key svg { width: .8rem; height: .8rem; margin-right: .35rem; vertical-align: -1px; outline: 1px solid var(--quiet) }
.rail { fill: var(--line); fill-opacity: .45 } .first { fill: var(--first) } .second { fill: var(--second) } .third { fill: var(--third) }
.wide { overflow-x: auto } table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { padding: .3rem .55rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap } th { font-weight: 600 }
.text { text-align: left; white-space: normal; overflow-wrap: anywhere; min-width: 7rem } tr.sum td { font-weight: 600; border-bottom: 0 }
footer { color: var(--quiet); font-size: .85rem; margin: 2rem 0 1rem; overflow-wrap: anywhere }
@media print { :root { color-scheme: light; --ink: #000; --quiet: #444; --line: #bbb; --ground: #fff; --warn: #fff }
  body { margin: 0; max-width: none; font-size: 11px } svg { print-color-adjust: exact } tr { break-inside: avoid }
  h2 { break-after: avoid } }
@media screen and (max-width: 620px) { thead { position: absolute; left: -9999px }
  tr { display: grid; grid-template-columns: repeat(3, 1fr); gap: .2rem .6rem; padding: .5rem 0; border-bottom: 1px solid var(--line) }
  td, .text { display: block; border: 0; padding: 0; text-align: left; min-width: 0 } td:empty { display: none }
  td::before { content: attr(data-of); display: block; color: var(--quiet); font-size: .75rem; font-weight: 400 }
  td:first-child { grid-column: 1 / -1; font-weight: 600 } td:first-child::before { display: none } }
"""

_SUM_ROW = '<tr class="sum">'


def report_html(report: Report, top: int = TOP_CONSUMERS) -> str:
    """Return the HTML page. All names are escaped."""
    title = escape(words.title(report))
    sums = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(figure)}</dd></div>" for name, figure in words.summary(report))
    notes = "".join(f"<li>{escape(each)}</li>" for each in words.warnings(report))
    sections = "".join(map(_html_table, words.tables(report, top)))
    prices = "".join(f"<div>{escape(each)}</div>" for each in words.price_notes(report))
    # The policy forbids the page to load or run anything, even if a name contains markup.
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
        f"<title>{title}</title><style>{STYLE}</style></head><body>"
        f"<h1>{title}</h1><p>{escape(words.how(report))}</p><dl>{sums}</dl>"
        + (f'<ul class="notes">{notes}</ul>' if notes else "")
        + f'<div class="charts">{charts(report)}</div>{sections}<footer>{prices}</footer></body></html>\n'
    )


def _html_table(table: Table) -> str:
    head = "".join(f'<th scope="col"{_class(column, table)}>{escape(each)}</th>' for column, each in enumerate(table.headings))
    rows = "".join(
        (_SUM_ROW if row[0] == "total" and number == len(table.rows) - 1 else "<tr>")
        + "".join(
            f'<td{_class(column, table)} data-of="{escape(table.headings[column])}">{escape(str(each))}</td>'
            for column, each in enumerate(row)
        )
        + "</tr>"
        for number, row in enumerate(table.rows)
    )
    return f'<h2>{escape(table.title)}</h2><div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _class(column: int, table: Table) -> str:
    return ' class="text"' if table.is_text(column) else ""
