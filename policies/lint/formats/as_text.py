"""A report for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from capacity.values.verdict import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policies.lint.report import Placed, Report

_COLOURS: Final = {Severity.CRITICAL: "1;31", Severity.HIGH: "31", Severity.MEDIUM: "33", Severity.LOW: "36"}
_DIM: Final = "2"
_BOLD: Final = "1"


def as_text(report: Report, *, colours: bool = False, details: bool = False) -> str:
    """A line and a remedy for each open finding, then what it comes to.

    `details` lists what is suppressed and what could not be decided too, which are counted in any case.
    """
    return "".join(f"{line}\n" for line in _lines(report, _Paint(on=colours), details=details))


def printable(text: str) -> str:
    """Without what would move a terminal's cursor or begin a line of its own: names in YAML may hold any character."""
    return text if text.isprintable() else "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def defect_lines(report: Report) -> list[str]:
    """What was judged by nobody because a rule or a reader is broken."""
    return [_line(each, "undecided", _DIM, _PLAIN) for each in report.undecided if each.defect]


def summary_lines(report: Report) -> list[str]:
    """What a run comes to."""
    return list(_summary(report, _PLAIN))


class _Paint:
    def __init__(self, *, on: bool) -> None:
        self._on = on

    def __call__(self, text: str, colour: str) -> str:
        safe = printable(text)
        return f"\x1b[{colour}m{safe}\x1b[0m" if self._on else safe


_PLAIN: Final = _Paint(on=False)


def _lines(report: Report, paint: _Paint, *, details: bool) -> Iterator[str]:
    for each in report.open:
        severity = each.finding.severity
        yield _line(each, severity.value, _COLOURS[severity], paint)
        yield f"  {paint('To fix it:', _DIM)} {printable(each.finding.remediation)}"
        if each.references:
            yield f"  {paint('See', _DIM)} {printable(each.references)}"
    for each in report.findings if details else ():
        if each.suppressed is not None:
            yield f"{_line(each, 'suppressed', _DIM, paint)} ({printable(each.suppressed.described)})"
    for each in report.undecided:
        if details or each.defect:
            yield _line(each, "undecided", _DIM, paint)
    yield from _summary(report, paint)


def _line(placed: Placed, word: str, colour: str, paint: _Paint) -> str:
    finding = placed.finding
    name = finding.object.described.strip()
    said = printable(f"{finding.rule} ({finding.code}): {name + ': ' if name else ''}{finding.message}")
    return f"{paint(f'{placed.path}:{placed.line}:', _BOLD)} {paint(word, colour)} {said}"


def _summary(report: Report, paint: _Paint) -> Iterator[str]:
    found = ", ".join(f"{count} {severity}" for severity, count in report.by_severity.items() if count) or "no findings"
    yield paint(f"{found} in {report.objects} objects of {report.files} files.", _BOLD)
    if suppressed := len(report.findings) - len(report.open):
        yield f"{suppressed} suppressed."
    if report.settled:
        yield f"{report.settled} entries of the baseline have no finding any more."
    if report.undecided:
        yield f"{len(report.undecided)} could not be decided from these files."
    if report.skipped:
        yield "not judged: " + ", ".join(f"{count} {reason}" for reason, count in sorted(report.skipped.items())) + "."
