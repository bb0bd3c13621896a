"""An audit as a table for people, most urgent first, and as JSON for programs."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from flexspot.capacity.values.shown_text import printable
from flexspot.policies.core import is_defect
from flexspot.policies.lint.report import GRAVEST_FIRST

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.infra.audit.audit import Audited, AuditReport
    from flexspot.policies.values.finding import Finding

_UNKNOWN: Final = "?"


def as_text(report: AuditReport, *, details: bool = False) -> str:
    """Return a row and its remedy for each finding, then a summary with the counts and the missing permissions."""
    return "".join(f"{printable(line)}\n" for line in _lines(report, details=details))


def _lines(report: AuditReport, *, details: bool) -> Iterator[str]:
    rows = [(each.finding.severity.value, _usd(each), each.finding.object.described.strip(), each) for each in report.findings]
    widths = [max((len(text) for text in column), default=0) for column in zip(*(row[:3] for row in rows), strict=True)] or [0, 0, 0]
    if rows:
        yield f"   {'severity':<{max(widths[0], 8)}}  {'USD/month':>{max(widths[1], 9)}}  {'object':<{widths[2]}}  what is wrong"
    for number, (severity, usd, name, each) in enumerate(rows, start=1):
        text = f"{each.finding.rule} ({each.finding.code}): {each.finding.message}"
        yield f"{number:>2} {severity:<{max(widths[0], 8)}}  {usd:>{max(widths[1], 9)}}  {name:<{widths[2]}}  {text}"
        yield f"     To fix it: {each.finding.remediation}"
    yield from (
        f"undecided: {each.rule} ({each.code}): {each.object.described}: {each.message}" for each in _listed(report, details=details)
    )
    yield from _summary(report)


def _listed(report: AuditReport, *, details: bool) -> list[Finding]:
    """Return the undecided findings to print: all with `details`, otherwise those of rules that failed to run."""
    return [each for each in report.undecided if details or is_defect(each)]


def _summary(report: AuditReport) -> Iterator[str]:
    counts = {severity: sum(each.finding.severity is severity for each in report.findings) for severity in GRAVEST_FIRST}
    found = ", ".join(f"{count} {severity}" for severity, count in counts.items() if count) or "no findings"
    yield f"{found} in {report.objects} objects: {report.nodes} nodes with {report.gpus} GPUs, {report.pods} pods."
    known = [each.usd_per_month for each in report.findings if each.usd_per_month is not None]
    if known:
        yield f"{sum(known, Decimal(0)):,.0f} USD a month (730 hours) as far as prices are known."
    if report.suppressed:
        yield f"{report.suppressed} suppressed."
    if report.undecided:
        yield f"{len(report.undecided)} could not be decided."
    if report.managed:
        yield f"{report.managed} objects in the cloud's own namespaces are left out; --namespace checks one of them."
    if report.unlisted:
        yield f"own rules cover kinds that were not listed, so these were not judged: {', '.join(report.unlisted)}."
    if report.listing.namespaces:
        yield f"of the namespaces {', '.join(report.listing.namespaces)} only: what is missing may be elsewhere."
    if report.lacking:
        yield "not permitted, so what depends on it is not judged, or undecided: " + "; ".join(map(str, report.lacking)) + "."


def _usd(each: Audited) -> str:
    return _UNKNOWN if each.usd_per_month is None else f"{each.usd_per_month:,.0f}"


def as_json(report: AuditReport, *, details: bool = False) -> str:
    """Return the findings in order with a summary, and with `details` also undecided ones."""
    document: dict[str, Any] = {"findings": [_finding(each) for each in report.findings]}
    undecided = _listed(report, details=details)
    if details or undecided:
        document["undecided"] = [
            {"rule": each.rule, "code": each.code, "object": str(each.object), "message": each.message} for each in undecided
        ]
    counts = {severity.value: sum(each.finding.severity is severity for each in report.findings) for severity in GRAVEST_FIRST}
    summary = {
        "server": report.listing.server,
        "version": report.listing.version,
        "objects": report.objects,
        "nodes": report.nodes,
        "gpus": report.gpus,
        "pods": report.pods,
        "findings": counts,
        "undecided": len(report.undecided),
        "suppressed": report.suppressed,
        "managed": report.managed,
        "unlisted": list(report.unlisted),
        "namespaces": list(report.listing.namespaces),
        "lacking": [str(each) for each in report.lacking],
        "complete": report.listing.complete,
        "failed": report.failed,
    }
    return json.dumps({**document, "summary": summary}, indent=2) + "\n"


def _finding(each: Audited) -> dict[str, Any]:
    finding = each.finding
    return {
        "rule": finding.rule,
        "code": finding.code,
        "severity": finding.severity.value,
        "fails": each.binding,
        "object": str(finding.object),
        "nodes": list(each.nodes),
        "message": finding.message,
        "remediation": finding.remediation,
        "usd_per_month": None if each.usd_per_month is None else str(each.usd_per_month.quantize(Decimal("0.01"))),
        "fixable": finding.adds is not None,
    }
