"""The nodes of a report, read again from the JSON that `flexspot chargeback --format json` writes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

if TYPE_CHECKING:
    from pathlib import Path

MAX_REPORT_BYTES = 256 * 2**20
"""No report is longer: it holds sums."""


class ReportError(ValueError):
    """A report that cannot be used, and why."""


class _Part(BaseModel):
    """Reports say more than is needed here."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


Whole = Annotated[int, Field(ge=0, le=10**15)]
Cents = Annotated[Decimal, Field(ge=0, le=10**15, decimal_places=2)]


class ReportedNodes(_Part):
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


class _Period(_Part):
    name: str
    start: str = Field(alias="from")
    end: str = Field(alias="to")


class _Report(_Part):
    period: _Period
    step_seconds: Annotated[int, Field(ge=1, le=3600)]
    complete: bool
    node_usd: Cents
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


def read_report(path: Path) -> ReportedMonth:
    """Raises ReportError for a file that is no such report, or whose nodes do not sum to it; OSError for one that cannot be read."""
    if path.stat().st_size > MAX_REPORT_BYTES:
        raise ReportError(f"it is longer than {MAX_REPORT_BYTES // 2**20} MiB, as no report is")
    try:
        written = json.loads(path.read_text(encoding="utf-8"))
        report = _Report.model_validate(written)
        start, end = (int(datetime.fromisoformat(each).timestamp()) for each in (report.period.start, report.period.end))
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, each['loc'])) or 'it'}: {each['msg']}" for each in error.errors()[:5])
        raise ReportError(f"it is no report of flexspot chargeback --format json: {problems}") from error
    except (ValueError, RecursionError) as error:
        raise ReportError(f"it is no report of flexspot chargeback --format json: {error}") from error
    if report.nodes is None:
        raise ReportError("an earlier version of flexspot wrote it, without its nodes by machine: make the report anew")
    summed = sum((each.usd for each in report.nodes), Decimal(0))
    if summed != report.node_usd:
        raise ReportError(f"its nodes sum to {summed} USD and not to its {report.node_usd} USD: it was changed by hand, or is cut off")
    if end <= start:
        raise ReportError("its period ends before it begins")
    return ReportedMonth(report.period.name, start, end, report.step_seconds, report.complete, report.node_usd, tuple(report.nodes))
