"""`flexspot advise reserve`: how many machines to commit to, from a history or a given use."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from flexspot.capacity.catalog.price_book import HOURS_OF_A_MONTH
from flexspot.capacity.chargeback.commitment_advice import TERM_YEARS, Terms, advise_commitments, advise_reservation, read_use
from flexspot.capacity.chargeback.machine_hours import MachineHoursReader, machine_hours_csv, node_queries, read_machine_hours
from flexspot.capacity.chargeback.nodes import cloud_of
from flexspot.capacity.chargeback.samples import Period
from flexspot.capacity.cost.costed_plan import MachinePrices
from flexspot.capacity.cost.figures import price_used
from flexspot.capacity.values.quantities import as_decimal
from flexspot.infra.cli.command_line import AsFormat, bad_usage, expect, option, with_options, write_whole
from flexspot.infra.cli.console import Table, out, print_table, show, shown_usd
from flexspot.infra.cli.money import machine_prices
from flexspot.infra.cli.money.chargeback import PrometheusOptions, PrometheusSource, Step, elapsed_part, no_node_known, own_prices
from flexspot.infra.cli.money.machine_prices import (
    ALL_PERCENT,
    OnDemandUsd,
    PricesFile,
    money,
    number_option,
    prices_of_machine,
    show_prices,
    usd_option,
    write_json,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flexspot.capacity.catalog.machines import Vendor
    from flexspot.capacity.catalog.price_book import PriceBook
    from flexspot.capacity.chargeback.commitment_advice import CommitmentAdvice, CommittedLevel, MachineAdvice, Reach, ReservationAdvice
    from flexspot.capacity.chargeback.machine_hours import MachineHours


def show_commitments(advice: CommitmentAdvice, notes: list[str], book: Callable[[Vendor], PriceBook], form: str) -> None:
    """Print the history's extent, the number to commit to per machine, and unknown prices with the price from which committing pays off."""
    prices = [each for machine in advice.machines if (each := _prices(machine, book)) is not None]
    if form == "json":
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
        print_table(Table("what to commit to", HEADINGS, tuple(map(_row, advice.machines)), texts=2))
    else:
        out.print("nothing ran on demand, so there is nothing to commit to.")
    for machine in advice.machines:
        for line in _said(machine, advice):
            out.print(Text(line))
    for kind, node_hours in advice.uncommittable.items():
        out.print(Text(f"not counted: {kind}, {as_decimal(node_hours):,.1f} node hours."))
    show_prices(*prices)


def _prices(machine: MachineAdvice, book: Callable[[Vendor], PriceBook]) -> MachinePrices | None:
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


_COSTS = ("USD a month", "saved", "one fewer", "one more")
HEADINGS = ("machine", "region", "mean", "peak", "pays if used", "commit to", "used", "covers", *_COSTS)


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
    """Return the additional cost of another number of machines."""
    if other is None:
        return "-"
    usd, least = other.usd_a_month, best.usd_a_month
    return "not known" if usd is None or least is None else f"+{shown_usd(usd - least)}"


def _percent(share: Fraction) -> str:
    return f"{as_decimal(share * 100):.1f} %"


_STEPS_SHOWN = 6


def _said(machine: MachineAdvice, advice: CommitmentAdvice) -> Iterator[str]:
    """Yield remarks for which a row has no room."""
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
    """Yield the numbers of machines, and the price below which committing to each pays off. Equal numbers are one."""
    steps: dict[Fraction, int] = {share: node for node, share in enumerate(machine.use.shares, start=1)}
    for share, nodes in list(steps.items())[:_STEPS_SHOWN]:
        price = machine.pays_below_usd_per_hour(nodes)
        below = "" if price is None else f", which is below {price:.4f} USD an hour"
        yield f"committing to {nodes} pays at more than {_percent(1 - share)} off on-demand{below}"
    if len(steps) > _STEPS_SHOWN:
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
    use, halves = machine.use, machine.halves or (None, None)
    return {
        "machine": machine.machine,
        "region": machine.region,
        "mean_nodes": _fixed(use.node_hours / use.hours, 4),
        "peak_nodes": use.peak,
        "on_demand_usd_per_hour": _text(machine.on_demand_usd_per_hour),
        "committed_usd_per_hour": _text(machine.committed_usd_per_hour),
        "not_known": list(machine.unknown),
        "break_even_share": _fixed(machine.break_even_share, 4),
        "best": _level_data(machine.best),
        "none": _level_data(machine.none),
        "one_fewer": _level_data(machine.fewer),
        "one_more": _level_data(machine.more),
        "saved_usd_a_month": money(machine.saved_usd_a_month),
        "term_usd": money(machine.term_usd),
        "pays_after_months": _fixed(machine.pays_after_months, 2),
        "best_by_first_half": halves[0],
        "best_by_second_half": halves[1],
        "nodes": [
            {"node": node, "used_share": _fixed(share, 4), "pays_below_usd_per_hour": _fixed(machine.pays_below_usd_per_hour(node), 6)}
            for node, share in enumerate(use.shares, start=1)
        ],
    }


def _level_data(level: CommittedLevel | None) -> dict[str, Any] | None:
    if level is None:
        return None
    return {
        "nodes": level.nodes,
        "utilisation": _fixed(level.used_share, 4),
        "coverage": _fixed(level.covered_share, 4),
        "usd_a_month": money(level.usd_a_month),
    }


def _fixed(number: Fraction | Decimal | None, places: int) -> str | None:
    return None if number is None else f"{as_decimal(number) if isinstance(number, Fraction) else number:.{places}f}"


def _text(usd: Decimal | None) -> str | None:
    return None if usd is None else f"{usd:f}"


_DAY = 86_400
_LONGEST_DAYS = 1100

_ONLY_READING = ("month", "start", "end", "match", "header", "ca", "token_file", "token_env", "auth", "aws_region")
"""Options that have an effect only if Prometheus is read."""


@with_options("read", PrometheusOptions)
def reserve(
    read: PrometheusOptions,
    machine: Annotated[str | None, option("--machine -m", "The machine type. Default with a history: all of its machines.")] = None,
    region: Annotated[str | None, option("--region -r", "The region. Default with a history: all of its regions.")] = None,
    prometheus: Annotated[
        str | None, option("--prometheus", "Take the history from Prometheus: the URL of its API, without /api/v1.", metavar="URL")
    ] = None,
    history: Annotated[
        list[Path] | None, option("--history", "Or take the history from CSV, as --write-history writes it. Repeatable.", metavar="FILE")
    ] = None,
    use: Annotated[Path | None, option("--use", "Or take the nodes in use from a file: a whole number per line and hour.")] = None,
    baseline: Annotated[
        int | None, option("--baseline-nodes", "Or assume a constant use: this many nodes for --hours-per-month.", min=1)
    ] = None,
    hours_per_month: Annotated[int, option("--hours-per-month", "Hours a month that --baseline-nodes are in use.", min=1, max=730)] = 730,
    reserved_usd: Annotated[Decimal | None, usd_option("--reserved-usd", "The committed price of a machine per hour.")] = None,
    discount: Annotated[
        Decimal | None,
        number_option(
            "--discount-percent", "PERCENT", lambda off: 0 <= off < ALL_PERCENT, "from 0 to below 100", "Or the discount off on-demand."
        ),
    ] = None,
    term_years: Annotated[
        int, option("--term-years", "The commitment's term in years: 1 or 3.", min=TERM_YEARS[0], max=TERM_YEARS[-1])
    ] = TERM_YEARS[0],
    on_demand_usd: OnDemandUsd = None,
    prices_file: PricesFile = None,
    days: Annotated[
        int, option("--days", "Without --month or --from: this many whole days in UTC, up to now.", min=1, max=_LONGEST_DAYS)
    ] = 90,
    step: Step = 300,
    write_history: Annotated[
        Path | None, option("--write-history", "Write the history from Prometheus to this file, for --history.", metavar="FILE")
    ] = None,
    form: AsFormat = "text",
) -> None:
    """Recommend how many machines to commit to, from a history, measured use or a given baseline. The rest is on demand.

    Exit code 1: the history is too short or has too many gaps, or a price is unknown; it says which. 2: bad usage or input.
    """
    if sum((prometheus is not None, bool(history), use is not None, baseline is not None)) != 1:
        raise typer.BadParameter("exactly one of --prometheus URL, --history FILE, --use FILE and --baseline-nodes N is required.")
    if write_history is not None and prometheus is None:
        raise typer.BadParameter("--write-history requires --prometheus: it writes the history from there.")
    plain = PrometheusOptions()
    names = {"start": "--from", "end": "--to", "auth": "--prometheus-auth"}
    idle = [names.get(key, f"--{key.replace('_', '-')}") for key in _ONLY_READING if getattr(read, key) != getattr(plain, key)]
    if prometheus is None and idle:
        raise typer.BadParameter(f"{', '.join(idle)}: no effect without --prometheus. Add --prometheus, or remove the option.")
    terms = _terms(term_years, reserved_usd, discount, on_demand_usd)
    one = None if machine is None or region is None else (machine, region)
    if prometheus is None and not history:
        if one is None:
            raise typer.BadParameter("--machine and --region are required with --use or --baseline-nodes.")
        _by_use(one, use if use is not None else (baseline or 0, hours_per_month), prices_file, terms, form)
        return
    if (terms.committed_usd_per_hour or terms.on_demand_usd_per_hour) and one is None:
        raise typer.BadParameter(
            "prices in options apply to one machine. Add --machine and --region, or give the prices in a file with --prices."
        )
    discard = None
    if prometheus is None:
        found = read_machine_hours(history or ())
    else:
        now = int(time.time())
        whole = read.month is read.start is read.end is None
        period = _last_days(days, now) if whole else elapsed_part(read.period(), now)
        found, discard = _measured(read.source(prometheus, step, now), period, write_history)
    book = own_prices(prices_file)
    advice = advise_commitments(_of(found, machine, region), book, terms)
    show_commitments(advice, found.notes, book, form)
    if discard is not None:
        discard()
    expect(advice.complete)


def _terms(years: int, reserved_usd: Decimal | None, discount: Decimal | None, on_demand_usd: Decimal | None) -> Terms:
    if years not in TERM_YEARS:
        raise typer.BadParameter(f"--term-years: clouds sell terms of {' and '.join(map(str, TERM_YEARS))} years, not of {years}.")
    if reserved_usd is not None and discount is not None:
        raise typer.BadParameter("--reserved-usd and --discount-percent exclude each other. Give one of them.")
    return Terms(years, reserved_usd, discount, on_demand_usd)


def _by_use(one: tuple[str, str], used: Path | tuple[int, int], prices_file: Path | None, terms: Terms, form: str) -> None:
    """Print the advice for `one`, a machine in a region. `used` is a file, or a pair: a number of nodes, and their hours a month."""
    prices = prices_of_machine(machine_prices.cloud_of(one[0]), *one, prices_file, on_demand_usd=terms.on_demand_usd_per_hour)
    list_price, off = prices.on_demand_usd_per_hour, terms.discount_percent
    reserved = terms.committed_usd_per_hour or prices.reserved_usd_per_hour if off is None else list_price * (1 - off / 100)
    if reserved is None:
        raise typer.BadParameter(
            "--reserved-usd or --discount-percent is required, or a row with capacity_type reserved in the file of --prices: the price "
            "book has no prices of commitments."
        )
    if isinstance(used, tuple):
        nodes, hours = used
        hourly = [nodes] * hours + [0] * (HOURS_OF_A_MONTH - hours)
    else:
        hourly = read_use(used)
    _show_reservation(advise_reservation(hourly, reserved, list_price), len(hourly), form, prices)


def _last_days(days: int, now: int) -> Period:
    # From midnight on, so that the same command continues where it was interrupted.
    first = now - now % _DAY - days * _DAY
    return Period(first, now, f"{datetime.fromtimestamp(first, UTC):%Y-%m-%d} until now", "UTC")


def _measured(source: PrometheusSource, period: Period, write_to: Path | None) -> tuple[MachineHours, Callable[[], None]]:
    reader = MachineHoursReader(period, source.step, source.options.bridge)
    warned, discard = source.read(period, node_queries(source.options.match), reader.take, kept_as="reserve")
    found = reader.close()
    if not found.hours:
        raise no_node_known(period)
    found.notes += warned
    if write_to is not None:
        write_whole(write_to, machine_hours_csv(found), "the report")
    return found, discard


def _of(found: MachineHours, machine: str | None, region: str | None) -> MachineHours:
    """Return the part of the history for one machine, one region, or both. Raises ExplainedError if it is empty."""
    nodes = {kind: each for kind, each in found.nodes.items() if machine in {None, kind.machine} and region in {None, kind.region}}
    if not nodes:
        there = ", ".join(sorted({f"{kind.machine} in {kind.region}" for kind in found.nodes}))
        raise bad_usage(f"the history has no {machine or 'machine'} in {region or 'any region'}.", f"choose from {there}.")
    return replace(found, nodes=nodes)


def _show_reservation(advice: ReservationAdvice, hours: int, form: str, prices: MachinePrices) -> None:
    """Print the best number of nodes, next to none and the peak."""
    levels = {"none": advice.none, "best": advice.best, "peak": advice.peak}
    if form == "json":
        data = {
            name: {"nodes": each.nodes, "usd": money(each.usd), "used_share": _fixed(each.used_share, 4)} for name, each in levels.items()
        }
        write_json({"hours": hours, "break_even_share": _fixed(advice.break_even_share, 4), **data}, prices)
        return
    rows = [(name, str(each.nodes), shown_usd(each.usd), _percent(each.used_share) if each.nodes else "") for name, each in levels.items()]
    show("", ("", "nodes", f"USD in {hours} h", "of it used"), rows)
    out.print(
        f"reserve {advice.best.nodes} node(s): a node pays for itself when it is used {_percent(advice.break_even_share)} of the time."
    )
    show_prices(prices)
