"""The options by which a command is told what to read from Prometheus, and how."""

from __future__ import annotations

import hashlib
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import platformdirs
import typer

from flexspot.capacity.chargeback.samples import BRIDGED_STEPS, Period, PeriodError, month_period, period_between
from flexspot.capacity.values.errors import ExplainedError
from flexspot.infra.cli.command_line import bad_usage
from flexspot.infra.cli.console import ConsoleProgress
from flexspot.infra.prometheus.access import CloudAuth, access_to
from flexspot.infra.prometheus.client import PrometheusClient
from flexspot.infra.prometheus.reading import KeptSlices, PeriodReader, ReportIdentity, collection_paused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from flexspot.capacity.chargeback.queries import Query, Question
    from flexspot.capacity.chargeback.samples import Matrix
    from flexspot.infra.prometheus.access import PrometheusAccess


Step = Annotated[int, typer.Option("--step", min=1, max=3600, help="Seconds between samples; at least the scrape interval.")]


@dataclass(frozen=True)
class PrometheusOptions:
    """The options by which a command is told what to read from Prometheus, and how."""

    month: Annotated[str | None, typer.Option("--month", metavar="YYYY-MM", help="A calendar month in --timezone.")] = None
    start: Annotated[str | None, typer.Option("--from", metavar="TIME", help="Instead of --month: the first date or time.")] = None
    end: Annotated[str | None, typer.Option("--to", metavar="TIME", help="The end, which is not included: a date or time.")] = None
    timezone: Annotated[str, typer.Option("--timezone", help="The time zone of months and times, such as Europe/Berlin.")] = "UTC"
    match: Annotated[str, typer.Option("--match", help="A label matcher added to every query, such as 'cluster=\"prod\"'.")] = ""
    header: Annotated[list[str] | None, typer.Option("--header", metavar="'NAME: VALUE'", help="An HTTP header for every request.")] = None
    ca: Annotated[Path | None, typer.Option("--ca", help="The server's certificate authorities, as a PEM file.")] = None
    token_file: Annotated[Path | None, typer.Option("--token-file", help="A file with a bearer token.")] = None
    token_env: Annotated[str | None, typer.Option("--token-env", metavar="NAME", help="An environment variable with a bearer token.")] = (
        None
    )
    auth: Annotated[
        CloudAuth | None,
        typer.Option(
            "--prometheus-auth",
            help="Sign requests with the credentials of the aws or gcloud command. Default: so for the clouds' own addresses.",
        ),
    ] = None
    aws_region: Annotated[
        str | None,
        typer.Option("--aws-region", metavar="REGION", help="The workspace's region, where the address does not tell it."),
    ] = None
    bridge: Annotated[
        int, typer.Option("--bridge-steps", min=0, help="How many missing samples in a row to fill with the last one seen.")
    ] = BRIDGED_STEPS
    timeout: Annotated[int, typer.Option("--timeout", min=1, max=3600, help="The most seconds for one query.")] = 120
    resume_dir: Annotated[
        Path | None,
        typer.Option(
            "--resume-dir", help="Keep answers in this folder, to resume. Default: the user's cache folder, until the command is done."
        ),
    ] = None

    def source(self, url: str, step: int, now: int) -> PrometheusSource:
        """Return where to read, at the API's `url`. Raises ExplainedError for what cannot be used."""
        access = access_to(
            url,
            headers=self.header or (),
            ca=self.ca,
            token_file=self.token_file,
            token_env=self.token_env,
            auth=self.auth,
            aws_region=self.aws_region,
        )
        return PrometheusSource(access, self.match, step, self.bridge, float(self.timeout), self.resume_dir, now)

    def period(self) -> Period:
        """Return the month or the times that are asked for. Raises ExplainedError where there is neither, or both."""
        try:
            if self.month is not None and self.start is self.end is None:
                return month_period(self.month, self.timezone)
            if self.month is None and self.start is not None and self.end is not None:
                return period_between(self.start, self.end, self.timezone)
        except PeriodError as error:
            raise _bad_period(error) from error
        problem = "the period of the report is missing, or given twice."
        raise bad_usage(problem, "give --month, or --from and --to.")


def period_begun(asked: Period, now: int) -> Period:
    """What of it is over by `now`. Raises ExplainedError for a period of the future."""
    try:
        return asked.until(now)
    except PeriodError as error:
        raise _bad_period(error) from error


def _bad_period(error: PeriodError) -> ExplainedError:
    problem, _, remedy = str(error).partition("; ")
    return bad_usage(f"{problem}.", f"{remedy}.")


@dataclass(frozen=True)
class ReadPeriod:
    """What came with the samples of a period. `discard` removes the kept answers, unless the person said where to keep them."""

    warnings: list[str]
    discard: Callable[[], None]


@dataclass(frozen=True)
class PrometheusSource:
    """Where samples are read, and how: what the command line says of it."""

    access: PrometheusAccess
    match: str
    step: int
    bridge: int
    timeout: float
    resume_dir: Path | None
    now: int

    def read(
        self, period: Period, queries: tuple[Query, ...], take: Callable[[Mapping[Question, Matrix]], None], *, kept_as: str
    ) -> ReadPeriod:
        """Hands over the answers slice by slice. `kept_as` is the folder of the user's cache. Raises ExplainedError."""
        access, step_name = self.access, "samples"
        tenant = tuple(
            f"{name}={hashlib.sha256(value.encode()).hexdigest()[:12]}"
            for name, value in sorted(access.headers.items())
            if name.lower() != "authorization"
        )
        identity = ReportIdentity(access.url, self.match, self.step, tenant)
        cache = platformdirs.user_cache_path("flexspot") / kept_as / f"{identity.fingerprint[:16]}-{period.start}"
        kept = KeptSlices(self.resume_dir or cache, identity)
        doing = f"reading {period.name} from {access.url}"
        with closing(ConsoleProgress()) as progress, collection_paused():
            client = PrometheusClient(access, read_seconds=self.timeout)
            reading = PeriodReader(client, kept, self.step, self.now, lambda done, total: progress.advance(step_name, doing, done, total))
            progress.begin(step_name, doing)
            for answers in reading.slices(period, queries):
                take(answers)
            again = f", {reading.from_disk} answers from an earlier run" if reading.from_disk else ""
            progress.end(step_name, f"read {period.name}{again}")
        warned = [f"Prometheus warned, and data may be missing: {each}" for each in reading.warnings]
        return ReadPeriod(warned, kept.discard if self.resume_dir is None else lambda: None)


def no_node_known(period: Period) -> ExplainedError:
    """The error for a period in which no node was seen."""
    return ExplainedError(
        f"Prometheus knows of no node in {period.name}.",
        "check that it scrapes kube-state-metrics (kube_node_info), keeps data for so long, and that --match is right.",
    )
