"""The nodes of a report, read again from the JSON that `flexspot chargeback --format json` writes."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from capacity.catalog.exchange_rates import US_DOLLARS
from capacity.chargeback.saved_report import Cents, Part, ReportError, SavedReport, read_saved, refuse_another_sum

if TYPE_CHECKING:
    from pathlib import Path

Whole = Annotated[int, Field(ge=0, le=10**15)]


class ReportedNodes(Part):
    """See NodeGroup."""

    cloud: str
    region: str
    machine: str
    capacity_type: str
    nodes: Whole
    node_seconds: Whole
    unpriced_seconds: Whole
    unused_seconds: Whole
    usd: Cents


class _Report(SavedReport):
    step_seconds: Annotated[int, Field(ge=1, le=3600)]
    nodes: list[ReportedNodes] | None = None


@dataclass(frozen=True)
class ReportedMonth:
    """What a report says: its period in seconds of Unix time, and its nodes, whose cents sum to `node_usd`."""

    name: str
    start: int
    end: int
    step_seconds: int
    complete: bool
    node_usd: Decimal
    nodes: tuple[ReportedNodes, ...]
    currency: str = US_DOLLARS


def read_report(path: Path) -> ReportedMonth:
    """Raises ReportError for a file that is no such report, or whose nodes do not sum to it; OSError for one that cannot be read."""
    report, start, end = read_saved(path, _Report)
    if report.nodes is None:
        raise ReportError("an earlier version of flexspot wrote it, without its nodes by machine: make the report anew")
    refuse_another_sum("nodes", sum((each.usd for each in report.nodes), Decimal(0)), report)
    if end <= start:
        raise ReportError("its period ends before it begins")
    return ReportedMonth(
        report.period.name, start, end, report.step_seconds, report.complete, report.node_usd, tuple(report.nodes), report.currency
    )
