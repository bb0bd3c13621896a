"""A report as annotations of a pull request: GitHub shows them at the lines of the files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from capacity.values.verdict import Severity
from policies.lint.formats.as_text import defect_lines, printable, summary_lines

if TYPE_CHECKING:
    from policies.lint.report import Placed, Report

# https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands
_COMMANDS: Final = {Severity.CRITICAL: "error", Severity.HIGH: "error", Severity.MEDIUM: "warning", Severity.LOW: "notice"}


def as_github(report: Report) -> str:
    """One annotation for each open finding, then the summary for whoever reads the log."""
    return "".join(f"{line}\n" for line in [*map(_annotation, report.open), *defect_lines(report), *summary_lines(report)])


def _annotation(placed: Placed) -> str:
    finding = placed.finding
    name = finding.object.described.strip()
    text = f"{name + ': ' if name else ''}{finding.message}.\nTo fix it: {finding.remediation}"
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
