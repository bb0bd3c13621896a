"""What `flexspot cost` prints for a comment on a pull request: the sums to be seen, the rest folded away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.cost.budgets import Standing
from capacity.cost.figures import Scenario
from infra.cli.advise_report import shown_usd
from infra.cli.cost_report import budget_text, change, changes, of_known, price_sources, three

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from infra.cli.cost_report import CostReport

_PLAIN = frozenset(" .,:;/=%()+-→?")
_SHOWN = 500
"""Rows of a table that are shown: a comment holds 65,536 characters, and GitHub refuses a longer one."""

_MARKS = {Standing.EXCEEDED: "🔴", Standing.NEAR: "🟡", Standing.UNKNOWN: "🟡", Standing.WITHIN: "🟢"}


def cost_markdown(report: CostReport) -> str:
    """The comment. Text that somebody wrote, such as a name, is shown as it is: no markup in it counts, and nobody is mentioned."""
    return "\n".join(_comment(report)) + "\n"


def literal(text: str) -> str:
    """`text` so that neither Markdown nor HTML nor GitHub's mentions see anything in it."""
    return "".join(each if each.isalnum() or each in _PLAIN else f"&#{ord(each)};" for each in " ".join(text.split()))


def _comment(report: CostReport) -> Iterator[str]:
    cost, total, found = report.cost, report.cost.total, report.comparison
    more = "" if found is None else f" ({change(found.difference.expected_usd, 'no change')})"
    yield f"### Cost of <code>{literal(report.stack)}</code>: {report.at_least}{shown_usd(total.expected_usd)} USD a month expected{more}"
    yield ""
    yield from _sums(report)
    yield ""
    for check in report.checks:
        yield f"- {_MARKS[check.standing]} {check.standing}: {literal(budget_text(check, report.scenario))}"
    if report.checks:
        yield ""
    if found is not None:
        rows = [_cells(each) for each in changes(found)]
        yield from (
            _folded(f"{len(rows)} changed lines", ("", "what", "of how much", "expected", "worst case"), rows, 3)
            if rows
            else (
                "No line differs from the base.",
                "",
            )
        )
    lines = [_cells((line.section, line.name, line.quantity, *three(line.figures, line.unknown))) for line in cost.lines]
    yield from _folded("What is billed", ("", "what", "of how much", "expected", "worst case", "idle"), lines, 3)
    teams = [_cells((team.name, str(team.gpus), *three(team.figures, team.unknown))) for team in cost.teams]
    teams += [_cells(("(no team's)", "", *three(cost.unallocated))), _cells(("(platform, shared by all)", "", *three(cost.platform)))]
    yield from _folded("Whose it is", ("team", "GPUs of its own", "expected", "worst case", "idle"), teams, 1)
    if cost.unknown:
        yield from _folded(f"{len(cost.unknown)} prices not known, in no sum", ("price",), [_cells((each,)) for each in cost.unknown], 1)
    sources = [_cells((str(each.as_of), "yes" if each.verified else "no", each.source)) for each in price_sources(cost)]
    yield from _folded("Where the prices are from", ("as of", "checked", "source"), sources, 3)


def _sums(report: CostReport) -> Iterator[str]:
    total, found = report.cost.total, report.comparison
    names = {
        Scenario.EXPECTED: "expected",
        Scenario.WORST: "worst case: every ceiling reached all month",
        Scenario.FLOOR: "idle: nothing runs",
    }
    now = f"now{', at least' if report.cost.unknown else ''}"
    if found is None:
        yield f"| USD a month | {now} |"
        yield "|:--|--:|"
        yield from (f"| {name} | {shown_usd(total.of(each))} |" for each, name in names.items())
        return
    yield f"| USD a month | base{', at least' if found.before.unknown else ''} | {now} | change{of_known(found)} |"
    yield "|:--|--:|--:|--:|"
    for each, name in names.items():
        yield f"| {name} | {shown_usd(found.before.total.of(each))} | {shown_usd(total.of(each))} | {change(found.difference.of(each))} |"


def _cells(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(literal(each) for each in texts)


def _folded(title: str, headings: tuple[str, ...], rows: list[tuple[str, ...]], texts: int) -> Iterator[str]:
    """A table behind a line to click on; the first `texts` columns are text, the others numbers."""
    yield f"<details><summary>{title}</summary>"
    # Without an empty line GitHub reads what follows as HTML.
    yield ""
    yield f"| {' | '.join(headings)} |"
    yield f"|{'|'.join(':--' if column < texts else '--:' for column in range(len(headings)))}|"
    yield from (f"| {' | '.join(row)} |" for row in rows[:_SHOWN])
    yield ""
    if len(rows) > _SHOWN:
        yield f"... and {len(rows) - _SHOWN} more; `flexspot cost --format json` has them all."
        yield ""
    yield "</details>"
    yield ""
