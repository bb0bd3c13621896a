"""`flexspot chargeback`: each team's cost of a month's nodes, from Prometheus and from files of the user."""

from __future__ import annotations

import hashlib
import re
import sys
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import platformdirs
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
from flexspot.capacity.chargeback.samples import BRIDGED_STEPS, Period, PeriodError, month_period, period_between
from flexspot.capacity.telemetry import rules_yaml
from flexspot.capacity.values.errors import ExplainedError
from flexspot.infra.cli.command_line import PRICE_FORM, bad_usage, expect, given_file, option, with_options, write_whole
from flexspot.infra.cli.console import ConsoleProgress, err
from flexspot.infra.cli.money.chargeback_focus import report_focus
from flexspot.infra.cli.money.chargeback_formats import document, report_csv, report_html, report_json
from flexspot.infra.cli.money.chargeback_tables import consumers_csv, warnings
from flexspot.infra.prometheus.access import CloudAuth, access_to
from flexspot.infra.prometheus.client import PrometheusClient
from flexspot.infra.prometheus.reading import KeptSlices, PeriodReader, ReportIdentity, collection_paused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from flexspot.capacity.catalog.machines import Vendor
    from flexspot.capacity.catalog.price_book import PriceBook
    from flexspot.capacity.chargeback.queries import Query, Question
    from flexspot.capacity.chargeback.report import Report
    from flexspot.capacity.chargeback.samples import Matrix, Period
    from flexspot.infra.prometheus.access import PrometheusAccess


Step = Annotated[int, option("--step", "Seconds between samples; at least the scrape interval.", min=1, max=3600)]


@dataclass(frozen=True)
class PrometheusOptions:
    """Options that say what to read from Prometheus, and how."""

    month: Annotated[str | None, option("--month", "A calendar month in --timezone.", metavar="YYYY-MM")] = None
    start: Annotated[str | None, option("--from", "Instead of --month: the first date or time.", metavar="TIME")] = None
    end: Annotated[str | None, option("--to", "The end, which is not included: a date or time.", metavar="TIME")] = None
    timezone: Annotated[str, option("--timezone", "The time zone of months and times, such as Europe/Berlin.")] = "UTC"
    match: Annotated[str, option("--match", "A label matcher added to every query, such as 'cluster=\"prod\"'.")] = ""
    header: Annotated[list[str] | None, option("--header", "An HTTP header for every request.", metavar="'NAME: VALUE'")] = None
    ca: Annotated[Path | None, option("--ca", "The server's certificate authorities, as a PEM file.")] = None
    token_file: Annotated[Path | None, option("--token-file", "A file with a bearer token.")] = None
    token_env: Annotated[str | None, option("--token-env", "An environment variable with a bearer token.", metavar="NAME")] = None
    auth: Annotated[
        CloudAuth | None,
        option(
            "--prometheus-auth",
            "Sign requests with the credentials of the aws or gcloud command. Default: only for the clouds' own addresses.",
        ),
    ] = None
    aws_region: Annotated[
        str | None, option("--aws-region", "The workspace's region, if the address does not contain it.", metavar="REGION")
    ] = None
    bridge: Annotated[int, option("--bridge-steps", "The number of missing samples in a row to fill with the last one seen.", min=0)] = (
        BRIDGED_STEPS
    )
    timeout: Annotated[int, option("--timeout", "The most seconds for one query.", min=1, max=3600)] = 120
    resume_dir: Annotated[
        Path | None,
        option("--resume-dir", "Keep answers in this folder, to resume. Default: the user's cache folder, until the command is done."),
    ] = None

    def source(self, url: str, step: int, now: int) -> PrometheusSource:
        """Return the source at the API's `url`. Raises ExplainedError for unusable options."""
        access = access_to(
            url,
            headers=self.header or (),
            ca=self.ca,
            token_file=self.token_file,
            token_env=self.token_env,
            auth=self.auth,
            aws_region=self.aws_region,
        )
        return PrometheusSource(access, self, step, now)

    def period(self) -> Period:
        """Return the requested month or times. Raises ExplainedError if neither or both are given."""
        try:
            if self.month is not None and self.start is self.end is None:
                return month_period(self.month, self.timezone)
            if self.month is None and self.start is not None and self.end is not None:
                return period_between(self.start, self.end, self.timezone)
        except PeriodError as error:
            raise _bad_period(error) from error
        problem = "--month: the period of the report is missing, or given twice."
        raise bad_usage(problem, "give either --month, or --from and --to.")


def elapsed_part(asked: Period, now: int) -> Period:
    """Return the part of the period before `now`. Raises ExplainedError for a future period."""
    try:
        return asked.until(now)
    except PeriodError as error:
        raise _bad_period(error) from error


def _bad_period(error: PeriodError) -> ExplainedError:
    problem, _, remedy = str(error).partition("; ")
    return bad_usage(f"{problem}.", f"{remedy}.")


@dataclass(frozen=True)
class PrometheusSource:
    """A Prometheus server and the options for reading it."""

    access: PrometheusAccess
    options: PrometheusOptions
    step: int
    now: int

    def read(
        self, period: Period, queries: tuple[Query, ...], take: Callable[[Mapping[Question, Matrix]], None], *, kept_as: str
    ) -> tuple[list[str], Callable[[], None]]:
        """Pass the answers to `take`, slice by slice. Raises ExplainedError.

        `kept_as` is the folder in the user's cache. Returns warnings, and a function that removes the kept answers. It removes nothing if
        the user chose their folder.
        """
        access, options, step_name = self.access, self.options, "samples"
        tenant = tuple(
            f"{name}={hashlib.sha256(value.encode()).hexdigest()[:12]}"
            for name, value in sorted(access.headers.items())
            if name.lower() != "authorization"
        )
        identity = ReportIdentity(access.url, options.match, self.step, tenant)
        cache = platformdirs.user_cache_path("flexspot") / kept_as / f"{identity.fingerprint[:16]}-{period.start}"
        kept = KeptSlices(options.resume_dir or cache, identity)
        doing = f"reading {period.name} from {access.url}"
        with closing(ConsoleProgress()) as progress, collection_paused():
            client = PrometheusClient(access, read_seconds=float(options.timeout))
            reading = PeriodReader(client, kept, self.step, self.now, lambda done, total: progress.advance(step_name, doing, done, total))
            progress.begin(step_name, doing)
            for answers in reading.slices(period, queries):
                take(answers)
            again = f", {reading.from_disk} answers from an earlier run" if reading.from_disk else ""
            progress.end(step_name, f"read {period.name}{again}")
        warned = [f"Prometheus warned, and data may be missing: {each}" for each in reading.warnings]
        return warned, kept.discard if options.resume_dir is None else lambda: None


def no_node_known(period: Period) -> ExplainedError:
    """Return the error for a period without any node."""
    return ExplainedError(
        f"--prometheus: the server has no data about nodes in {period.name}.",
        "check that it scrapes kube-state-metrics (kube_node_info) and still has data of that period, and that --match is right.",
    )


def own_prices(path: Path | None) -> Callable[[Vendor], PriceBook]:
    """Return each cloud's price book as of now, overridden by the file. Raises the errors of `price_times`."""
    return price_times(path).of(int(time.time()))


def price_times(path: Path | None) -> PriceTimes:
    """Return the prices of every moment, overridden by the file. Raises ExplainedError for a file of another format."""
    if path is None:
        return PriceTimes()
    return given_file(path, _price_times, PRICE_FORM)


def _price_times(path: Path) -> PriceTimes:
    own = read_records(path, PriceFile)
    prices = PriceTimes(own=own, name=path.name)
    # A discount that applies to no price is found when the book is built.
    prices.at(own.cloud, 0)
    return prices


_GUIDE = "docs/guides/chargeback.md describes its format"


ChargebackFormat = Literal["text", "csv", "consumers", "json", "markdown", "html", "focus"]
"""Forms of the report: for a terminal, a spreadsheet, programs, a comment, a browser and printer, or a finance tool.

`consumers` is a second kind of CSV, with the workloads and users of each team that cost most.
"""


@with_options("read", PrometheusOptions)
def report(
    prometheus: Annotated[str, option("--prometheus", "The URL of Prometheus' API, without /api/v1.", metavar="URL")],
    read: PrometheusOptions,
    idle: Annotated[IdlePolicy, option("--idle", "Who pays for idle GPUs.")] = IdlePolicy.CENTRAL,
    storage: Annotated[Path | None, option("--storage", "File with the costs of storage and egress by team; see the guide.")] = None,
    credit: Annotated[Path | None, option("--credits", "File with the clouds' credits for these nodes; see the guide.")] = None,
    prices: Annotated[Path | None, option("--prices", "Your own price file; its prices override all others.")] = None,
    auto_mode: Annotated[
        list[str] | None,
        option("--auto-mode", "An environment whose nodes EKS Auto Mode runs, so that its fee counts. Repeatable.", metavar="ENVIRONMENT"),
    ] = None,
    form: Annotated[
        ChargebackFormat,
        option(
            "--format",
            "text and markdown for people, csv and json for programs, html; consumers: a CSV of the workloads and users that cost "
            "most; focus: a FOCUS 1.2 dataset for finance tools.",
        ),
    ] = "text",
    billing_account: Annotated[str, option("--billing-account", "The billed account; needed with --format focus.", metavar="ID")] = "",
    top: Annotated[
        int, option("--top", "The number of workloads and users of each team to show; the rest is summed.", min=1, max=MOST_CONSUMERS)
    ] = TOP_CONSUMERS,
    write_to: Annotated[Path | None, option("--out", "Write the report to this file instead of printing it.")] = None,
    step: Step = 60,
) -> None:
    """Report what GPUs cost each team in a month: allocated, used, idle and lost. Sums to the cost of the nodes, to the cent.

    Exit code 1: the report is written, but something is missing from its sums; it says what. 2: bad usage or input.
    """
    now = int(time.time())
    asked = read.period()
    period = elapsed_part(asked, now)
    if form == "focus" and not billing_account.strip():
        raise bad_usage(
            "--billing-account is required with --format focus.",
            "add the billed account's id, for example --billing-account 123456789012.",
        )
    extra = () if storage is None else given_file(storage, read_extra_costs, _GUIDE)
    granted = () if credit is None else given_file(credit, read_credits, _GUIDE)
    book = price_times(prices)
    source = read.source(prometheus, step, now)
    ledger = Ledger(period, step, read.bridge, book.cuts(period, moments_of(granted)))
    warned, discard = source.read(period, queries(read.match), ledger.take, kept_as="chargeback")
    books = ledger.close()
    if not books.nodes:
        raise no_node_known(period)
    costs = cost_nodes(books, book, auto_mode=frozenset(auto_mode or ()))
    report = charge(books, costs, idle=idle, asked=asked, extra=extra, notes=warned, granted=granted)
    discard()
    _write(report, form, write_to, billing_account.strip(), top, {"prometheus": source.access.url, "match": read.match})
    expect(report.complete)


def _write(report: Report, form: str, path: Path | None, billing_account: str, top: int, of: dict[str, str]) -> None:
    writers = {
        "text": lambda: document(report, top).text(),
        "csv": lambda: report_csv(report),
        "consumers": lambda: consumers_csv(report, top),
        "json": lambda: report_json(report, top, of),
        "markdown": lambda: document(report, top).markdown(),
        "html": lambda: report_html(report, top),
        "focus": lambda: report_focus(report, billing_account),
    }
    text = writers[form]()
    if form == "focus":
        # The dataset has no column for what is missing from it.
        for each in warnings(report):
            err.print(Text(f"warning: {each}"))
    if path is None:
        sys.stdout.write(text)
    else:
        write_whole(path, text, "the report")


_LABEL = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def rules(
    label: Annotated[
        list[str] | None,
        option(
            "--label",
            "Use only series with this label, and put it on the recorded ones; such as cluster=prod. Repeatable.",
            metavar="NAME=VALUE",
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
        raise typer.BadParameter(f"--label: {text!r} is not NAME=VALUE of a Prometheus label. Write for example --label cluster=prod.")
    return name, value
