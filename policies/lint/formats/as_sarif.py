"""A report as SARIF 2.1.0, which code scanning services read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from capacity.values.verdict import Severity
from policies.lint.configuration import judged_rules
from policies.lint.report import fingerprints

if TYPE_CHECKING:
    from policies.lint.report import Placed, Report
    from policies.rules import AnyRule

_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS: Final = {Severity.CRITICAL: "error", Severity.HIGH: "error", Severity.MEDIUM: "warning", Severity.LOW: "note"}
# GitHub shows over 9.0 as critical, over 7.0 as high, over 4.0 as medium.
# https://docs.github.com/code-security/reference/code-scanning/sarif-support-for-code-scanning
_SECURITY_SEVERITY: Final = {Severity.CRITICAL: "9.5", Severity.HIGH: "8.0", Severity.MEDIUM: "5.5", Severity.LOW: "2.0"}


def as_sarif(report: Report, version: str) -> str:
    """One run, with every rule described, and every finding; those that are suppressed say why."""
    rules = list(judged_rules())
    known = {rule.name for rule in rules}
    places = {rule.name: place for place, rule in enumerate(rules)}
    driver = {"name": "flexspot lint", "semanticVersion": version, "rules": [_rule(rule) for rule in rules]}
    results = [
        _result(each, name, places[each.finding.rule] if each.finding.rule in known else None)
        for each, name in zip(report.findings, fingerprints(report.findings), strict=True)
    ]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(rule: AnyRule) -> dict[str, Any]:
    return {
        "id": rule.name,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": {"text": rule.name.replace("-", " ").capitalize() + "."},
        "fullDescription": {"text": rule.why},
        "help": {"text": rule.remediation, "markdown": f"{rule.why}\n\n**To fix it:** {rule.remediation}\n\nReference: {rule.page}"},
        "helpUri": rule.link,
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"security-severity": _SECURITY_SEVERITY[rule.severity], "tags": ["kubernetes", rule.code]},
    }


def _result(placed: Placed, fingerprint: str, place: int | None) -> dict[str, Any]:
    finding = placed.finding
    name = finding.object.described.strip()
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{name + ': ' if name else ''}{finding.message}. To fix it: {finding.remediation}"},
        "locations": [
            {
                "physicalLocation": {"artifactLocation": {"uri": _uri(placed.path)}, "region": {"startLine": placed.line}},
                "logicalLocations": [{"fullyQualifiedName": str(finding.object), "kind": "resource"}],
            }
        ],
        "partialFingerprints": {"flexspot/v1": fingerprint},
    }
    if place is not None:
        result["ruleIndex"] = place
    if placed.suppressed is not None:
        kind = "inSource" if placed.suppressed.in_source else "external"
        result["suppressions"] = [{"kind": kind, "status": "accepted", "justification": placed.suppressed.described}]
    return result


def _uri(path: str) -> str:
    """A path as a reference that is relative to where the linter was started, which is the checkout in a workflow."""
    absolute = "file://" if path.startswith("/") else ""
    return absolute + quote(path.replace("\\", "/").encode(errors="surrogateescape"))
