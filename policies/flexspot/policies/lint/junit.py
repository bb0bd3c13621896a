"""A report as JUnit's XML, which CI servers show as tests: a finding that fails the run is a failure, an accepted one is skipped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

from flexspot.capacity.values.shown_text import printable

if TYPE_CHECKING:
    from flexspot.policies.lint.report import LintReport, Placed

_SUITE: Final = "flexspot lint"


def as_junit(report: LintReport) -> str:
    """One suite for each file with findings, one case for each finding; a clean run is one case that passes.

    A finding that fails no run is a case that passes and says what was found. The form is Jenkins's junit-10.xsd, which GitLab, CircleCI
    and Azure read, too.
    """
    root = ET.Element("testsuites", name=_SUITE)
    by_file: dict[str, list[Placed]] = {}
    for each in report.findings:
        by_file.setdefault(each.path, []).append(each)
    for path, findings in by_file.items():
        failures = sum(each.binding and each.suppressed is None for each in findings)
        skipped = sum(each.suppressed is not None for each in findings)
        counts = {"tests": str(len(findings)), "failures": str(failures), "skipped": str(skipped), "errors": "0"}
        suite = ET.SubElement(root, "testsuite", name=_text(path), **counts)
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
    where = {"classname": _text(placed.path), "file": _text(placed.path), "line": str(placed.line)}
    case = ET.SubElement(suite, "testcase", name=_text(name), **where)
    told = [f"{placed.path}:{placed.line}: {placed.message}.", f"To fix it: {finding.remediation}"]
    told += [f"See {placed.references}"] if placed.references else []
    if placed.suppressed is not None:
        ET.SubElement(case, "skipped", message=_text(str(placed.suppressed)))
    elif placed.binding:
        ET.SubElement(case, "failure", type=finding.severity.value, message=_text(placed.message)).text = _lines(told)
    else:
        ET.SubElement(case, "system-out").text = _lines([f"{finding.severity}: {told[0]}", *told[1:]])


def _lines(told: list[str]) -> str:
    """Each on a line of its own, and no more: a name with an end of line in it would begin a line that a runner takes for a command."""
    return "\n".join(map(_text, told))


def _text(text: str) -> str:
    """Without the control characters and lone surrogates that XML has no form for."""
    return printable(text).encode(errors="backslashreplace").decode()
