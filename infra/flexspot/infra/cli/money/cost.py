"""`flexspot cost` of a plan: its output for people, for programs, and for a comment on a pull request."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.markup import escape

from flexspot.capacity.catalog.platform import VOCABULARIES, Platform
from flexspot.capacity.cost.costed_plan import BudgetStanding, plan_of, read_json, read_plan_file, read_use_file, shipped_use
from flexspot.capacity.cost.figures import Scenario, day_of, days_of
from flexspot.capacity.cost.plan_comparison import budget_checks, budgets_data, compared, comparison_data, plan_cost_data
from flexspot.capacity.cost.plan_cost import plan_cost
from flexspot.capacity.cost.programs.declared import is_program
from flexspot.capacity.settings.platform import OnUnknownPrices
from flexspot.infra.cli.command_line import ReportFormat, expect, option, print_as
from flexspot.infra.cli.console import Table, as_json, change, folded, literal, markdown_rows, out, print_table, shown_usd
from flexspot.infra.cli.money.machine_prices import with_own
from flexspot.infra.cli.money.program_cost import change_words, show_cost_of_program, sources_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import date

    from flexspot.capacity.cost.costed_plan import BudgetCheck
    from flexspot.capacity.cost.figures import CostLine, Figures, PriceUsed
    from flexspot.capacity.cost.plan_comparison import PlanComparison
    from flexspot.capacity.cost.plan_cost import PlanCost


_COLOURS = {
    BudgetStanding.EXCEEDED: "bold red",
    BudgetStanding.NEAR: "yellow",
    BudgetStanding.UNKNOWN: "yellow",
    BudgetStanding.WITHIN: "green",
}


@dataclass(frozen=True)
class CostReport:
    """Cost of the plan of `stack`."""

    stack: str
    cost: PlanCost
    comparison: PlanComparison | None
    checks: tuple[BudgetCheck, ...]
    """Its budgets, compared with the month of `scenario`."""
    scenario: Scenario
    today: date

    @property
    def at_least(self) -> str:
        """The words before expected and idle sums that lack prices."""
        return "at least " if self.cost.unknown else ""

    @property
    def worst_at_least(self) -> str:
        """The words before a worst case that lacks a price without a bound."""
        return "at least " if self.cost.unbounded else ""

    @property
    def old(self) -> list[OldPrices]:
        """Outdated prices, grouped by source and age limit."""
        found: dict[tuple[str, int], list[tuple[PriceUsed, CostLine]]] = {}
        for line in self.cost.lines:
            for price in line.prices:
                if (self.today - price.as_of).days > days_of(price):
                    found.setdefault((price.source, days_of(price)), []).append((price, line))
        return [_old(each, self.today) for each in found.values()]


@dataclass(frozen=True)
class OldPrices:
    """Outdated prices of one source."""

    source: str
    as_of: date
    age_days: int
    what: tuple[str, ...]
    """Names of the prices."""
    expected_usd: Decimal
    """Expected cost of the lines that use one of these prices. They may use other prices too."""
    worst_usd: Decimal
    """Worst case of the same lines."""
    listed: bool
    """True if the cloud's price list has some of them."""


def _old(used: list[tuple[PriceUsed, CostLine]], today: date) -> OldPrices:
    first, lines = used[0][0], {line.key: line for _, line in used}
    figures = [line.figures for line in lines.values() if line.figures is not None]
    return OldPrices(
        first.source,
        first.as_of,
        (today - first.as_of).days,
        tuple(dict.fromkeys(price.what for price, _ in used)),
        sum((each.expected_usd for each in figures), start=Decimal(0)),
        sum((each.worst_usd for each in figures), start=Decimal(0)),
        any(price.listed for price, _ in used),
    )


def cost_json(report: CostReport) -> str:
    """Return the report as JSON, with money as text."""
    old = [{"of" if name == "what" else name: value for name, value in asdict(each).items() if name != "listed"} for each in report.old]
    data = {"stack": report.stack, **plan_cost_data(report.cost), "budgets": budgets_data(report.checks), "old_prices": old}
    if report.comparison is not None:
        data["comparison"] = comparison_data(report.comparison)
    return as_json(data)


def show_cost(report: CostReport) -> None:
    """Print the sums first, then the lines, the teams, and the sources of the prices."""
    cost, total = report.cost, report.cost.total
    out.print(f"[bold]{escape(report.stack)}[/] on {cost.cloud} in {escape(cost.region)}, USD a month:")
    # An upper bound of the expected cost is known if all missing prices have a bound.
    most = f" and at most {shown_usd(total.expected_at_most_usd)}" if cost.unknown and not cost.unbounded else ""
    line = f"expected {report.at_least}{shown_usd(total.expected_usd)}{most}"
    out.print(f"  {line}, worst case {report.worst_at_least}{shown_usd(total.worst_usd)}")
    out.print(f"  with nothing running {report.at_least}{shown_usd(total.floor_usd)}")
    if cost.cloud == "local":
        out.print("  fake nodes cost nothing: these are the prices of the EKS machines that they imitate.")
    for check in report.checks:
        out.print(f"  [{_COLOURS[check.standing]}]{check.standing}[/]: {escape(budget_text(check, report.scenario))}")
    if report.comparison is not None:
        _show_comparison(report.comparison)
    print_table(_lines(cost))
    print_table(_teams(cost))
    for missing in cost.unknown:
        out.print(f"[yellow]unknown[/], {how_counted(cost, missing)}: {escape(missing)}")
    for note in cost.notes:
        out.print(f"[yellow]passed over[/]: {escape(note)}")
    sources = price_sources(cost)
    for price in sources:
        out.print(f"[dim]prices{'' if price.verified else ' (?)'}, {day_of(price)}: {escape(price.source)}[/]")
    for old in report.old:
        out.print(f"[yellow]{escape(age_words(old, report.cost))}[/]")
    if any(not each.verified for each in sources):
        out.print("[dim](?) not checked against the cloud's own list. Give your own prices with --prices.[/]")


def how_counted(cost: PlanCost, missing: str) -> str:
    """Return the sums that include an unknown price."""
    return "and in no sum" if missing in cost.unbounded else "at on-demand in the worst case, and in no other sum"


def age_words(old: OldPrices, cost: PlanCost) -> str:
    """Return a sentence about outdated prices: their age, the sums that depend on them, and what to do."""
    more = f" and {len(old.what) - 1} more" if len(old.what) > 1 else ""
    rests = f"expected {shown_usd(old.expected_usd)} and worst case {shown_usd(old.worst_usd)} rest on them"
    age = f"{old.age_days} days old: {old.what[0]}{more}, of {old.as_of}; {rests}"
    if not old.listed:
        return f"{age}; no price list covers them: give newer prices with --prices"
    asks = f"flexspot prices refresh --cloud {VOCABULARIES[Platform(cost.cloud)].catalog} --region {cost.region} --file FILE"
    return f"{age}; `{asks}` gets what is in the cloud's price lists; give other prices with --prices"


def budget_text(check: BudgetCheck, scenario: Scenario) -> str:
    """Return one budget in a sentence."""
    least = "at least " if check.unknown else ""
    most = f" and at most {shown_usd(check.at_most_usd)}" if check.unknown and check.at_most_usd is not None else ""
    share = f"({least}{check.spent_percent:.0f} %)"
    return f"{scenario} {least}{shown_usd(check.spent_usd)}{most} of {check.budget_usd:,} budgeted for {check.owner} {share}"


def price_sources(cost: PlanCost) -> list[PriceUsed]:
    """Return one price of each source, in the order in which the lines use them."""
    return list({price.source: price for line in cost.lines for price in line.prices}.values())


def of_known(found: PlanComparison) -> str:
    """Return the words after the difference of two totals."""
    return " in known prices" if found.before.unknown or found.after.unknown else ""


def three(figures: Figures | None, unknown: bool = False, unbounded: bool = False) -> tuple[str, str, str]:  # noqa: FBT001
    """Return the three figures in the order of the columns, marked if something with an unknown price is missing from them."""
    if figures is None:
        return "not known", "not known", "not known"
    mark, worst_mark = (" +?" if each else "" for each in (unknown, unbounded))
    return shown_usd(figures.expected_usd) + mark, shown_usd(figures.worst_usd) + worst_mark, shown_usd(figures.floor_usd) + mark


def of_line(line: CostLine) -> tuple[str, str, str]:
    """Return the figures of a line. If none of its prices is known, only the worst case is."""
    expected, worst, floor = three(line.figures, bool(line.unknown), bool(line.unbounded))
    return (expected, worst, floor) if line.priced else ("not known", worst, "not known")


def changes(report: PlanComparison) -> Table:
    """Return a table of the lines that differ: change, name, quantities, and differences of the expected and the worst case."""
    rows: list[tuple[str, ...]] = []
    for each in report.lines:
        (state, sides), difference = change_words(each.before, each.after, lambda side: side.quantity), each.difference
        expected, worst = ("not known",) * 2 if difference is None else (change(difference.expected_usd), change(difference.worst_usd))
        expected = expected if each.priced else "not known"
        rows.append((state, f"{each.line.section}: {each.line.name}", sides, expected, worst))
    return Table("changed against the base", ("", "what", "of how much", "expected", "worst case"), rows, 3)


def _show_comparison(found: PlanComparison) -> None:
    if not found.lines:
        out.print("  no line differs from the base.")
        return
    difference = found.difference
    differences = f"expected {change(difference.expected_usd)}, worst case {change(difference.worst_usd)}{of_known(found)}"
    out.print(f"  against the base: {differences}")
    print_table(changes(found))


def _lines(cost: PlanCost) -> Table:
    rows = [(line.section, line.name, line.quantity, *of_line(line)) for line in cost.lines]
    total = ("", "total", "", *three(cost.total, bool(cost.unknown), bool(cost.unbounded)))
    return Table("what is billed, USD a month", ("", "what", "of how much", "expected", "worst case", "idle"), rows, 3, total=total)


def _teams(cost: PlanCost) -> Table:
    """Return a table of each team's part, then the parts of no team.

    A team may borrow from another one, so the figures with borrowing do not sum to the total.
    """
    rows: list[tuple[str, ...]] = []
    for team in cost.teams:
        figures = three(team.figures, bool(team.unknown), bool(team.unbounded))
        rows.append((team.name, str(team.gpus), *figures, "" if team.most_usd is None else shown_usd(team.worst_usd)))
    rows.append(("(no team's)", "", *three(cost.unallocated), ""))
    rows.append(("(platform, shared by all)", "", *three(cost.platform), ""))
    headings = ("team", "GPUs of its own", "expected", "worst case", "idle", "worst with borrowed GPUs")
    return Table("whose it is, USD a month", headings, rows)


_MARKS = {BudgetStanding.EXCEEDED: "🔴", BudgetStanding.NEAR: "🟡", BudgetStanding.UNKNOWN: "🟡", BudgetStanding.WITHIN: "🟢"}


def cost_markdown(report: CostReport) -> str:
    """Return the comment. Names and other texts are escaped, so that they contain neither markup nor mentions."""
    return "\n".join(_comment(report)) + "\n"


def _comment(report: CostReport) -> Iterator[str]:
    cost, found = report.cost, report.comparison
    expected = f"{report.at_least}{shown_usd(cost.total.expected_usd)} USD a month expected"
    more = "" if found is None else f" ({change(found.difference.expected_usd, 'no change')})"
    yield f"### Cost of <code>{literal(report.stack)}</code>: {expected}{more}"
    yield ""
    yield from _sums(report)
    yield ""
    for check in report.checks:
        yield f"- {_MARKS[check.standing]} {check.standing}: {literal(budget_text(check, report.scenario))}"
    if report.checks:
        yield ""
    if found is not None:
        yield from folded(f"{len(found.lines)} changed lines", changes(found))
        if not found.lines:
            yield from ("No line differs from the base.", "")
    yield from folded("What is billed", _lines(cost))
    yield from folded("Whose it is", _teams(cost))
    missing = [(each, how_counted(cost, each)) for each in cost.unknown]
    yield from folded(f"{len(missing)} prices not known", Table("", ("price", "counted"), missing, 2))
    yield from folded(f"{len(cost.notes)} things passed over", Table("", ("what",), [(each,) for each in cost.notes]))
    old = [(age_words(each, report.cost),) for each in report.old]
    yield from folded(f"{len(old)} sources of prices are old", Table("", ("what",), old))
    yield from folded("Where the prices are from", sources_table(price_sources(cost)))


def _sums(report: CostReport) -> Iterator[str]:
    total, found = report.cost.total, report.comparison
    names = {
        Scenario.EXPECTED: "expected",
        Scenario.WORST: f"worst case: every ceiling reached all month{', at least' if report.cost.unbounded else ''}",
        Scenario.FLOOR: "idle: nothing runs",
    }
    columns: dict[str, Callable[[Scenario], str]] = {
        f"now{', at least' if report.cost.unknown else ''}": lambda each: shown_usd(total.of(each))
    }
    if found is not None:
        before, difference = found.before.total, found.difference
        columns = {
            f"base{', at least' if found.before.unknown else ''}": lambda each: shown_usd(before.of(each)),
            **columns,
            f"change{of_known(found)}": lambda each: change(difference.of(each)),
        }
    rows = [(name, *(of(each) for of in columns.values())) for each, name in names.items()]
    yield from markdown_rows(Table("", ("USD a month", *columns), rows))


STANDARD_INPUT = Path("-")
"""The argument that means standard input."""


def cost(
    plan: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A plan that `flexspot preview --offline --plan-out FILE` wrote. For any Pulumi program, the output of `pulumi stack "
            "export` or `pulumi preview --json --show-sames` (- reads it from a pipe).",
        ),
    ],
    base: Annotated[
        Path | None, option("--base", "Another file of the same kind to compare with, at the same prices.", metavar="FILE")
    ] = None,
    use: Annotated[Path | None, option("--use", "The expected use in a month; see docs/guides/costs.md.")] = None,
    prices: Annotated[Path | None, option("--prices", "Your own price file; its prices override the shipped ones.")] = None,
    against: Annotated[
        Literal["expected", "worst-case"], option("--budget-against", "The figure that budgets are compared with.")
    ] = "expected",
    near: Annotated[int, option("--near-percent", "The percentage of a budget from which to warn.", min=1, max=100)] = 80,
    region: Annotated[
        str | None, option("--region", "For any program: the region of resources if neither they nor their provider name one.")
    ] = None,
    form: Annotated[ReportFormat, option("--format", "text for people, json for programs, markdown for comments.")] = "text",
) -> None:
    """Estimate what a plan, or any Pulumi program, costs in a month. Exit code 1 above a budget.

    For a plan: worst case, expected and idle, by pool, team and cloud resource. Exit code 1 also if missing prices may exceed a budget and
    the stack's budget.on_unknown_prices is refuse. For any program: as declared, at most and at least, by resource.
    """
    written = read_json(plan, sys.stdin.buffer.read() if plan == STANDARD_INPUT else None)
    if is_program(written):
        show_cost_of_program(written, plan, base, prices, region, form)
        return
    file = plan_of(written, plan)
    base_file = None if base is None else read_plan_file(base)
    expected = shipped_use() if use is None else read_use_file(use)
    book = with_own(file.prices(), prices)
    found = plan_cost(file.plan, book, expected)
    comparison = None
    if base_file is not None:
        same = base_file.prices().cloud is book.cloud
        comparison = compared(plan_cost(base_file.plan, book if same else with_own(base_file.prices(), None), expected), found)
    checks = budget_checks(found, Scenario(against), near)
    report = CostReport(file.stack, found, comparison, tuple(checks), Scenario(against), datetime.now(UTC).date())
    if form == "text":
        show_cost(report)
    else:
        print_as(form, json=lambda: cost_json(report), markdown=lambda: cost_markdown(report))
    refused = (
        {BudgetStanding.EXCEEDED, BudgetStanding.UNKNOWN}
        if file.plan.spending.on_unknown_prices is OnUnknownPrices.REFUSE
        else {BudgetStanding.EXCEEDED}
    )
    expect(all(each.standing not in refused for each in checks))
