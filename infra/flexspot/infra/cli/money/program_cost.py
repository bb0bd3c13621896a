"""`flexspot cost` of a Pulumi program: its output for people, for programs, and for a comment on a pull request."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from rich.markup import escape

from flexspot.capacity.catalog.data_files import read_records
from flexspot.capacity.catalog.machines import Vendor
from flexspot.capacity.catalog.price_book import PriceFile, machine_list, prices_of
from flexspot.capacity.cost.costed_plan import read_json
from flexspot.capacity.cost.figures import day_of, days_of, price_data
from flexspot.capacity.cost.programs.declared import read_program
from flexspot.capacity.cost.programs.program_cost import compared, program_cost
from flexspot.capacity.values.errors import nearest
from flexspot.infra.cli.command_line import PRICE_FORM, bad_usage, given_file, print_as
from flexspot.infra.cli.console import Table, as_json, change, folded, literal, markdown_rows, out, print_table, shown_usd
from flexspot.infra.cli.money.machine_prices import with_own

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import date
    from pathlib import Path

    from flexspot.capacity.cost.figures import Figures, PriceUsed
    from flexspot.capacity.cost.programs.program_cost import ProgramCost, ResourceCost


SideT = TypeVar("SideT")

MONTHS = ("as declared", "at most", "at least")
"""Headings of a program's three months: the declared state for 730 hours, all scalers at their maximum for 744, all at their minimum."""

NOT_IN_IT = (
    "Linux at list prices; without free tiers, taxes, traffic, requests, licences, and what controllers of a cluster make by themselves."
)


@dataclass(frozen=True)
class ProgramReport:
    """A program's cost on the day `today`."""

    cost: ProgramCost
    today: date

    @property
    def unbounded(self) -> bool:
        """True if the maximum is not an upper bound."""
        return any(each.unbounded for each in self.cost.lines) or bool(self.cost.not_priced or self.cost.not_shown)

    @property
    def prices(self) -> list[PriceUsed]:
        """The prices that the sums use, one per source and day."""
        found = {(each.source, each.as_of, each.spot): each for line in self.cost.lines for each in line.prices}
        return list(found.values())

    def old(self, price: PriceUsed) -> bool:
        """Return whether a price is outdated."""
        return (self.today - price.as_of).days > days_of(price)


def months(figures: Figures) -> tuple[str, str, str]:
    """Return the three figures in the order of MONTHS."""
    return shown_usd(figures.expected_usd), shown_usd(figures.worst_usd), shown_usd(figures.floor_usd)


def _of_line(line: ResourceCost) -> tuple[str, str, str]:
    mark, most = " +?" if line.missing else "", " +?" if line.unbounded else ""
    declared, worst, least = months(line.figures)
    return declared + mark, worst + most, least + mark


def what_of(line: ResourceCost) -> str:
    """Return a resource's billed parts with their quantities, with a mark if a price is not checked."""
    return "; ".join(line.what) + ("" if all(each.verified for each in line.prices) else " (?)")


def change_words(before: SideT | None, after: SideT | None, of: Callable[[SideT], str]) -> tuple[str, str]:
    """Return the change of a line in a word, and its quantities before and after."""
    state = "new" if before is None else "gone" if after is None else "changed"
    return state, " → ".join(dict.fromkeys(of(side) for side in (before, after) if side is not None))


def headline(report: ProgramReport) -> str:
    """Return the total and its change in one sentence."""
    cost = report.cost
    least = "" if cost.complete else "at least "
    changed = "" if cost.difference is None else f" ({change(cost.difference.expected_usd, 'no change')})"
    return f"{least}{shown_usd(cost.total.expected_usd)} USD a month as declared{changed}"


def _hint(cost: ProgramCost) -> str:
    return f"{cost.not_shown} unchanged resources are not in the file: run `pulumi preview --json --show-sames`"


def show_program(report: ProgramReport) -> None:
    """Print the sums first, then the changes, all resources, and what is not included."""
    cost = report.cost
    _, most, least = months(cost.total)
    out.print(f"[bold]{escape(cost.name)}[/]: {headline(report)}")
    more = "at least " if report.unbounded else ""
    out.print(f"  {more}{most} with every scaler at its most for 744 hours, {least} with every scaler at its least")
    if cost.changes:
        print_table(change_table(cost))
    elif cost.before is not None:
        out.print("  no resource's cost changes.")
    rows = [(line.name, line.type, what_of(line), *_of_line(line)) for line in cost.lines if line.what or line.missing]
    print_table(Table("what is billed, USD a month", _HEADINGS, rows, 3))
    for name, what in cost.missing:
        out.print(f"[yellow]unknown[/], and in no sum: {escape(name)}: {escape(what)}")
    for kind, count in cost.not_priced.items():
        out.print(f"[yellow]not priced[/]: {count} x {escape(kind)}")
    if cost.not_shown:
        out.print(f"[yellow]{escape(_hint(cost))}[/]")
    for name, what in by_use(cost):
        out.print(f"[dim]billed by use: {escape(name)}: {escape(what)}[/]")
    for price in report.prices:
        old = f" ({(report.today - price.as_of).days} days old)" if report.old(price) else ""
        out.print(f"[dim]prices{'' if price.verified else ' (?)'}, {day_of(price)}{old}: {escape(price.source)}[/]")
    out.print(f"[dim]{NOT_IN_IT} (?) was not checked against the cloud's own list; give your own prices with --prices.[/]")


_HEADINGS = ("resource", "type", "of what and how much", *MONTHS)


def change_table(cost: ProgramCost) -> Table:
    """Return a table of the resources with a change of cost: change, name, parts before and after, and difference."""
    rows: list[tuple[str, ...]] = []
    for each in cost.changes:
        state, sides = change_words(each.before, each.after, what_of)
        rows.append((state, each.name, sides, change(each.difference.expected_usd), change(each.difference.worst_usd)))
    return Table("what the change adds, USD a month", ("", "resource", "of what and how much", *MONTHS[:2]), rows, 3)


def by_use(cost: ProgramCost) -> Iterator[tuple[str, str]]:
    """Yield the usage-based parts of the bill, with their resource."""
    return ((line.name, what) for line in cost.lines for what in line.by_use)


def sources_table(prices: Iterable[PriceUsed]) -> Table:
    """Return a table of price sources, with day and whether each is checked."""
    return Table("", ("as of", "checked", "source"), [(day_of(each), "yes" if each.verified else "no", each.source) for each in prices], 3)


def program_data(report: ProgramReport) -> dict[str, Any]:
    """Return the report as plain data."""
    cost = report.cost
    return {
        "stack": cost.name,
        "complete": cost.complete,
        "usd_a_month": _usd(cost.total),
        "at_most_is_a_bound": not report.unbounded,
        "change": None if cost.difference is None else _usd(cost.difference),
        "resources": [_resource(each, report) for each in cost.lines],
        "changes": [
            {
                "name": each.name,
                "type": each.type,
                "before": None if each.before is None else _resource(each.before, report),
                "after": None if each.after is None else _resource(each.after, report),
                "usd_a_month": _usd(each.difference),
            }
            for each in cost.changes
        ],
        "not_priced": cost.not_priced,
        "not_known": [{"name": name, "what": what} for name, what in cost.missing],
        "by_use": [{"name": name, "what": what} for name, what in by_use(cost)],
        "unchanged_not_in_the_file": cost.not_shown,
    }


def _usd(figures: Figures) -> dict[str, str]:
    return {"declared": str(figures.expected_usd), "most": str(figures.worst_usd), "least": str(figures.floor_usd)}


def _resource(line: ResourceCost, report: ProgramReport) -> dict[str, Any]:
    return {
        "urn": line.urn,
        "type": line.type,
        "name": line.name,
        "of": list(line.what),
        "usd_a_month": _usd(line.figures),
        "at_most_is_a_bound": not line.unbounded,
        "prices": [{**price_data(each), "old": report.old(each)} for each in line.prices],
        "not_known": list(line.missing),
        "by_use": list(line.by_use),
    }


def program_markdown(report: ProgramReport) -> str:
    """Return a comment: the sums in one line, the changes, and the rest collapsed."""
    return "\n".join(_comment(report)) + "\n"


def _comment(report: ProgramReport) -> Iterator[str]:
    cost = report.cost
    yield f"### Cost of <code>{literal(cost.name)}</code>: {literal(headline(report))}"
    yield ""
    if cost.changes:
        yield from (*markdown_rows(change_table(cost)), "")
    elif cost.before is not None:
        yield from ("No resource's cost changes.", "")
    moved = {side.urn for each in cost.changes for side in (each.before, each.after) if side is not None}
    rest = [(each.name, each.type, what_of(each), *_of_line(each)) for each in cost.lines if each.what and each.urn not in moved]
    yield from folded(f"{len(rest)} {'resources' if cost.before is None else 'unchanged resources'}", Table("", _HEADINGS, rest, 3))
    left_out = [(f"{count} x {kind}", "no price of this type") for kind, count in cost.not_priced.items()]
    left_out += [*cost.missing, *([("the rest", _hint(cost))] if cost.not_shown else [])]
    yield from folded(f"{len(left_out)} things are in no sum", Table("", ("what", "why"), left_out, 2))
    used = [*by_use(cost)]
    yield from folded(f"{len(used)} things are billed by use", Table("", ("resource", "what"), used, 2))
    yield from folded("Where the prices are from", sources_table(report.prices))
    yield f"<sub>{literal(NOT_IN_IT)} (?): the price was not checked against the cloud's own list.</sub>"


def show_cost_of_program(
    written: dict[str, Any],
    path: Path,
    base: Path | None,
    prices: Path | None,
    region: str | None,
    form: str,
) -> None:
    """Print the cost of any Pulumi program. It has neither pools nor budgets."""
    books = {cloud: prices_of(cloud) for cloud in Vendor}
    known = {each for cloud in Vendor for each in machine_list(cloud).regions} | {
        each for book in books.values() for _, each, _ in book.prices
    }
    if region is not None and region not in known:
        raise bad_usage(f"--region: no price is known for {region}.", f"name another region; {nearest(region, known)}.")
    if prices is not None:
        own = given_file(prices, lambda path: read_records(path, PriceFile), PRICE_FORM).cloud
        books[own] = with_own(books[own], prices)
    found = program_cost(read_program(written, str(path), region), books)
    if base is not None:
        found = compared(program_cost(read_program(read_json(base), str(base), region), books), found)
    report = ProgramReport(found, datetime.now(UTC).date())
    if form == "text":
        show_program(report)
    else:
        print_as(form, json=lambda: as_json(program_data(report)), markdown=lambda: program_markdown(report))
