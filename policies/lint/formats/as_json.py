"""A report for programs, in the form that docs/lint.md describes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from policies.lint.report import Placed, Report


def as_json(report: Report) -> str:
    """`{"findings": [...], "summary": {...}}`, the suppressed findings among the others."""
    return json.dumps({"findings": [_finding(each) for each in report.findings], "summary": summary(report)}, indent=2) + "\n"


def summary(report: Report) -> dict[str, Any]:
    """What was judged, what came of it, and what was passed over."""
    return {
        "files": report.files,
        "documents": report.documents,
        "objects": report.objects,
        "findings": {severity.value: count for severity, count in report.by_severity.items()},
        "undecided": len(report.undecided),
        "suppressed": len(report.findings) - len(report.open),
        "settled_in_baseline": report.settled,
        "skipped": {reason.name.lower().replace("_", "-"): count for reason, count in sorted(report.skipped.items())},
        "fail_on": report.fail_on.value,
        "failed": report.failed,
    }


def _finding(placed: Placed) -> dict[str, Any]:
    finding, suppressed = placed.finding, placed.suppressed
    return {
        "rule": finding.rule,
        "code": finding.code,
        "severity": finding.severity.value,
        "path": placed.path,
        "line": placed.line,
        "object": str(finding.object),
        "message": finding.message,
        "remediation": finding.remediation,
        "fixable": finding.adds is not None,
        "suppressed": None if suppressed is None else {"reason": suppressed.reason, "until": suppressed.until},
    }
