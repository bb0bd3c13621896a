"""`flexspot advise reserve`: how many machines to commit to, from a history of how many ran, a measured use or a given baseline."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path  # noqa: TC003 -- typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer

from capacity.chargeback.commitment_advice import TERM_YEARS
from capacity.chargeback.samples import BRIDGED_STEPS
from capacity.values.errors import ExitCode, ExplainedError
from infra.cli import prometheus_options as asked_of  # noqa: TC001 -- typer reads the annotations
from infra.cli.advise_report import AsFormat, Number, OnDemandUsd, PricesFile, percent, usd
from infra.cli.console import Format

if TYPE_CHECKING:
    from collections.abc import Callable

    from capacity.chargeback.commitment_advice import Terms
    from capacity.chargeback.machine_hours import MachineHours
    from capacity.chargeback.samples import Period
    from infra.cli.prometheus_source import PrometheusSource


_DAY = 86_400
_LONGEST_DAYS = 1100


def reserve(  # noqa: PLR0913, PLR0917 -- each is an option of the command line
    machine: Annotated[
        str | None, typer.Option("--machine", "-m", help="The machine type. With a history, the default is all that are in it.")
    ] = None,
    region: Annotated[
        str | None, typer.Option("--region", "-r", help="The region. With a history, the default is all that are in it.")
    ] = None,
    prometheus: Annotated[
        str | None,
        typer.Option("--prometheus", metavar="URL", help="Take the history from Prometheus: the URL of its API, without /api/v1."),
    ] = None,
    history: Annotated[
        list[Path] | None,
        typer.Option("--history", metavar="FILE", help="Or take the history from CSV, as --write-history writes it. Repeatable."),
    ] = None,
    use: Annotated[
        Path | None, typer.Option("--use", help="Or take nodes in use hour by hour from a file: a whole number per line.")
    ] = None,
    baseline: Annotated[
        int | None, typer.Option("--baseline-nodes", min=1, help="Or assume a constant use: this many nodes for --hours-per-month.")
    ] = None,
    hours_per_month: Annotated[
        int, typer.Option("--hours-per-month", min=1, max=730, help="Hours a month that --baseline-nodes are in use.")
    ] = 730,
    reserved_usd: Annotated[
        str | None, typer.Option("--reserved-usd", metavar=Number.USD, help="The committed price of a machine per hour.")
    ] = None,
    discount: Annotated[
        str | None, typer.Option("--discount-percent", metavar=Number.PERCENT, help="Or the discount off on-demand.")
    ] = None,
    term_years: Annotated[
        int, typer.Option("--term-years", min=TERM_YEARS[0], max=TERM_YEARS[-1], help="The commitment's term in years: 1 or 3.")
    ] = TERM_YEARS[0],
    on_demand_usd: OnDemandUsd = None,
    prices_file: PricesFile = None,
    month: asked_of.Month = None,
    start: asked_of.From = None,
    end: asked_of.To = None,
    timezone: asked_of.Timezone = "UTC",
    days: Annotated[
        int, typer.Option("--days", min=1, max=_LONGEST_DAYS, help="Without --month or --from: this many whole days in UTC, up to now.")
    ] = 90,
    match: asked_of.Match = "",
    header: asked_of.Header = None,
    ca: asked_of.Authorities = None,
    token_file: asked_of.TokenFile = None,
    token_env: asked_of.TokenEnv = None,
    auth: asked_of.Auth = None,
    aws_region: asked_of.AwsRegion = None,
    step: asked_of.Step = 300,
    bridge: asked_of.Bridge = BRIDGED_STEPS,
    timeout: asked_of.Timeout = 120,
    resume_dir: asked_of.ResumeDir = None,
    write_history: Annotated[
        Path | None, typer.Option("--write-history", metavar="FILE", help="Write the history from Prometheus to this file, for --history.")
    ] = None,
    form: AsFormat = Format.TEXT,
) -> None:
    """Recommend how many machines to commit to, from a history, measured use or a given baseline. The rest is on demand.

    Exit code 1: the history is too short or has too many gaps, or a price is unknown; it says which. 2: bad usage or input.
    """
    if sum((prometheus is not None, bool(history), use is not None, baseline is not None)) != 1:
        raise typer.BadParameter("give one of --prometheus URL, --history FILE, --use FILE and --baseline-nodes N.")
    if write_history is not None and prometheus is None:
        raise typer.BadParameter("--write-history writes what Prometheus saw; give --prometheus.")
    reads = {"--month": month, "--from": start, "--to": end, "--match": match, "--header": header, "--ca": ca, "--token-file": token_file}
    reads |= {"--token-env": token_env, "--prometheus-auth": auth, "--aws-region": aws_region}
    if prometheus is None and (idle := [name for name, value in reads.items() if value]):
        told = ", ".join(idle)
        raise typer.BadParameter(f"nothing is read from Prometheus, so these have no effect: {told}; give --prometheus or leave it out.")
    terms = _terms(term_years, reserved_usd, discount, on_demand_usd)
    one = None if machine is None or region is None else (machine, region)
    if prometheus is None and not history:
        if one is None:
            raise typer.BadParameter("give --machine and --region with --use and --baseline-nodes.")
        _by_use(one, use if use is not None else (baseline or 0, hours_per_month), prices_file, terms, form)
        return
    if (terms.committed_usd_per_hour or terms.on_demand_usd_per_hour) and one is None:
        raise typer.BadParameter("a price is that of one machine; give --machine and --region, or the prices in a file with --prices.")
    discard = _nothing
    if prometheus is None:
        from capacity.chargeback.machine_hours import read_machine_hours  # noqa: PLC0415

        found = read_machine_hours(history or ())
    else:
        from infra.cli.prometheus_source import PrometheusSource  # noqa: PLC0415
        from infra.prometheus.access import access_to  # noqa: PLC0415

        now = int(time.time())
        access = access_to(
            prometheus, headers=header or (), ca=ca, token_file=token_file, token_env=token_env, auth=auth, aws_region=aws_region
        )
        period = _last_days(days, now) if month is start is end is None else _asked(month, start, end, timezone, now)
        found, discard = _measured(PrometheusSource(access, match, step, bridge, float(timeout), resume_dir, now), period, write_history)
    complete = _advised(_of(found, machine, region), prices_file, terms, form)
    discard()
    if not complete:
        raise typer.Exit(ExitCode.UNMET)


def _terms(years: int, reserved_usd: str | None, discount: str | None, on_demand_usd: str | None) -> Terms:
    from capacity.chargeback.commitment_advice import Terms  # noqa: PLC0415

    if years not in TERM_YEARS:
        raise typer.BadParameter(f"--term-years is {years}; clouds sell terms of {' and '.join(map(str, TERM_YEARS))} years.")
    if reserved_usd is not None and discount is not None:
        raise typer.BadParameter("give either --reserved-usd or --discount-percent.")
    on_demand = usd("--on-demand-usd", on_demand_usd)
    return Terms(years, usd("--reserved-usd", reserved_usd), percent("--discount-percent", discount), on_demand)


def _nothing() -> None:
    """No answers of Prometheus are kept."""


def _by_use(one: tuple[str, str], used: Path | tuple[int, int], prices_file: Path | None, terms: Terms, form: Format) -> None:
    """Of `one` machine in a region; `used` is a file, or so many nodes for so many hours a month."""
    from capacity.catalog.price_book import HOURS_OF_A_MONTH  # noqa: PLC0415
    from capacity.cost.reservation import advise_reservation, read_use  # noqa: PLC0415
    from infra.cli.advise_report import cloud_of, prices_of_machine, show_reservation  # noqa: PLC0415

    prices = prices_of_machine(cloud_of(one[0]), *one, prices_file, on_demand_usd=terms.on_demand_usd_per_hour)
    list_price, off = prices.on_demand_usd_per_hour, terms.discount_percent
    reserved = terms.committed_usd_per_hour or prices.reserved_usd_per_hour if off is None else list_price * (1 - off / 100)
    if reserved is None:
        raise typer.BadParameter(
            "give either --reserved-usd or --discount-percent, or a row of capacity_type reserved in the file of --prices: the price "
            "book has no prices of commitments."
        )
    if isinstance(used, tuple):
        nodes, hours = used
        hourly = [nodes] * hours + [0] * (HOURS_OF_A_MONTH - hours)
    else:
        hourly = read_use(used)
    show_reservation(advise_reservation(hourly, reserved, list_price), len(hourly), form, prices)


def _last_days(days: int, now: int) -> Period:
    from capacity.chargeback.samples import Period  # noqa: PLC0415

    # From midnight on, so that the same command goes on where it was interrupted.
    first = now - now % _DAY - days * _DAY
    return Period(first, now, f"{datetime.fromtimestamp(first, UTC):%Y-%m-%d} until now", "UTC")


def _asked(month: str | None, start: str | None, end: str | None, timezone: str, now: int) -> Period:
    from infra.cli.chargeback_commands import period_asked, period_begun  # noqa: PLC0415

    return period_begun(period_asked(month, start, end, timezone), now)


def _measured(source: PrometheusSource, period: Period, write_to: Path | None) -> tuple[MachineHours, Callable[[], None]]:
    from capacity.chargeback.machine_hours import MachineHoursReader, machine_hours_csv, node_queries  # noqa: PLC0415
    from infra.cli.chargeback_commands import write_in_one_piece  # noqa: PLC0415
    from infra.cli.prometheus_source import no_node_known  # noqa: PLC0415

    reader = MachineHoursReader(period, source.step, source.bridge)
    read = source.read(period, node_queries(source.match), reader.take, kept_as="reserve")
    found = reader.close()
    if not found.hours:
        raise no_node_known(period)
    found.notes += read.warnings
    if write_to is not None:
        write_in_one_piece(machine_hours_csv(found), write_to)
    return found, read.discard


def _of(found: MachineHours, machine: str | None, region: str | None) -> MachineHours:
    """The same history of one machine, one region, or both. Raises ExplainedError where there is nothing of it."""
    from dataclasses import replace  # noqa: PLC0415

    nodes = {kind: each for kind, each in found.nodes.items() if machine in {None, kind.machine} and region in {None, kind.region}}
    if not nodes:
        there = ", ".join(sorted({f"{kind.machine} in {kind.region}" for kind in found.nodes}))
        raise ExplainedError(
            f"the history has no {machine or 'machine'} in {region or 'any region'}.",
            f"it has {there}.",
            exit_code=ExitCode.BAD_USAGE,
        )
    return replace(found, nodes=nodes)


def _advised(found: MachineHours, prices_file: Path | None, terms: Terms, form: Format) -> bool:
    from capacity.chargeback.commitment_advice import advise_commitments  # noqa: PLC0415
    from infra.cli.advise_reserve_report import show_commitments  # noqa: PLC0415
    from infra.cli.chargeback_commands import own_prices  # noqa: PLC0415

    book = own_prices(prices_file)
    advice = advise_commitments(found, book, terms)
    show_commitments(advice, found.notes, book, form)
    return advice.complete
