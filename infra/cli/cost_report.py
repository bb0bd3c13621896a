"""What `flexspot cost` prints for people, for programs, and for a comment on a pull request."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from capacity.cost.plan_comparison import Standing, budgets_data, comparison_data, plan_cost_data
from capacity.cost.plan_cost import Scenario
from infra.cli.advise_report import shown_usd
from infra.cli.console import out, show_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from decimal import Decimal

    from capacity.cost.plan_comparison import BudgetCheck, PlanComparison
    from capacity.cost.plan_cost import Figures, PlanCost, PriceUsed


_COLOURS = {Standing.EXCEEDED: "bold red", Standing.NEAR: "yellow", Standing.UNKNOWN: "yellow", Standing.WITHIN: "green"}


@dataclass(frozen=True)
class CostReport:
    """What there is to say of the plan of `stack`. `checks` are its budgets, held against the month of `scenario`."""

    stack: str
    cost: PlanCost
    comparison: PlanComparison | None
    checks: tuple[BudgetCheck, ...]
    scenario: Scenario

    @property
    def at_least(self) -> str:
        """Stands before every sum where prices are missing."""
        return "at least " if self.cost.unknown else ""


def cost_json(report: CostReport) -> str:
    """The report as JSON, money as text."""
    data = {"stack": report.stack, **plan_cost_data(report.cost), "budgets": budgets_data(report.checks)}
    if report.comparison is not None:
        data["comparison"] = comparison_data(report.comparison)
    return json.dumps(data, indent=2) + "\n"


def show_cost(report: CostReport) -> None:
    """The sums first, then line by line, by team, and what the prices stand on."""
    cost, total = report.cost, report.cost.total
    out.print(f"[bold]{escape(report.stack)}[/] on {cost.cloud} in {escape(cost.region)}, USD a month:")
    out.print(f"  expected {report.at_least}{shown_usd(total.expected_usd)}, worst case {report.at_least}{shown_usd(total.worst_usd)}")
    out.print(f"  with nothing running {report.at_least}{shown_usd(total.floor_usd)}")
    if cost.cloud == "local":
        out.print("  fake nodes cost nothing: these are the prices of the machines of EKS that they stand for.")
    for check in report.checks:
        out.print(f"  [{_COLOURS[check.standing]}]{check.standing}[/]: {escape(budget_text(check, report.scenario))}")
    if report.comparison is not None:
        _show_comparison(report.comparison)
    show_table(_lines(cost))
    show_table(_teams(cost))
    for missing in cost.unknown:
        out.print(f"[yellow]not known[/], and in no sum: {escape(missing)}")
    sources = price_sources(cost)
    for price in sources:
        out.print(f"[dim]prices{'' if price.verified else ' (?)'}, {price.as_of}: {escape(price.source)}[/]")
    if any(not each.verified for each in sources):
        out.print("[dim](?) not checked against the cloud's own list. Give your own prices with --prices.[/]")


def budget_text(check: BudgetCheck, scenario: Scenario) -> str:
    """One budget in a sentence."""
    least = "at least " if check.unknown else ""
    spent = check.spent_usd * 100 / check.budget_usd
    return f"{scenario} {least}{shown_usd(check.spent_usd)} of {check.budget_usd:,} budgeted for {check.owner} ({least}{spent:.0f} %)"


def price_sources(cost: PlanCost) -> list[PriceUsed]:
    """One price of each source, in the order in which the lines use them."""
    return list({price.source: price for line in cost.lines for price in line.prices}.values())


def of_known(found: PlanComparison) -> str:
    """What to say behind a difference in all."""
    return " in known prices" if found.before.unknown or found.after.unknown else ""


def change(usd: Decimal, none: str = "0") -> str:
    """A difference with its sign, or what to say of none."""
    return f"{usd:+,.2f}" if usd else none


def three(figures: Figures | None, unknown: tuple[str, ...] = ()) -> tuple[str, str, str]:
    """The three figures in the order of the columns, with a mark where something with an `unknown` price comes on top."""
    if figures is None:
        return "not known", "not known", "not known"
    mark = " +?" if unknown else ""
    expected, worst, floor = (shown_usd(each) + mark for each in (figures.expected_usd, figures.worst_usd, figures.floor_usd))
    return expected, worst, floor


def changes(report: PlanComparison) -> Iterator[tuple[str, str, str, str, str]]:
    """Each line that differs: what happened to it, its name, of how much it was and is, and what that does to two of the figures."""
    for each in report.lines:
        told = "new" if each.before is None else "gone" if each.after is None else "changed"
        sides = dict.fromkeys(side.quantity for side in (each.before, each.after) if side is not None)
        difference = each.difference
        expected, worst = ("not known",) * 2 if difference is None else (change(difference.expected_usd), change(difference.worst_usd))
        yield told, f"{each.line.section}: {each.line.name}", " → ".join(sides), expected, worst


def _show_comparison(found: PlanComparison) -> None:
    if not found.lines:
        out.print("  no line differs from the base.")
        return
    difference = found.difference
    told = f"expected {change(difference.expected_usd)}, worst case {change(difference.worst_usd)}{of_known(found)}"
    out.print(f"  against the base: {told}")
    table = _table("", "what", "of how much", "expected", "worst case", title="changed against the base")
    for row in changes(found):
        table.add_row(*(escape(each) for each in row))
    show_table(table)


def _lines(cost: PlanCost) -> Table:
    table = _table("", "what", "of how much", "expected", "worst case", "idle", title="what is billed, USD a month")
    for line in cost.lines:
        table.add_row(line.section, escape(line.name), escape(line.quantity), *three(line.figures, line.unknown))
    table.add_section()
    table.add_row("", "total", "", *three(cost.total, cost.unknown))
    return table


def _teams(cost: PlanCost) -> Table:
    table = _table("team", "GPUs of its own", "expected", "worst case", "idle", title="whose it is, USD a month")
    for team in cost.teams:
        table.add_row(escape(team.name), str(team.gpus), *three(team.figures, team.unknown))
    table.add_row("(no team's)", "", *three(cost.unallocated))
    table.add_row("(platform, shared by all)", "", *three(cost.platform))
    return table


def _table(*headings: str, title: str) -> Table:
    table = Table(title=title, title_justify="left")
    for heading in headings:
        money = heading in {"expected", "worst case", "idle", "GPUs of its own"}
        table.add_column(heading, justify="right" if money else "left", overflow="fold", no_wrap=money)
    return table


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
