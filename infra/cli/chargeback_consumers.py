"""The workloads and users that cost most, of each team: as a table for people, as data, and as a CSV that sums to what the nodes cost."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from capacity.chargeback.consumers import TOP_CONSUMERS, TopConsumers, top_consumers
from capacity.chargeback.queries import NO_USER, Workload
from capacity.chargeback.report import HOUR, Totals, WorkLine
from capacity.values.shown_text import spreadsheet_cell
from infra.cli.report_tables import Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from capacity.chargeback.report import Report

IDLE = "(idle GPUs)"
"""Stands where no workload or user is to blame: the team pays for GPUs that nobody had."""


def _workload(line: WorkLine) -> Workload:
    return line.workload


def _user(line: WorkLine) -> str:
    return line.user


def _both(line: WorkLine) -> tuple[Workload, str]:
    return line.workload, line.user


def consumer_tables(report: Report, top: int = TOP_CONSUMERS) -> Iterator[Table]:
    """Each team's rows sum to what the team pays. Of users there is a table where any is known."""
    if workloads := top_consumers(report, top, _workload):
        yield _table("workload", workloads)
    if any(each.user != NO_USER for each in report.work):
        yield _table("user", top_consumers(report, top, _user))


def _table(heading: str, found: Mapping[str, TopConsumers[Any]]) -> Table:
    rows = [
        (team, name, f"{usd:,}{' +?' if totals.unpriced else ''}", _share(of, usd), *_hours(totals, name))
        for team, of in found.items()
        for name, usd, totals in _rows(of)
    ]
    return Table(f"{heading}s that cost most", ("team", heading, "USD", "of team", "GPU hours", "busy"), tuple(rows), 2)


def _rows(of: TopConsumers[Any]) -> Iterator[tuple[str, Decimal, Totals]]:
    yield from ((str(name), totals.usd, totals) for name, totals in of.top)
    if of.count:
        yield f"({of.count:,} more)", of.others.usd, of.others
    if of.idle_usd:
        yield IDLE, of.idle_usd, Totals()


def _share(of: TopConsumers[Any], usd: Decimal) -> str:
    return f"{usd / of.team.usd:.0%}" if of.team.usd else ""


def _hours(totals: Totals, name: str) -> tuple[str, str]:
    if name == IDLE:
        return "", ""
    return f"{totals.gpu_hours:,.1f}", "" if totals.used_share is None else f"{totals.used_share:.0%}"


def consumer_data(report: Report, top: int = TOP_CONSUMERS) -> list[dict[str, Any]]:
    """As plain data: of each team its dearest workloads and users, all others in one, and what it pays for idle GPUs.

    `users` and `other_users` are null where no pod has the label of one.
    """
    workloads, users = top_consumers(report, top, _workload), top_consumers(report, top, _user)
    known = any(each.user != NO_USER for each in report.work)
    return [
        {
            "team": team,
            "total_usd": str(of.team.usd),
            "idle_usd": str(of.idle_usd),
            "workloads": [{**asdict(workload), **_figures(of, totals)} for workload, totals in of.top],
            "other_workloads": {"count": of.count, **_figures(of, of.others)},
            "users": [{"user": user, **_figures(of, totals)} for user, totals in users[team].top] if known else None,
            "other_users": {"count": users[team].count, **_figures(of, users[team].others)} if known else None,
        }
        for team, of in workloads.items()
    ]


def _figures(of: TopConsumers[Any], totals: Totals) -> dict[str, Any]:
    share = of.share(totals)
    return {
        "usd": str(totals.usd.quantize(Decimal("0.01"))),
        "share_of_team": None if share is None else round(share, 6),
        "gpu_hours": round(totals.gpu_hours, 4),
        "measured_gpu_hours": round(totals.measured / HOUR, 4),
        "used_gpu_hours": round(totals.used / HOUR, 4) if totals.measured else None,
        "unpriced_gpu_hours": round(totals.unpriced / HOUR, 4),
    }


_KEY = ("period", "team", "row", "workload_kind", "namespace", "workload", "user", "consumers")
_FIGURES = ("usd", "share_of_team", "gpu_hours", "measured_gpu_hours", "used_gpu_hours", "unpriced_gpu_hours")


def consumers_csv(report: Report, top: int = TOP_CONSUMERS) -> str:
    """A row for each of a team's dearest pairs of workload and user, one for all others, one for idle GPUs, one for nodes without GPUs:
    `usd` sums to what each team pays, and over all rows to what the nodes cost. `consumers` is how many a row stands for.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((*_KEY, *_FIGURES))
    for team, of in _every_team(report, top).items():
        for row, names, count, totals in _csv_rows(of):
            figures = _figures(of, totals)
            cells = map(spreadsheet_cell, (team, row, *names))
            written = ("" if figures[each] is None else figures[each] for each in _FIGURES)
            writer.writerow((report.period.name, *cells, count or "", *written))
    return text.getvalue()


_Both = tuple[Workload, str]


def _every_team(report: Report, top: int) -> dict[str, TopConsumers[_Both]]:
    """Those without GPUs, too: they pay for idle ones, or for nodes that have none."""
    found = top_consumers(report, top, _both)
    return {
        team: found[team] if team in found else TopConsumers[_Both](totals, (), Totals(), 0)
        for (team,), totals in report.by("team").items()
    }


def _csv_rows(of: TopConsumers[_Both]) -> Iterator[tuple[str, tuple[str, str, str, str], int, Totals]]:
    nobody = ("", "", "", "")
    for (workload, user), totals in of.top:
        yield "consumer", (workload.kind, workload.namespace, workload.name, user), 1, totals
    if of.count:
        yield "others", nobody, of.count, of.others
    if not of.top and of.team.allocated_usd:
        yield "platform", nobody, 0, Totals(allocated_usd=of.team.allocated_usd)
    if of.idle_usd:
        yield "idle", nobody, 0, Totals(idle_usd=of.idle_usd)
