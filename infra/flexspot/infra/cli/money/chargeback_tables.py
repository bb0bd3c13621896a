"""Tables and sentences of the chargeback report, shared by all its forms. They include the most expensive consumers."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from decimal import Decimal
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from flexspot.capacity.chargeback.nodes import UNKNOWN
from flexspot.capacity.chargeback.queries import NO_USER, Workload
from flexspot.capacity.chargeback.report import DIMENSIONS, HOUR, TOP_CONSUMERS, IdlePolicy, TopConsumers, Totals, WorkLine, top_consumers
from flexspot.capacity.values.quantities import as_decimal
from flexspot.capacity.values.shown_text import spreadsheet_cell
from flexspot.infra.cli.console import Table, as_csv

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from fractions import Fraction

    from flexspot.capacity.chargeback.report import Report, SpentPlan


IDLE = "(idle GPUs)"
"""Replaces the name of a workload or user where the team pays for unused GPUs."""


_WORKLOAD: Callable[[WorkLine], Workload] = attrgetter("workload")
_USER: Callable[[WorkLine], str] = attrgetter("user")
_BOTH: Callable[[WorkLine], tuple[Workload, str]] = attrgetter("workload", "user")


def consumer_tables(report: Report, top: int = TOP_CONSUMERS) -> Iterator[Table]:
    """Yield the tables of consumers. Each team's rows sum to its cost. The table of users is omitted if no user is known."""
    if workloads := top_consumers(report, top, _WORKLOAD):
        yield _consumer_table("workload", workloads)
    if any(each.user != NO_USER for each in report.work):
        yield _consumer_table("user", top_consumers(report, top, _USER))


def _consumer_table(heading: str, found: Mapping[str, TopConsumers[Any]]) -> Table:
    rows: list[tuple[str, ...]] = []
    for team, of in found.items():
        for name, usd, totals in _consumer_rows(of):
            share = f"{usd / of.team.usd:.0%}" if of.team.usd else ""
            used = "" if totals.used_share is None else f"{totals.used_share:.0%}"
            hours = ("", "") if name == IDLE else (f"{totals.gpu_hours:,.1f}", used)
            rows.append((team, name, f"{usd:,}{' +?' if totals.unpriced else ''}", share, *hours))
    return Table(f"{heading}s that cost most", ("team", heading, "USD", "of team", "GPU hours", "busy"), tuple(rows), 2)


def _consumer_rows(of: TopConsumers[Any]) -> Iterator[tuple[str, Decimal, Totals]]:
    yield from ((str(name), totals.usd, totals) for name, totals in of.top)
    if of.count:
        yield f"({of.count:,} more)", of.others.usd, of.others
    if of.idle_usd:
        yield IDLE, of.idle_usd, Totals()


def consumer_data(report: Report, top: int = TOP_CONSUMERS) -> list[dict[str, Any]]:
    """Return each team's most expensive workloads and users, the sum of the others, and its cost of idle GPUs.

    `users` and `other_users` are null if no pod has a user label.
    """
    workloads, users = top_consumers(report, top, _WORKLOAD), top_consumers(report, top, _USER)
    known = any(each.user != NO_USER for each in report.work)
    return [
        {
            "team": team,
            "total_usd": str(of.team.usd),
            "idle_usd": str(of.idle_usd),
            "workloads": [{**asdict(workload), **_consumer_figures(of, totals)} for workload, totals in of.top],
            "other_workloads": {"count": of.count, **_consumer_figures(of, of.others)},
            "users": [{"user": user, **_consumer_figures(of, totals)} for user, totals in users[team].top] if known else None,
            "other_users": {"count": users[team].count, **_consumer_figures(of, users[team].others)} if known else None,
        }
        for team, of in workloads.items()
    ]


def _consumer_figures(of: TopConsumers[Any], totals: Totals) -> dict[str, Any]:
    share = of.share(totals)
    return {
        "usd": str(totals.usd.quantize(Decimal("0.01"))),
        "share_of_team": None if share is None else round(share, 6),
        **hours_data(totals, "gpu_hours"),
    }


def hours_data(totals: Totals, had: str) -> dict[str, float | None]:
    """Return GPU hours as plain data: all under the name `had`, and of these the measured, used and unpriced ones."""
    return {
        had: round(totals.gpu_hours, 4),
        "measured_gpu_hours": round(totals.measured / HOUR, 4),
        "used_gpu_hours": round(totals.used / HOUR, 4) if totals.measured else None,
        "unpriced_gpu_hours": round(totals.unpriced / HOUR, 4),
    }


_KEY = ("period", "team", "row", "workload_kind", "namespace", "workload", "user", "consumers")
_CONSUMER_FIGURES = ("usd", "share_of_team", "gpu_hours", "measured_gpu_hours", "used_gpu_hours", "unpriced_gpu_hours")


def consumers_csv(report: Report, top: int = TOP_CONSUMERS) -> str:
    """Return CSV with a row per pair of workload and user, for the most expensive ones of each team.

    One more row has all other pairs, one idle GPUs, and one nodes without GPUs. `usd` sums to each team's cost, and over all rows to the
    cost of the nodes. `consumers` is the number of pairs in a row.
    """
    rows: list[tuple[object, ...]] = [(*_KEY, *_CONSUMER_FIGURES)]
    for team, of in _every_team(report, top).items():
        for row, names, count, totals in _csv_rows(of):
            figures = _consumer_figures(of, totals)
            cells = map(spreadsheet_cell, (team, row, *names))
            written = ("" if figures[each] is None else figures[each] for each in _CONSUMER_FIGURES)
            rows.append((report.period.name, *cells, count or "", *written))
    return as_csv(rows)


_Both = tuple[Workload, str]


def _every_team(report: Report, top: int) -> dict[str, TopConsumers[_Both]]:
    """Return the consumers of all teams. Teams without GPUs pay for idle GPUs or for nodes without GPUs."""
    found = top_consumers(report, top, _BOTH)
    return {
        team: found[team] if team in found else TopConsumers[_Both](totals, (), Totals(), 0)
        for (team,), totals in report.by("team").items()
    }


def _csv_rows(of: TopConsumers[_Both]) -> Iterator[tuple[str, tuple[str, str, str, str], int, Totals]]:
    no_names = ("", "", "", "")
    for (workload, user), totals in of.top:
        yield "consumer", (workload.kind, workload.namespace, workload.name, user), 1, totals
    if of.count:
        yield "others", no_names, of.count, of.others
    if not of.top and of.team.allocated_usd:
        yield "platform", no_names, 0, Totals(allocated_usd=of.team.allocated_usd)
    if of.idle_usd:
        yield "idle", no_names, 0, Totals(idle_usd=of.idle_usd)


_PAYS = {
    IdlePolicy.PROPORTIONAL: "teams with GPUs of the same pool pay for its idle GPUs, in proportion to their cost",
    IdlePolicy.OWNER: "the team or owner on the node's label pays for its idle GPUs",
    IdlePolicy.CENTRAL: "idle GPUs are paid centrally, by no team",
}
_GAPS_SHOWN = 10

COLUMNS = ("USD", "allocated USD", "idle USD", "saved USD", "GPU hours", "measured h", "busy")
"""Headings of the figures."""


def title(report: Report) -> str:
    """Return the report's title."""
    return f"Chargeback {report.period.name}"


def least(report: Report) -> str:
    """Return the words before sums that lack something."""
    return "" if report.complete else "at least "


def summary(report: Report) -> Iterator[tuple[str, str]]:
    """Yield the sums, as names and amounts."""
    total = report.total
    yield "nodes", f"{least(report)}{report.node_usd:,} USD"
    yield "of these idle", f"{report.idle_usd:,} USD{_percent(float(report.idle_usd), float(report.node_usd))}"
    if unused := sum((each.usd for each in report.commitments), Decimal(0)):
        hours = sum(each.unused for each in report.commitments) / HOUR
        yield "reserved, and not there", f"{unused:,} USD for {hours:,.1f} node hours, billed all the same"
    if lost := sum((each.unused_usd for each in report.plans), Decimal(0)):
        committed = sum((each.committed_usd for each in report.plans), Decimal(0))
        yield "committed, and not used", f"{lost:,} of {committed:,} USD, billed all the same"
    if total.saved_usd:
        yield "saved", f"{total.saved_usd:,} USD ({total.saved_share:.0%}) against on-demand prices, for allocated GPUs"
    if report.platform_usd:
        yield "nodes without GPUs", f"{report.platform_usd:,} USD"
    yield (
        "GPU hours",
        f"{report.gpu_seconds / HOUR:,.1f}, allocated {total.gpu_hours:,.1f}{_percent(total.gpu_seconds, report.gpu_seconds)}",
    )
    yield "busy", busy(total) + (f" of {total.measured / HOUR:,.1f} GPU hours measured" if total.measured else "")
    if report.extra:
        yield "storage and egress", f"{report.extra_usd:,} USD, as given"
    if report.credits:
        given = sum((each.credit.usd for each in report.credits), Decimal(0))
        yield "credits", f"-{report.credit_usd:,} of {given:,} USD"
        yield "left to pay", f"{least(report)}{report.paid_usd:,} USD"
    if (other := report.opencost) is not None:
        nodes = f"{other.nodes} node{'' if other.nodes == 1 else 's'}"
        yield "OpenCost", f"{other.opencost_usd:,} USD for {nodes}, here {other.report_usd:,} USD"


def how(report: Report) -> str:
    """Return the report's period, its method, and who pays for idle GPUs."""
    period = report.period
    return f"{_utc(period.start)} to {_utc(period.end)} ({period.timezone}), every {report.step} s; {_PAYS[report.idle]}."


def busy(totals: Totals) -> str:
    """Return the busy share of allocated GPUs, over the measured time."""
    return "not measured" if totals.used_share is None else f"{totals.used_share:.0%}"


def tables(report: Report, top: int = TOP_CONSUMERS) -> Iterator[Table]:
    """Yield every table that has a row. `top` is the number of consumers per team."""
    for dimension in DIMENSIONS:
        rows = tuple((key[0], *_figures(totals)) for key, totals in report.by(dimension).items())
        words = dimension.replace("_", " ")
        yield Table(f"by {'GPU' if words == 'gpu' else words}", (words, *COLUMNS), (*rows, ("total", *_figures(report.total))))
    yield from consumer_tables(report, top)
    if report.extra:
        rows = tuple((each.team, each.project, each.kind.value, each.what, f"{each.usd:,}") for each in report.extra)
        rows = (*rows, ("total", "", "", "", f"{report.extra_usd:,}"))
        yield Table("storage and egress", ("team", "project", "kind", "what", "USD"), rows, 4)
    if report.credits:
        rows = tuple((each.credit.name, *line, f"-{usd:,}") for each in report.credits for line, usd in each.lines.items())
        yield Table("credits", ("credit", "team", "project", "USD"), (*rows, ("total", "", "", f"-{report.credit_usd:,}")), 3)
    if report.commitments:
        rows = tuple(
            (each.what, f"{each.seconds / HOUR:,.1f}", f"{each.unused / HOUR:,.1f}", f"{each.usd:,}") for each in report.commitments
        )
        yield Table("committed", ("what", "node hours", "of these not there", "USD for these"), rows)
    if report.plans:
        rows = tuple(
            (each.plan.what, *map("{:,}".format, (each.committed_usd, each.used_usd, each.unused_usd)), *_shares(each))
            for each in report.plans
        )
        headings = ("what", "USD", "used USD", "unused USD", "utilisation", "coverage of what it can pay")
        yield Table("committed US dollars an hour", headings, rows)
    if report.price_changes:
        rows = tuple(
            (
                f"{each.what}{'' if each.pool == UNKNOWN else f' (pool {each.pool})'}",
                *(_utc(each.moment), each.source, exact(each.before) or "not known", exact(each.after) or ""),
            )
            for each in report.price_changes
        )
        yield Table("prices that changed", ("price", "from", "source", "USD an hour before", "after"), rows, 3)
    if report.lost:
        yield Table(
            "lost by interruptions",
            ("team", "project", "interruptions", "steps done again", "GPU hours"),
            tuple(
                (
                    owner.team,
                    owner.project,
                    f"{each.interruptions:,.0f}",
                    f"{each.steps:,.0f}",
                    f"{each.gpu_seconds / HOUR:,.1f}" + (f" and {each.of_unknown_pace:,.0f} steps" if each.of_unknown_pace else ""),
                )
                for owner, each in sorted(report.lost.items(), key=lambda pair: (pair[0].team, pair[0].project, pair[0].workload_type))
            ),
            2,
        )
    if report.evictions:
        rows = tuple((queue, reason, f"{risen:,.0f}") for (queue, reason), risen in sorted(report.evictions.items()))
        yield Table("sent back to their queue by Kueue", ("cluster queue", "reason", "workloads"), rows, 2)


def warnings(report: Report) -> Iterator[str]:
    """Yield what is missing from the report, and other remarks that a reader must know."""
    if report.period != report.asked:
        yield f"{report.asked.name} is not over: these are the figures up to {_utc(report.period.end)}."
    for price, seconds in report.unknown.items():
        yield f"unknown, and in no sum: {price} ({seconds / HOUR:,.1f} node hours); give it with --prices."
    for owner, seconds in report.unmatched.items():
        yield f"{float(seconds) / HOUR:,.1f} GPU hours of {owner.team} ran on nodes without any record, and are in no sum."
    for kind, seconds in report.uncommitted.items():
        yield (
            f"{seconds / HOUR:,.1f} node hours were of {kind}, for which no commitment is given: what was billed for the rest of the "
            "reservation is in no sum; name it under commitments in the file of --prices."
        )
    for name, seconds in [*report.doubled.items()][:_GAPS_SHOWN]:
        yield (
            f"{name} means two different objects for {seconds / HOUR:,.1f} hours, as when two clusters write into one Prometheus: "
            "their shares are unknown; choose one with --match."
        )
    if len(report.doubled) > _GAPS_SHOWN:
        yield f"and {len(report.doubled) - _GAPS_SHOWN} more such names; --format json has them all."
    for gap in report.gaps[:_GAPS_SHOWN]:
        yield f"no samples of {gap.name} from {_utc(gap.start)} to {_utc(gap.end)}: nothing in that time is counted."
    if len(report.gaps) > _GAPS_SHOWN:
        yield f"and {len(report.gaps) - _GAPS_SHOWN} more such gaps; --format json has them all."
    for each in filter(lambda each: each.left_usd, report.credits):
        yield f"{each.left_usd:,} USD of the credit {each.credit.name} had no effect: there was no more cost that it covers."
    yield from report.notes


def price_notes(report: Report) -> Iterator[str]:
    """Yield the sources of prices and credits."""
    for name, source in sorted(report.sources.items()):
        day = f"undated, read {source.as_of}" if source.undated else str(source.as_of)
        yield f"prices{'' if source.verified else ' (not checked against the cloud)'}, {day}: {name}"
    for each in report.credits:
        yield f"credit {each.credit.name}: {each.credit.source}"


def _figures(totals: Totals) -> tuple[str, ...]:
    unknown = " +?" if totals.unpriced else ""
    hours = (f"{totals.gpu_hours:,.1f}", f"{totals.measured / HOUR:,.1f}", busy(totals) if totals.measured else "")
    return (f"{totals.usd:,}{unknown}", f"{totals.allocated_usd:,}{unknown}", f"{totals.idle_usd:,}", f"{totals.saved_usd:,}", *hours)


def exact(usd: Fraction | None) -> str | None:
    """Return a price with all its digits; None if it is not known."""
    return None if usd is None else f"{as_decimal(usd).normalize():f}"


def _shares(spent: SpentPlan) -> Iterator[str]:
    """Yield utilisation and coverage in percent; an empty text where there is nothing to divide by."""
    return ("" if each is None else f"{float(each):.1%}" for each in (spent.utilisation, spent.coverage))


def _percent(part: float, whole: float) -> str:
    return f" ({part / whole:.0%})" if whole else ""


def _utc(moment: int) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M UTC")
