"""Output formats of a report: text, GitHub annotations, JSON, SARIF for code scanning services, and JUnit for CI servers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote
from xml.etree import ElementTree as ET

from flexspot.capacity.values.shown_text import printable
from flexspot.capacity.values.verdict import Severity
from flexspot.policies.lint.configuration import Configuration
from flexspot.policies.lint.report import LintReport, Placed, fingerprints

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.policies.judging import Rule
    from flexspot.policies.lint.report import LintReport, Placed


_COLOURS: Final = {Severity.CRITICAL: "1;31", Severity.HIGH: "31", Severity.MEDIUM: "33", Severity.LOW: "36"}
_CLUSTERS_LISTED: Final = 8
"""Most clusters that the summary names. JSON lists all."""

_KINDS_LISTED: Final = 8
"""Most uncovered kinds that the summary names, the most frequent first. JSON lists all."""

_DIM: Final = "2"
_BOLD: Final = "1"


def as_text(report: LintReport, *, colours: bool = False, details: bool = False) -> str:
    """Return a line and a remedy for each open finding, and the summary.

    With `details`, suppressed and undecided findings are listed, too. They are always counted.
    """
    return "".join(f"{line}\n" for line in _lines(report, _Paint(on=colours), details=details))


def defect_lines(report: LintReport) -> list[str]:
    """Return the lines about objects that a broken rule or reader could not judge."""
    return [_line(each, "undecided", _DIM, _PLAIN) for each in report.undecided if each.defect]


def summary_lines(report: LintReport) -> list[str]:
    """Return the summary of a run, without colours."""
    return list(_summary(report, _PLAIN))


class _Paint:
    def __init__(self, *, on: bool) -> None:
        self._on = on

    def __call__(self, text: str, colour: str) -> str:
        safe = printable(text)
        return f"\x1b[{colour}m{safe}\x1b[0m" if self._on else safe


_PLAIN: Final = _Paint(on=False)


def _lines(report: LintReport, paint: _Paint, *, details: bool) -> Iterator[str]:
    for each in report.open:
        severity = each.finding.severity
        yield _line(each, severity.value, _COLOURS[severity], paint)
        yield f"  {paint('To fix it:', _DIM)} {printable(each.finding.remediation)}"
        if each.references:
            yield f"  {paint('See', _DIM)} {printable(each.references)}"
    for each in report.findings if details else ():
        if each.suppressed is not None:
            yield f"{_line(each, 'suppressed', _DIM, paint)} ({printable(str(each.suppressed))})"
    for each in report.undecided:
        if details or each.defect:
            yield _line(each, "undecided", _DIM, paint)
    yield from _summary(report, paint)


def _line(placed: Placed, word: str, colour: str, paint: _Paint) -> str:
    finding = placed.finding
    text = printable(f"{finding.rule} ({finding.code}): {placed.description}")
    return f"{paint(f'{placed.path}:{placed.line}:', _BOLD)} {paint(word, colour)} {text}"


def _summary(report: LintReport, paint: _Paint) -> Iterator[str]:
    found = ", ".join(f"{count} {severity}" for severity, count in report.by_severity.items() if count) or "no findings"
    yield paint(f"{found} in {report.objects} objects of {report.files} files.", _BOLD)
    if len(report.clusters) > 1:
        named = [f"{name} ({count})" for name, count in sorted(report.clusters.items())]
        more = f" and {len(named) - _CLUSTERS_LISTED} more" if len(named) > _CLUSTERS_LISTED else ""
        yield printable(f"compared within {len(named)} clusters: {', '.join(named[:_CLUSTERS_LISTED])}{more}.")
    if suppressed := len(report.findings) - len(report.open):
        yield f"{suppressed} suppressed."
    if report.settled:
        yield f"{report.settled} entries of the baseline no longer have a finding."
    if report.undecided:
        yield f"{len(report.undecided)} could not be decided from these files."
    if report.unjudged:
        most = sorted(report.unjudged.items(), key=lambda each: (-each[1], each[0]))
        more = f" and {len(most) - _KINDS_LISTED} more kinds" if len(most) > _KINDS_LISTED else ""
        listed = ", ".join(f"{count} {kind}" for kind, count in most[:_KINDS_LISTED])
        yield printable(f"no rule covers: {listed}{more}.")
    if report.skipped:
        yield "not judged: " + ", ".join(f"{count} {reason}" for reason, count in sorted(report.skipped.items())) + "."


# https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands
_COMMANDS: Final = {Severity.CRITICAL: "error", Severity.HIGH: "error", Severity.MEDIUM: "warning", Severity.LOW: "notice"}


def as_github(report: LintReport) -> str:
    """Return an annotation for each open finding, and the summary for readers of the log."""
    return "".join(f"{line}\n" for line in [*map(_annotation, report.open), *defect_lines(report), *summary_lines(report)])


def _annotation(placed: Placed) -> str:
    finding = placed.finding
    text = f"{placed.description}.\nTo fix it: {finding.remediation}"
    if placed.references:
        text += f"\nSee {placed.references}"
    title = f"{finding.rule} ({finding.code}, {finding.severity})"
    place = f"file={_property(placed.path)},line={placed.line},title={_property(title)}"
    return f"::{_COMMANDS[finding.severity]} {place}::{_data(text)}"


def _data(text: str) -> str:
    lines = [printable(line) for line in text.split("\n")]
    return "%0A".join(line.replace("%", "%25").replace("\r", "%0D") for line in lines)


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def as_json(report: LintReport, *, details: bool = False) -> str:
    """Return `{"findings": [...], "summary": {...}}`, with suppressed findings among the others.

    `details` adds `undecided` in the same form.
    """
    shown: dict[str, Any] = {"findings": [_finding(each) for each in report.findings]}
    if details:
        shown["undecided"] = [_finding(each) for each in report.undecided]
    return json.dumps({**shown, "summary": summary(report)}, indent=2) + "\n"


def summary(report: LintReport) -> dict[str, Any]:
    """Return the counts of judged, undecided, suppressed and skipped items, and the result of the run."""
    return {
        "files": report.files,
        "documents": report.documents,
        "objects": report.objects,
        "clusters": dict(sorted(report.clusters.items())),
        "findings": {severity.value: count for severity, count in report.by_severity.items()},
        "undecided": len(report.undecided),
        "suppressed": len(report.findings) - len(report.open),
        "settled_in_baseline": report.settled,
        "unjudged": dict(sorted(report.unjudged.items())),
        "skipped": {reason.name.lower().replace("_", "-"): count for reason, count in sorted(report.skipped.items())},
        "fail_on": report.fail_on.value if report.fail_on else "mandatory",
        "failed": report.failed,
    }


def _finding(placed: Placed) -> dict[str, Any]:
    finding, suppressed = placed.finding, placed.suppressed
    return {
        "rule": finding.rule,
        "code": finding.code,
        "severity": finding.severity.value,
        "fails": placed.binding and placed.suppressed is None,
        "path": placed.path,
        "line": placed.line,
        "object": str(finding.object),
        "clusters": list(placed.clusters),
        "message": finding.message,
        "remediation": finding.remediation,
        "references": placed.references,
        "fixable": finding.adds is not None,
        "suppressed": None if suppressed is None else {"reason": suppressed.reason, "until": suppressed.until and str(suppressed.until)},
    }


SARIF_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
"""Schema of the format that code scanning services accept."""

_LEVELS: Final = {Severity.CRITICAL: "error", Severity.HIGH: "error", Severity.MEDIUM: "warning", Severity.LOW: "note"}
# GitHub shows over 9.0 as critical, over 7.0 as high, over 4.0 as medium.
# https://docs.github.com/code-security/reference/code-scanning/sarif-support-for-code-scanning
_SECURITY_SEVERITY: Final = {Severity.CRITICAL: "9.5", Severity.HIGH: "8.0", Severity.MEDIUM: "5.5", Severity.LOW: "2.0"}


def as_sarif(report: LintReport, version: str, configuration: Configuration | None = None) -> str:
    """Return a SARIF run with all rules of the configuration and all findings. Suppressed findings include their reason."""
    judging = configuration or Configuration()
    rules = judging.known_rules
    known = {rule.name for rule in rules}
    places = {rule.name: place for place, rule in enumerate(rules)}
    driver = {"name": "flexspot lint", "semanticVersion": version, "rules": [_rule(rule, judging.page(rule.page)) for rule in rules]}
    results = [
        _result(each, name, places[each.finding.rule] if each.finding.rule in known else None)
        for each, name in zip(report.findings, fingerprints(report.findings), strict=True)
    ]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return json.dumps({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(rule: Rule, page: str) -> dict[str, Any]:
    reference = f"\n\nReference: {page}" if page else ""
    return {
        "id": rule.name,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": {"text": rule.name.replace("-", " ").capitalize() + "."},
        "fullDescription": {"text": rule.why},
        "help": {"text": rule.remediation, "markdown": f"{rule.why}\n\n**To fix it:** {rule.remediation}{reference}"},
        **({"helpUri": rule.link} if rule.link else {}),
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"security-severity": _SECURITY_SEVERITY[rule.severity], "tags": ["kubernetes", rule.code]},
    }


def _result(placed: Placed, fingerprint: str, place: int | None) -> dict[str, Any]:
    finding = placed.finding
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "level": _LEVELS[finding.severity],
        "message": {"text": printable(f"{placed.description}. To fix it: {finding.remediation}", lines=True)},
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
        result["suppressions"] = [{"kind": kind, "status": "accepted", "justification": str(placed.suppressed)}]
    return result


def _uri(path: str) -> str:
    """Return a path as a URI reference relative to the linter's working folder, which is the checkout in a workflow."""
    absolute = "file://" if path.startswith("/") else ""
    return absolute + quote(path.replace("\\", "/").encode(errors="surrogateescape"))


_SUITE: Final = "flexspot lint"


def as_junit(report: LintReport) -> str:
    """Return a JUnit suite for each file with findings, and a case for each finding. A run without findings is one case that passes.

    A finding that does not fail the run is a case that passes, with the finding in its output. The schema is Jenkins's junit-10.xsd, which
    GitLab, CircleCI and Azure also read.
    """
    root = ET.Element("testsuites", name=_SUITE)
    by_file: dict[str, list[Placed]] = {}
    for each in report.findings:
        by_file.setdefault(each.path, []).append(each)
    for path, findings in by_file.items():
        failures = sum(each.binding and each.suppressed is None for each in findings)
        skipped = sum(each.suppressed is not None for each in findings)
        counts = {"tests": str(len(findings)), "failures": str(failures), "skipped": str(skipped), "errors": "0"}
        suite = ET.SubElement(root, "testsuite", name=_xml_text(path), **counts)
        for each in findings:
            _case(suite, each)
    if not by_file:
        suite = ET.SubElement(root, "testsuite", name=_SUITE, tests="1", failures="0", skipped="0", errors="0")
        ET.SubElement(suite, "testcase", name=f"{report.objects} objects of {report.files} files", classname=_SUITE)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: ET.Element, placed: Placed) -> None:
    finding = placed.finding
    name = f"{finding.rule} ({finding.code}) {finding.object.described}".strip()
    where = {"classname": _xml_text(placed.path), "file": _xml_text(placed.path), "line": str(placed.line)}
    case = ET.SubElement(suite, "testcase", name=_xml_text(name), **where)
    lines = [f"{placed.path}:{placed.line}: {placed.message}.", f"To fix it: {finding.remediation}"]
    lines += [f"See {placed.references}"] if placed.references else []
    if placed.suppressed is not None:
        ET.SubElement(case, "skipped", message=_xml_text(str(placed.suppressed)))
    elif placed.binding:
        ET.SubElement(case, "failure", type=finding.severity.value, message=_xml_text(placed.message)).text = _xml_lines(lines)
    else:
        ET.SubElement(case, "system-out").text = _xml_lines([f"{finding.severity}: {lines[0]}", *lines[1:]])


def _xml_lines(lines: list[str]) -> str:
    """Return the texts on one line each. A line break inside a name would start a line that a runner takes for a command."""
    return "\n".join(map(_xml_text, lines))


def _xml_text(text: str) -> str:
    """Replace control characters and lone surrogates, which XML cannot represent."""
    return printable(text).encode(errors="backslashreplace").decode()
