"""What `flexspot cost` prints for people, for programs, and for a comment on a pull request."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from capacity.catalog.platform import VOCABULARIES, Platform
from capacity.cost.budget_checks import Standing
from capacity.cost.figures import Scenario, day_of, days_of
from capacity.cost.plan_comparison import budgets_data, comparison_data, plan_cost_data
from capacity.values.shown_text import printable
from infra.cli.advise_report import shown_usd
from infra.cli.console import out, show_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import date

    from capacity.cost.budget_checks import BudgetCheck
    from capacity.cost.figures import CostLine, Figures, PriceUsed
    from capacity.cost.plan_comparison import PlanComparison
    from capacity.cost.plan_cost import PlanCost


_COLOURS = {Standing.EXCEEDED: "bold red", Standing.NEAR: "yellow", Standing.UNKNOWN: "yellow", Standing.WITHIN: "green"}


@dataclass(frozen=True)
class CostReport:
    """What there is to say of the plan of `stack`. `checks` are its budgets, held against the month of `scenario`."""

    stack: str
    cost: PlanCost
    comparison: PlanComparison | None
    checks: tuple[BudgetCheck, ...]
    scenario: Scenario
    today: date

    @property
    def at_least(self) -> str:
        """Stands before what is expected and idle where prices are missing."""
        return "at least " if self.cost.unknown else ""

    @property
    def worst_at_least(self) -> str:
        """Stands before the worst case where a missing price has no bound."""
        return "at least " if self.cost.unbounded else ""

    @property
    def old(self) -> list[OldPrices]:
        """The prices that are too old to be taken for today's, those of one source and age limit together."""
        found: dict[tuple[str, int], list[tuple[PriceUsed, CostLine]]] = {}
        for line in self.cost.lines:
            for price in line.prices:
                if (self.today - price.as_of).days > days_of(price):
                    found.setdefault((price.source, days_of(price)), []).append((price, line))
        return [_old(each, self.today) for each in found.values()]


@dataclass(frozen=True)
class OldPrices:
    """Prices of one source: how old they are, of what, and what the lines come to that use them, whatever other prices they use besides.

    `listed` is whether the cloud's list can be asked for some of them.
    """

    source: str
    as_of: date
    age_days: int
    what: tuple[str, ...]
    expected_usd: Decimal
    worst_usd: Decimal
    listed: bool


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
    """The report as JSON, money as text."""
    old = [
        {
            "source": each.source,
            "as_of": each.as_of.isoformat(),
            "age_days": each.age_days,
            "of": list(each.what),
            "expected_usd": str(each.expected_usd),
            "worst_usd": str(each.worst_usd),
        }
        for each in report.old
    ]
    data = {"stack": report.stack, **plan_cost_data(report.cost), "budgets": budgets_data(report.checks), "old_prices": old}
    if report.comparison is not None:
        data["comparison"] = comparison_data(report.comparison)
    return json.dumps(data, indent=2) + "\n"


def show_cost(report: CostReport) -> None:
    """The sums first, then line by line, by team, and what the prices stand on."""
    cost, total = report.cost, report.cost.total
    out.print(f"[bold]{escape(report.stack)}[/] on {cost.cloud} in {escape(cost.region)}, USD a month:")
    told = f"expected {report.at_least}{shown_usd(total.expected_usd)}{_and_at_most(cost)}"
    out.print(f"  {told}, worst case {report.worst_at_least}{shown_usd(total.worst_usd)}")
    out.print(f"  with nothing running {report.at_least}{shown_usd(total.floor_usd)}")
    if cost.cloud == "local":
        out.print("  fake nodes cost nothing: these are the prices of the EKS machines that they imitate.")
    for check in report.checks:
        out.print(f"  [{_COLOURS[check.standing]}]{check.standing}[/]: {escape(budget_text(check, report.scenario))}")
    if report.comparison is not None:
        _show_comparison(report.comparison)
    show_table(_lines(cost))
    show_table(_teams(cost))
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


def _and_at_most(cost: PlanCost) -> str:
    """What is expected at most, where missing prices have a bound."""
    return f" and at most {shown_usd(cost.total.expected_at_most_usd)}" if cost.unknown and not cost.unbounded else ""


def how_counted(cost: PlanCost, missing: str) -> str:
    """In which sums a price that nobody knows is."""
    return "and in no sum" if missing in cost.unbounded else "at on-demand in the worst case, and in no other sum"


def age_words(old: OldPrices, cost: PlanCost) -> str:
    """That prices are old, what rests on them, and what to do."""
    more = f" and {len(old.what) - 1} more" if len(old.what) > 1 else ""
    rests = f"expected {shown_usd(old.expected_usd)} and worst case {shown_usd(old.worst_usd)} rest on them"
    told = f"{old.age_days} days old: {old.what[0]}{more}, of {old.as_of}; {rests}"
    if not old.listed:
        return f"{told}; no price list covers them: give newer prices with --prices"
    asks = f"flexspot prices refresh --cloud {VOCABULARIES[Platform(cost.cloud)].catalog} --region {cost.region} --file FILE"
    return f"{told}; `{asks}` gets what is in the cloud's price lists; give other prices with --prices"


def budget_text(check: BudgetCheck, scenario: Scenario) -> str:
    """One budget in a sentence."""
    least = "at least " if check.unknown else ""
    most = f" and at most {shown_usd(check.at_most_usd)}" if check.unknown and check.at_most_usd is not None else ""
    share = f"({least}{check.spent_percent:.0f} %)"
    return f"{scenario} {least}{shown_usd(check.spent_usd)}{most} of {check.budget_usd:,} budgeted for {check.owner} {share}"


def price_sources(cost: PlanCost) -> list[PriceUsed]:
    """One price of each source, in the order in which the lines use them."""
    return list({price.source: price for line in cost.lines for price in line.prices}.values())


def of_known(found: PlanComparison) -> str:
    """What to say behind a difference in all."""
    return " in known prices" if found.before.unknown or found.after.unknown else ""


def change(usd: Decimal, none: str = "0") -> str:
    """A difference with its sign, or what to say of none."""
    return f"{usd:+,.2f}" if usd else none


def three(figures: Figures | None, unknown: bool = False, unbounded: bool = False) -> tuple[str, str, str]:  # noqa: FBT001
    """The three figures in the order of the columns, with a mark where something with an unknown price comes on top."""
    if figures is None:
        return "not known", "not known", "not known"
    mark, worst_mark = (" +?" if each else "" for each in (unknown, unbounded))
    return shown_usd(figures.expected_usd) + mark, shown_usd(figures.worst_usd) + worst_mark, shown_usd(figures.floor_usd) + mark


def of_line(line: CostLine) -> tuple[str, str, str]:
    """Those of a line. Where no price of it is known, the worst case is all that is."""
    expected, worst, floor = three(line.figures, bool(line.unknown), bool(line.unbounded))
    return (expected, worst, floor) if line.priced else ("not known", worst, "not known")


def changes(report: PlanComparison) -> Iterator[tuple[str, str, str, str, str]]:
    """Each line that differs: what happened to it, its name, of how much it was and is, and what that does to two of the figures."""
    for each in report.lines:
        told = "new" if each.before is None else "gone" if each.after is None else "changed"
        sides = dict.fromkeys(side.quantity for side in (each.before, each.after) if side is not None)
        difference = each.difference
        expected, worst = ("not known",) * 2 if difference is None else (change(difference.expected_usd), change(difference.worst_usd))
        expected = expected if each.priced else "not known"
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
        table.add_row(line.section, escape(line.name), escape(line.quantity), *of_line(line))
    table.add_section()
    table.add_row("", "total", "", *three(cost.total, bool(cost.unknown), bool(cost.unbounded)))
    return table


def _teams(cost: PlanCost) -> Table:
    table = _table(*TEAM_COLUMNS, title="whose it is, USD a month")
    for row in team_rows(cost):
        table.add_row(*map(escape, row))
    return table


TEAM_COLUMNS = ("team", "GPUs of its own", "expected", "worst case", "idle", "worst with borrowed GPUs")


def team_rows(cost: PlanCost) -> Iterator[tuple[str, ...]]:
    """Each team's part, then what is no team's. What a team may borrow is another's: those figures do not sum to the total."""
    for team in cost.teams:
        figures = three(team.figures, bool(team.unknown), bool(team.unbounded))
        yield team.name, str(team.gpus), *figures, "" if team.most_usd is None else shown_usd(team.worst_usd)
    yield "(no team's)", "", *three(cost.unallocated), ""
    yield "(platform, shared by all)", "", *three(cost.platform), ""


def _table(*headings: str, title: str) -> Table:
    table = Table(title=title, title_justify="left")
    for heading in headings:
        money = heading in {"expected", "worst case", "idle", *TEAM_COLUMNS[1:]}
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
    return "".join(
        each if each.isalnum() or each in _PLAIN else f"&#{ord(each)};" for each in " ".join(printable(text, lines=True).split())
    )


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
        rows = [cells(each) for each in changes(found)]
        yield from (
            folded(f"{len(rows)} changed lines", ("", "what", "of how much", "expected", "worst case"), rows, 3)
            if rows
            else (
                "No line differs from the base.",
                "",
            )
        )
    lines = [cells((line.section, line.name, line.quantity, *of_line(line))) for line in cost.lines]
    yield from folded("What is billed", ("", "what", "of how much", "expected", "worst case", "idle"), lines, 3)
    yield from folded("Whose it is", TEAM_COLUMNS, [cells(each) for each in team_rows(cost)], 1)
    if cost.unknown:
        missing = [cells((each, how_counted(cost, each))) for each in cost.unknown]
        yield from folded(f"{len(cost.unknown)} prices not known", ("price", "counted"), missing, 2)
    if cost.notes:
        yield from folded(f"{len(cost.notes)} things passed over", ("what",), [cells((each,)) for each in cost.notes], 1)
    if report.old:
        old = [cells((age_words(each, report.cost),)) for each in report.old]
        yield from folded(f"{len(old)} sources of prices are old", ("what",), old, 1)
    sources = [cells((day_of(each), "yes" if each.verified else "no", each.source)) for each in price_sources(cost)]
    yield from folded("Where the prices are from", ("as of", "checked", "source"), sources, 3)


def _sums(report: CostReport) -> Iterator[str]:
    total, found = report.cost.total, report.comparison
    names = {
        Scenario.EXPECTED: "expected",
        Scenario.WORST: f"worst case: every ceiling reached all month{', at least' if report.cost.unbounded else ''}",
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


def cells(texts: Iterable[str]) -> tuple[str, ...]:
    """A row of a comment's table, in which no text is markup."""
    return tuple(literal(each) for each in texts)


def folded(  # noqa: PLR0913, PLR0917 -- what a table is made of
    title: str, headings: tuple[str, ...], rows: Sequence[tuple[str, ...]], texts: int, shown: int = _SHOWN, command: str = "cost"
) -> Iterator[str]:
    """A table behind a line to click on; the first `texts` columns are text, the others numbers.

    At most `shown` rows; `command` says which command has all of them.
    """
    yield f"<details><summary>{title}</summary>"
    # Without an empty line GitHub reads what follows as HTML.
    yield ""
    yield f"| {' | '.join(headings)} |"
    yield f"|{'|'.join(':--' if column < texts else '--:' for column in range(len(headings)))}|"
    yield from (f"| {' | '.join(row)} |" for row in rows[:shown])
    yield ""
    if len(rows) > shown:
        yield f"... and {len(rows) - shown} more; `flexspot {command} --format json` has them all."
        yield ""
    yield "</details>"
    yield ""
