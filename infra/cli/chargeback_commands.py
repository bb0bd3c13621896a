"""`flexspot chargeback`: who pays what of a month's nodes, from what Prometheus recorded, and from files of the person's own."""

from __future__ import annotations

import re
import sys
import time
from enum import StrEnum
from functools import partial
from pathlib import Path  # noqa: TC003 -- typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from capacity.catalog.data_files import read_records
from capacity.catalog.price_book import PriceFile
from capacity.chargeback.consumers import MOST_CONSUMERS, TOP_CONSUMERS
from capacity.chargeback.credits import moments_of, read_credits
from capacity.chargeback.node_costs import PriceTimes
from capacity.chargeback.report import IdlePolicy, read_extra_costs
from capacity.chargeback.samples import BRIDGED_STEPS, PeriodError, month_period, period_between
from capacity.values.errors import ExitCode, ExplainedError
from infra.cli import prometheus_options as asked_of  # noqa: TC001 -- typer reads the annotations
from infra.cli.given_files import given_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from capacity.catalog.machines import Cloud
    from capacity.catalog.price_book import PriceBook
    from capacity.chargeback.credits import Credit
    from capacity.chargeback.report import ExtraCost, Report
    from capacity.chargeback.samples import Period
    from infra.cli.prometheus_source import PrometheusSource


def period_asked(month: str | None, start: str | None, end: str | None, timezone: str) -> Period:
    """The month or the times that are asked for. Raises ExplainedError where there is neither, or both."""
    try:
        if month is not None and start is None and end is None:
            return month_period(month, timezone)
        if month is None and start is not None and end is not None:
            return period_between(start, end, timezone)
    except PeriodError as error:
        problem, _, remedy = str(error).partition("; ")
        raise ExplainedError(f"{problem}.", f"{remedy}.", exit_code=ExitCode.BAD_USAGE) from error
    raise ExplainedError(
        "the period of the report is missing, or given twice.", "give --month, or --from and --to.", exit_code=ExitCode.BAD_USAGE
    )


def period_begun(asked: Period, now: int) -> Period:
    """What of it is over by `now`. Raises ExplainedError for a period of the future."""
    try:
        return asked.until(now)
    except PeriodError as error:
        problem, _, remedy = str(error).partition("; ")
        raise ExplainedError(f"{problem}.", f"{remedy}.", exit_code=ExitCode.BAD_USAGE) from error


def extra_costs(path: Path | None) -> tuple[ExtraCost, ...]:
    """The costs of the file, or none. Raises ExplainedError with everything that is wrong with it."""
    if path is None:
        return ()
    return given_file(path, read_extra_costs, "its form is in docs/guides/chargeback.md")


def granted_credits(path: Path | None) -> tuple[Credit, ...]:
    """The credits of the file, or none. Raises ExplainedError with everything that is wrong with it."""
    if path is None:
        return ()
    return given_file(path, read_credits, "its form is in docs/guides/chargeback.md")


def own_prices(path: Path | None) -> Callable[[Cloud], PriceBook]:
    """The price book of each cloud now, with the file's rows before the shipped ones. Raises what `price_times` does."""
    return price_times(path).of(int(time.time()))


def price_times(path: Path | None) -> PriceTimes:
    """The prices of every moment, the file's rows before the shipped ones. Raises ExplainedError for a file of another form."""
    if path is None:
        return PriceTimes()
    return given_file(path, _price_times, "its form is that of capacity/catalog/prices")


def _price_times(path: Path) -> PriceTimes:
    own = read_records(path, PriceFile)
    prices = PriceTimes(own=own, name=path.name)
    # A discount that is off nothing is found when the book is made.
    prices.at(own.cloud, 0)
    return prices


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


def chargeback(  # noqa: PLR0913, PLR0917 -- each is an option of the command line
    prometheus: Annotated[str, typer.Option("--prometheus", metavar="URL", help="The URL of Prometheus' API, without /api/v1.")],
    month: asked_of.Month = None,
    start: asked_of.From = None,
    end: asked_of.To = None,
    timezone: asked_of.Timezone = "UTC",
    match: asked_of.Match = "",
    header: asked_of.Header = None,
    ca: asked_of.Authorities = None,
    token_file: asked_of.TokenFile = None,
    token_env: asked_of.TokenEnv = None,
    auth: asked_of.Auth = None,
    aws_region: asked_of.AwsRegion = None,
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
    step: asked_of.Step = 60,
    bridge: asked_of.Bridge = BRIDGED_STEPS,
    timeout: asked_of.Timeout = 120,
    resume_dir: asked_of.ResumeDir = None,
) -> None:
    """Report what GPUs cost each team in a month: allocated, used, idle and lost. Sums to the cost of the nodes, to the cent.

    Exit code 1: the report is written, but something is missing from its sums; it says what. 2: bad usage or input.
    """
    from infra.cli.prometheus_source import PrometheusSource  # noqa: PLC0415
    from infra.prometheus.access import access_to  # noqa: PLC0415

    now = int(time.time())
    asked = period_asked(month, start, end, timezone)
    period = period_begun(asked, now)
    if form is ChargebackFormat.FOCUS and not billing_account.strip():
        raise ExplainedError(
            "FOCUS needs the id of the billed account, but none is given.",
            "give it with --billing-account, as in --billing-account 123456789012.",
            exit_code=ExitCode.BAD_USAGE,
        )
    access = access_to(
        prometheus, headers=header or (), ca=ca, token_file=token_file, token_env=token_env, auth=auth, aws_region=aws_region
    )
    extra, granted = extra_costs(storage), granted_credits(credit)
    book = price_times(prices)
    source = PrometheusSource(access, match, step, bridge, float(timeout), resume_dir, now)
    report = _report(source, period, asked, book, idle, extra, granted, frozenset(auto_mode or ()))
    _write(report, form, write_to, billing_account.strip(), top, {"prometheus": access.url, "match": match})
    if not report.complete:
        raise typer.Exit(ExitCode.UNMET)


def _report(  # noqa: PLR0913, PLR0917 -- the parts of a report
    source: PrometheusSource,
    period: Period,
    asked: Period,
    prices: PriceTimes,
    idle: IdlePolicy,
    extra: tuple[ExtraCost, ...],
    granted: tuple[Credit, ...],
    auto_mode: frozenset[str],
) -> Report:
    from capacity.chargeback.charging import charge  # noqa: PLC0415
    from capacity.chargeback.ledger import Ledger  # noqa: PLC0415
    from capacity.chargeback.node_costs import cost_nodes  # noqa: PLC0415
    from capacity.chargeback.queries import queries  # noqa: PLC0415
    from infra.cli.prometheus_source import no_node_known  # noqa: PLC0415

    ledger = Ledger(period, source.step, source.bridge, prices.cuts(period, moments_of(granted)))
    read = source.read(period, queries(source.match), ledger.take, kept_as="chargeback")
    books = ledger.close()
    if not books.nodes:
        raise no_node_known(period)
    costs = cost_nodes(books, prices, auto_mode=auto_mode)
    report = charge(books, costs, idle=idle, asked=asked, extra=extra, notes=read.warnings, granted=granted)
    read.discard()
    return report


def _write(  # noqa: PLR0913, PLR0917 -- what the command line says of writing
    report: Report, form: ChargebackFormat, path: Path | None, billing_account: str, top: int, of: dict[str, str]
) -> None:
    from infra.cli.chargeback_consumers import consumers_csv  # noqa: PLC0415
    from infra.cli.chargeback_focus import report_focus  # noqa: PLC0415
    from infra.cli.chargeback_html import report_html  # noqa: PLC0415
    from infra.cli.chargeback_report import report_csv, report_json, report_markdown, report_text  # noqa: PLC0415
    from infra.cli.chargeback_words import warnings  # noqa: PLC0415
    from infra.cli.console import err  # noqa: PLC0415

    writers = {
        ChargebackFormat.TEXT: partial(report_text, top=top),
        ChargebackFormat.CSV: report_csv,
        ChargebackFormat.CONSUMERS: partial(consumers_csv, top=top),
        ChargebackFormat.JSON: partial(report_json, top=top, of=of),
        ChargebackFormat.MARKDOWN: partial(report_markdown, top=top),
        ChargebackFormat.HTML: partial(report_html, top=top),
        ChargebackFormat.FOCUS: partial(report_focus, billing_account=billing_account),
    }
    text = writers[form](report)
    if form is ChargebackFormat.FOCUS:
        # A dataset has no place for what is missing from it.
        for each in warnings(report):
            err.print(Text(f"warning: {each}"))
    if path is None:
        sys.stdout.write(text)
        return
    write_in_one_piece(text, path)


def write_in_one_piece(text: str, path: Path) -> None:
    """Writes the file whole or not at all. Raises ExplainedError where it cannot be written."""
    half = path.with_name(f".{path.name}.half")
    try:
        half.write_text(text, encoding="utf-8", newline="")
        half.replace(path)
    except OSError as error:
        half.unlink(missing_ok=True)
        raise ExplainedError(
            f"the report cannot be written to {path}: {error.strerror or error}.",
            "name a file in an existing, writable folder.",
            exit_code=ExitCode.BAD_USAGE,
        ) from error


_LABEL = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def chargeback_rules(
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
    from capacity.telemetry import rules_yaml  # noqa: PLC0415

    scope = dict(_label(each) for each in label or ())
    sys.stdout.write("# GPUs allocated, used and idle, as `flexspot chargeback` counts them; made by `flexspot chargeback-rules`.\n")
    sys.stdout.write(rules_yaml(scope))


def _label(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not value or not _LABEL.fullmatch(name):
        raise typer.BadParameter(f"--label {text!r} is not NAME=VALUE of a Prometheus label; write it as in --label cluster=prod.")
    return name, value
