"""`flexspot chargeback`: who pays what of a month's nodes, from what Prometheus recorded, and from files of the person's own."""

from __future__ import annotations

import re
import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from flexspot.capacity.catalog.data_files import read_records
from flexspot.capacity.catalog.price_book import PriceFile
from flexspot.capacity.chargeback.charges import moments_of, read_credits
from flexspot.capacity.chargeback.charging import charge
from flexspot.capacity.chargeback.ledger import Ledger
from flexspot.capacity.chargeback.node_costs import PriceTimes, cost_nodes
from flexspot.capacity.chargeback.queries import queries
from flexspot.capacity.chargeback.report import MOST_CONSUMERS, TOP_CONSUMERS, IdlePolicy, read_extra_costs
from flexspot.capacity.telemetry import rules_yaml
from flexspot.capacity.values.errors import ExitCode
from flexspot.infra.cli.command_line import bad_usage, with_options
from flexspot.infra.cli.console import err
from flexspot.infra.cli.given_files import given_file, write_whole
from flexspot.infra.cli.money.chargeback_focus import report_focus
from flexspot.infra.cli.money.chargeback_formats import document, report_csv, report_html, report_json
from flexspot.infra.cli.money.chargeback_tables import consumers_csv, warnings
from flexspot.infra.cli.money.machine_prices import PRICE_FORM
from flexspot.infra.cli.money.prometheus_source import PrometheusOptions, PrometheusSource, Step, no_node_known, period_begun

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexspot.capacity.catalog.machines import Vendor
    from flexspot.capacity.catalog.price_book import PriceBook
    from flexspot.capacity.chargeback.charges import Credit
    from flexspot.capacity.chargeback.report import ExtraCost, Report
    from flexspot.capacity.chargeback.samples import Period


def own_prices(path: Path | None) -> Callable[[Vendor], PriceBook]:
    """The price book of each cloud now, with the file's rows before the shipped ones. Raises what `price_times` does."""
    return price_times(path).of(int(time.time()))


def price_times(path: Path | None) -> PriceTimes:
    """The prices of every moment, the file's rows before the shipped ones. Raises ExplainedError for a file of another form."""
    if path is None:
        return PriceTimes()
    return given_file(path, _price_times, PRICE_FORM)


def _price_times(path: Path) -> PriceTimes:
    own = read_records(path, PriceFile)
    prices = PriceTimes(own=own, name=path.name)
    # A discount that is off nothing is found when the book is made.
    prices.at(own.cloud, 0)
    return prices


_GUIDE = "its form is in docs/guides/chargeback.md"


class ChargebackFormat(StrEnum):
    """How the report is written: for a terminal, a spreadsheet, programs, a comment, a browser and a printer, or a finance tool.

    CONSUMERS is a second CSV: each team's workloads and users that cost most.
    """

    TEXT = "text"
    CSV = "csv"
    CONSUMERS = "consumers"
    JSON = "json"
    MARKDOWN = "markdown"
    HTML = "html"
    FOCUS = "focus"


@with_options("read", PrometheusOptions)
def report(
    prometheus: Annotated[str, typer.Option("--prometheus", metavar="URL", help="The URL of Prometheus' API, without /api/v1.")],
    read: PrometheusOptions,
    idle: Annotated[IdlePolicy, typer.Option("--idle", help="Who pays for idle GPUs.")] = IdlePolicy.CENTRAL,
    storage: Annotated[Path | None, typer.Option("--storage", help="What storage and egress cost whom; see the guide.")] = None,
    credit: Annotated[Path | None, typer.Option("--credits", help="What the clouds give off these nodes; see the guide.")] = None,
    prices: Annotated[Path | None, typer.Option("--prices", help="A price file of your own, before all other prices.")] = None,
    auto_mode: Annotated[
        list[str] | None,
        typer.Option(
            "--auto-mode", metavar="ENVIRONMENT", help="An environment whose nodes EKS Auto Mode runs, so that its fee counts. Repeatable."
        ),
    ] = None,
    form: Annotated[
        ChargebackFormat,
        typer.Option(
            "--format",
            help="text and markdown for people, csv and json for programs, html; consumers: a CSV of the workloads and users that cost "
            "most; focus: a FOCUS 1.2 dataset for finance tools.",
        ),
    ] = ChargebackFormat.TEXT,
    billing_account: Annotated[
        str, typer.Option("--billing-account", metavar="ID", help="The billed account; needed with --format focus.")
    ] = "",
    top: Annotated[
        int,
        typer.Option("--top", min=1, max=MOST_CONSUMERS, help="How many workloads and users of each team to show; the rest is summed."),
    ] = TOP_CONSUMERS,
    write_to: Annotated[Path | None, typer.Option("--out", help="Write the report to this file instead of printing it.")] = None,
    step: Step = 60,
) -> None:
    """Report what GPUs cost each team in a month: allocated, used, idle and lost. Sums to the cost of the nodes, to the cent.

    Exit code 1: the report is written, but something is missing from its sums; it says what. 2: bad usage or input.
    """
    now = int(time.time())
    asked = read.period()
    period = period_begun(asked, now)
    if form is ChargebackFormat.FOCUS and not billing_account.strip():
        raise bad_usage(
            "FOCUS needs the id of the billed account, but none is given.",
            "give it with --billing-account, as in --billing-account 123456789012.",
        )
    extra = () if storage is None else given_file(storage, read_extra_costs, _GUIDE)
    granted = () if credit is None else given_file(credit, read_credits, _GUIDE)
    book = price_times(prices)
    source = read.source(prometheus, step, now)
    report = _report(source, period, asked, book, idle, extra, granted, frozenset(auto_mode or ()))
    _write(report, form, write_to, billing_account.strip(), top, {"prometheus": source.access.url, "match": source.match})
    if not report.complete:
        raise typer.Exit(ExitCode.UNMET)


def _report(
    source: PrometheusSource,
    period: Period,
    asked: Period,
    prices: PriceTimes,
    idle: IdlePolicy,
    extra: tuple[ExtraCost, ...],
    granted: tuple[Credit, ...],
    auto_mode: frozenset[str],
) -> Report:
    ledger = Ledger(period, source.step, source.bridge, prices.cuts(period, moments_of(granted)))
    read = source.read(period, queries(source.match), ledger.take, kept_as="chargeback")
    books = ledger.close()
    if not books.nodes:
        raise no_node_known(period)
    costs = cost_nodes(books, prices, auto_mode=auto_mode)
    report = charge(books, costs, idle=idle, asked=asked, extra=extra, notes=read.warnings, granted=granted)
    read.discard()
    return report


def _write(report: Report, form: ChargebackFormat, path: Path | None, billing_account: str, top: int, of: dict[str, str]) -> None:
    writers = {
        ChargebackFormat.TEXT: lambda: document(report, top).text(),
        ChargebackFormat.CSV: lambda: report_csv(report),
        ChargebackFormat.CONSUMERS: lambda: consumers_csv(report, top),
        ChargebackFormat.JSON: lambda: report_json(report, top, of),
        ChargebackFormat.MARKDOWN: lambda: document(report, top).markdown(),
        ChargebackFormat.HTML: lambda: report_html(report, top),
        ChargebackFormat.FOCUS: lambda: report_focus(report, billing_account),
    }
    text = writers[form]()
    if form is ChargebackFormat.FOCUS:
        # A dataset has no place for what is missing from it.
        for each in warnings(report):
            err.print(Text(f"warning: {each}"))
    if path is None:
        sys.stdout.write(text)
        return
    write_whole(path, text, "the report")


_LABEL = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def rules(
    label: Annotated[
        list[str] | None,
        typer.Option(
            "--label",
            metavar="NAME=VALUE",
            help="Use only series with this label, and put it on the recorded ones; such as cluster=prod. Repeatable.",
        ),
    ] = None,
) -> None:
    """Print the recording rules of GPUs allocated, used and idle, as a file for Prometheus' rule_files."""
    scope = dict(_label(each) for each in label or ())
    sys.stdout.write("# GPUs allocated, used and idle, as `flexspot chargeback` counts them; made by `flexspot chargeback rules`.\n")
    sys.stdout.write(rules_yaml(scope))


def _label(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not value or not _LABEL.fullmatch(name):
        raise typer.BadParameter(f"--label {text!r} is not NAME=VALUE of a Prometheus label; write it as in --label cluster=prod.")
    return name, value
