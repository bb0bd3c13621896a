"""What `flexspot advise reserve` prints of a history: a table for people, JSON for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from capacity.chargeback.nodes import cloud_of
from capacity.cost.costed_plan import MachinePrices
from capacity.cost.figures import price_used
from capacity.values.quantities import as_decimal
from infra.cli.advise_report import money, show_prices, shown_usd, write_json
from infra.cli.console import Format, out, table_console
from infra.cli.report_tables import Table, print_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from decimal import Decimal
    from fractions import Fraction

    from capacity.catalog.machines import Cloud
    from capacity.catalog.price_book import PriceBook
    from capacity.chargeback.commitment_advice import CommitmentAdvice, CommittedLevel, MachineAdvice, Reach


def show_commitments(advice: CommitmentAdvice, notes: list[str], book: Callable[[Cloud], PriceBook], form: Format) -> None:
    """How far the history carries, the number of each machine, what is not known and at which price it would pay."""
    prices = [each for machine in advice.machines if (each := _prices(machine, book)) is not None]
    if form is Format.JSON:
        write_json(_data(advice, notes), *prices)
        return
    out.print(Text(_history(advice.reach)))
    for each in advice.reach.refused:
        out.print(Text(f"no advice: {each}."))
    for each in advice.reach.weak:
        out.print(Text(f"in doubt: {each}."))
    for each in notes:
        out.print(Text(f"note: {each}"))
    if advice.machines:
        print_table(table_console(), _table(advice))
    else:
        out.print("nothing ran on demand, so there is nothing to commit to.")
    for machine in advice.machines:
        for line in _said(machine, advice):
            out.print(Text(line))
    for kind, node_hours in advice.uncommittable.items():
        out.print(Text(f"not counted: {kind}, {as_decimal(node_hours):,.1f} node hours."))
    show_prices(*prices)


def _prices(machine: MachineAdvice, book: Callable[[Cloud], PriceBook]) -> MachinePrices | None:
    cloud = cloud_of(machine.machine)
    if cloud is None or machine.on_demand_usd_per_hour is None:
        return None
    from_book = [each for each in (machine.on_demand, machine.committed) if each is not None]
    used = {each.capacity_type: price_used(book(cloud), each) for each in from_book}
    return MachinePrices(machine.on_demand_usd_per_hour, reserved_usd_per_hour=machine.committed_usd_per_hour, used=used)


def _history(reach: Reach) -> str:
    if reach.first is None or reach.last is None:
        return "history: no hour was seen from end to end."
    days, gone = reach.hours / 24, f", {reach.missing} hours between them missing" if reach.missing else ""
    return f"history: {days:.1f} days in the hours from {reach.first:%Y-%m-%d %H:%M} to {reach.last:%Y-%m-%d %H:%M} UTC{gone}."


HEADINGS = (
    "machine",
    "region",
    "mean",
    "peak",
    "pays if used",
    "commit to",
    "used",
    "covers",
    "USD a month",
    "saved",
    "one fewer",
    "one more",
)


def _table(advice: CommitmentAdvice) -> Table:
    return Table("what to commit to", HEADINGS, tuple(map(_row, advice.machines)), texts=2)


def _row(machine: MachineAdvice) -> tuple[str, ...]:
    use, best = machine.use, machine.best
    figures = (machine.machine, machine.region, f"{as_decimal(use.node_hours / use.hours):.1f}", str(use.peak))
    pays = "?" if machine.break_even_share is None else f"> {_percent(machine.break_even_share)}"
    if best is None:
        return (*figures, pays, *("?" for _ in HEADINGS[5:]))
    utilisation = _percent(best.used_share) if best.nodes else "-"
    coverage = _percent(best.covered_share)
    usd = shown_usd(best.usd_a_month), shown_usd(machine.saved_usd_a_month)
    return (*figures, pays, str(best.nodes), utilisation, coverage, *usd, _dearer(machine.fewer, best), _dearer(machine.more, best))


def _dearer(other: CommittedLevel | None, best: CommittedLevel) -> str:
    """By how much another number costs more."""
    if other is None:
        return "-"
    more = _difference(other, best)
    return "not known" if more is None else f"+{shown_usd(more)}"


def _difference(other: CommittedLevel, best: CommittedLevel) -> Decimal | None:
    return None if other.usd_a_month is None or best.usd_a_month is None else other.usd_a_month - best.usd_a_month


def _percent(share: Fraction) -> str:
    return f"{as_decimal(share * 100):.1f} %"


_STEPS_TOLD = 6


def _said(machine: MachineAdvice, advice: CommitmentAdvice) -> Iterator[str]:
    """What a row has no place for."""
    of, best = f"{machine.machine} in {machine.region}", machine.best
    if machine.unknown:
        yield f"not known: {' and '.join(machine.unknown)}."
    if machine.break_even_share is None and not advice.reach.refused:
        yield f"{of}: {'; '.join(_steps(machine))}."
    if best is not None and best.nodes and machine.pays_after_months is not None:
        cost = "" if machine.term_usd is None else f" costs {shown_usd(machine.term_usd)} USD and"
        months = f"{as_decimal(machine.pays_after_months):.1f} of {12 * advice.terms.years} months"
        yield f"{of}: the commitment{cost} pays if use goes on as it was for {months}."
    if best is not None and machine.halves is not None and machine.halves != (best.nodes, best.nodes):
        yield f"{of}: by the first half of the hours alone it would be {machine.halves[0]}, by the second {machine.halves[1]}."


def _steps(machine: MachineAdvice) -> Iterator[str]:
    """Below which price how many machines pay; equal ones as one."""
    steps: dict[Fraction, int] = {share: node for node, share in enumerate(machine.use.shares, start=1)}
    for share, nodes in list(steps.items())[:_STEPS_TOLD]:
        price = machine.pays_below_usd_per_hour(nodes)
        told = "" if price is None else f", which is below {price:.4f} USD an hour"
        yield f"committing to {nodes} pays at more than {_percent(1 - share)} off on-demand{told}"
    if len(steps) > _STEPS_TOLD:
        yield "and more in JSON"
    if not steps:
        yield "none ran"


def _data(advice: CommitmentAdvice, notes: list[str]) -> dict[str, Any]:
    reach = advice.reach
    return {
        "complete": advice.complete,
        "history": {
            "first_hour": None if reach.first is None else reach.first.isoformat(),
            "last_hour": None if reach.last is None else reach.last.isoformat(),
            "hours": reach.hours,
            "missing_hours": reach.missing,
            "no_advice_because": list(reach.refused),
            "in_doubt": list(reach.weak),
            "notes": notes,
        },
        "term_years": advice.terms.years,
        "machines": [_machine_data(each) for each in advice.machines],
        "not_counted": [
            {"machine": kind.machine, "region": kind.region, "capacity_type": kind.bought_as, "node_hours": f"{as_decimal(hours):.2f}"}
            for kind, hours in advice.uncommittable.items()
        ],
    }


def _machine_data(machine: MachineAdvice) -> dict[str, Any]:
    use, halves, months = machine.use, machine.halves, machine.pays_after_months
    return {
        "machine": machine.machine,
        "region": machine.region,
        "mean_nodes": f"{as_decimal(use.node_hours / use.hours):.4f}",
        "peak_nodes": use.peak,
        "on_demand_usd_per_hour": _text(machine.on_demand_usd_per_hour),
        "committed_usd_per_hour": _text(machine.committed_usd_per_hour),
        "not_known": list(machine.unknown),
        "break_even_share": _share(machine.break_even_share),
        "best": _level_data(machine.best),
        "none": _level_data(machine.none),
        "one_fewer": _level_data(machine.fewer),
        "one_more": _level_data(machine.more),
        "saved_usd_a_month": money(machine.saved_usd_a_month),
        "term_usd": money(machine.term_usd),
        "pays_after_months": None if months is None else f"{as_decimal(months):.2f}",
        "best_by_first_half": None if halves is None else halves[0],
        "best_by_second_half": None if halves is None else halves[1],
        "nodes": [
            {"node": node, "used_share": _share(share), "pays_below_usd_per_hour": _price(machine.pays_below_usd_per_hour(node))}
            for node, share in enumerate(use.shares, start=1)
        ],
    }


def _level_data(level: CommittedLevel | None) -> dict[str, Any] | None:
    if level is None:
        return None
    return {
        "nodes": level.nodes,
        "utilisation": _share(level.used_share),
        "coverage": _share(level.covered_share),
        "usd_a_month": money(level.usd_a_month),
    }


def _share(share: Fraction | None) -> str | None:
    return None if share is None else f"{as_decimal(share):.4f}"


def _text(usd: Decimal | None) -> str | None:
    return None if usd is None else f"{usd:f}"


def _price(usd: Decimal | None) -> str | None:
    return None if usd is None else f"{usd:.6f}"
