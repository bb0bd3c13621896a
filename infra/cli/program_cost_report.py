"""What `flexspot cost` prints of a Pulumi program for people, for programs, and for a comment on a pull request."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from capacity.cost.figures import day_of, days_of, price_data
from infra.cli.advise_report import shown_usd
from infra.cli.console import out, show_table
from infra.cli.cost_report import cells, change, folded, literal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date

    from capacity.cost.figures import Figures, PriceUsed
    from capacity.cost.programs.program_cost import Change, ProgramCost, ResourceCost

MONTHS = ("as declared", "at most", "at least")
"""The three months of a program: what it says at first, for 730 hours; every scaler at its most, for 744; every scaler at its least."""

NOT_IN_IT = (
    "Linux at list prices; without free tiers, taxes, traffic, requests, licences, and what controllers of a cluster make by themselves."
)


@dataclass(frozen=True)
class ProgramReport:
    """What there is to say of a program's cost on a day."""

    cost: ProgramCost
    today: date

    @property
    def open(self) -> bool:
        """Whether something is left out of the sums."""
        return not self.cost.complete

    @property
    def unbounded(self) -> bool:
        """Whether the most is not all."""
        return any(each.unbounded for each in self.cost.lines) or bool(self.cost.not_priced or self.cost.not_shown)

    @property
    def prices(self) -> list[PriceUsed]:
        """The prices that the sums rest on, each source and day once."""
        found = {(each.source, each.as_of, each.spot): each for line in self.cost.lines for each in line.prices}
        return list(found.values())

    def old(self, price: PriceUsed) -> bool:
        """Whether a price is too old to be taken for today's."""
        return (self.today - price.as_of).days > days_of(price)


def months(figures: Figures) -> tuple[str, str, str]:
    """The three figures in the order of MONTHS."""
    return shown_usd(figures.expected_usd), shown_usd(figures.worst_usd), shown_usd(figures.floor_usd)


def _of_line(line: ResourceCost) -> tuple[str, str, str]:
    mark, most = " +?" if line.missing else "", " +?" if line.unbounded else ""
    declared, worst, least = months(line.figures)
    return declared + mark, worst + most, least + mark


def _is_unverified(line: ResourceCost) -> bool:
    return any(not each.verified for each in line.prices)


def what_of(line: ResourceCost) -> str:
    """Of what and how much, with a mark where nobody has checked a price."""
    return "; ".join(line.what) + (" (?)" if _is_unverified(line) else "")


def headline(report: ProgramReport) -> str:
    """The sum and the change in one sentence."""
    cost = report.cost
    least = "at least " if report.open else ""
    changed = "" if cost.difference is None else f" ({change(cost.difference.expected_usd, 'no change')})"
    return f"{least}{shown_usd(cost.total.expected_usd)} USD a month as declared{changed}"


def _hint(cost: ProgramCost) -> str:
    return f"{cost.not_shown} unchanged resources are not in the file: run `pulumi preview --json --show-sames`"


def show_program(report: ProgramReport) -> None:
    """The sums first, then what a change moves, each resource, and what is left out."""
    cost = report.cost
    _, most, least = months(cost.total)
    out.print(f"[bold]{escape(cost.name)}[/]: {headline(report)}")
    more = "at least " if report.unbounded else ""
    out.print(f"  {more}{most} with every scaler at its most for 744 hours, {least} with every scaler at its least")
    if cost.before is not None:
        _show_changes(report)
    table = _table("resource", "type", "of what and how much", *MONTHS, title="what is billed, USD a month")
    for line in cost.lines:
        if line.what or line.missing:
            table.add_row(escape(line.name), escape(line.type), escape(what_of(line)), *_of_line(line))
    show_table(table)
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


def _show_changes(report: ProgramReport) -> None:
    if not report.cost.changes:
        out.print("  no resource's cost changes.")
        return
    table = _table("", "resource", "of what and how much", *MONTHS[:2], title="what the change adds, USD a month")
    for row in change_rows(report.cost):
        table.add_row(*map(escape, row))
    show_table(table)


def change_rows(cost: ProgramCost) -> Iterator[tuple[str, str, str, str, str]]:
    """Each resource whose cost changes: what happens to it, its name, of what it was and is, and what that adds."""
    for each in cost.changes:
        told = "new" if each.before is None else "gone" if each.after is None else "changed"
        yield told, each.name, _sides(each), change(each.difference.expected_usd), change(each.difference.worst_usd)


def _sides(each: Change) -> str:
    sides = dict.fromkeys(what_of(side) for side in (each.before, each.after) if side is not None)
    return " → ".join(sides)


def by_use(cost: ProgramCost) -> Iterator[tuple[str, str]]:
    """What is billed by what is done with it, with the resource."""
    return ((line.name, what) for line in cost.lines for what in line.by_use)


def _table(*headings: str, title: str) -> Table:
    table = Table(title=title, title_justify="left")
    for heading in headings:
        money = heading in MONTHS
        table.add_column(heading, justify="right" if money else "left", overflow="fold", no_wrap=money)
    return table


def program_json(report: ProgramReport) -> str:
    """The report as JSON, money as text."""
    return json.dumps(program_data(report), indent=2) + "\n"


def program_data(report: ProgramReport) -> dict[str, Any]:
    """The same as data."""
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
    """A comment: the sums in one line, what changes, and everything else folded away."""
    return "\n".join(_comment(report)) + "\n"


def _comment(report: ProgramReport) -> Iterator[str]:
    cost = report.cost
    yield f"### Cost of <code>{literal(cost.name)}</code>: {literal(headline(report))}"
    yield ""
    changed = [cells(each) for each in change_rows(cost)]
    if changed:
        yield "| | resource | of what and how much | as declared | at most |"
        yield "|:--|:--|:--|--:|--:|"
        yield from (f"| {' | '.join(row)} |" for row in changed)
        yield ""
    elif cost.before is not None:
        yield "No resource's cost changes."
        yield ""
    moved = {side.urn for each in cost.changes for side in (each.before, each.after) if side is not None}
    rest = [cells((each.name, each.type, what_of(each), *_of_line(each))) for each in cost.lines if each.what and each.urn not in moved]
    if rest:
        title = f"{len(rest)} {'resources' if cost.before is None else 'unchanged resources'}"
        yield from folded(title, ("resource", "type", "of what and how much", *MONTHS), rest, 3)
    left_out = [cells((f"{count} x {kind}", "no price of this type")) for kind, count in cost.not_priced.items()]
    left_out += [cells(each) for each in cost.missing]
    if cost.not_shown:
        left_out.append(cells(("the rest", _hint(cost))))
    if left_out:
        yield from folded(f"{len(left_out)} things are in no sum", ("what", "why"), left_out, 2)
    used = [cells(each) for each in by_use(cost)]
    if used:
        yield from folded(f"{len(used)} things are billed by use", ("resource", "what"), used, 2)
    sources = [cells((day_of(each), "yes" if each.verified else "no", each.source)) for each in report.prices]
    if sources:
        yield from folded("Where the prices are from", ("as of", "checked", "source"), sources, 3)
    yield f"<sub>{literal(NOT_IN_IT)} (?): nobody has checked the price against the cloud's own list.</sub>"
