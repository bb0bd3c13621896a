"""The options by which a command is told what to read from Prometheus, and how."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from infra.prometheus.access import CloudAuth

Month = Annotated[str | None, typer.Option("--month", metavar="YYYY-MM", help="A calendar month in --timezone.")]
From = Annotated[str | None, typer.Option("--from", metavar="TIME", help="Instead of --month: the first date or time.")]
To = Annotated[str | None, typer.Option("--to", metavar="TIME", help="The end, which is not included: a date or time.")]
Timezone = Annotated[str, typer.Option("--timezone", help="The time zone of months and times, such as Europe/Berlin.")]
Match = Annotated[str, typer.Option("--match", help="A label matcher added to every query, such as 'cluster=\"prod\"'.")]
Header = Annotated[list[str] | None, typer.Option("--header", metavar="'NAME: VALUE'", help="An HTTP header for every request.")]
Authorities = Annotated[Path | None, typer.Option("--ca", help="The server's certificate authorities, as a PEM file.")]
TokenFile = Annotated[Path | None, typer.Option("--token-file", help="A file with a bearer token.")]
TokenEnv = Annotated[str | None, typer.Option("--token-env", metavar="NAME", help="An environment variable with a bearer token.")]
Auth = Annotated[
    CloudAuth | None,
    typer.Option(
        "--prometheus-auth",
        help="Sign requests with the credentials of the aws or gcloud command. Default: so for the clouds' own addresses.",
    ),
]
AwsRegion = Annotated[
    str | None,
    typer.Option("--aws-region", metavar="REGION", help="The workspace's region, where the address does not tell it."),
]
Step = Annotated[int, typer.Option("--step", min=1, max=3600, help="Seconds between samples; at least the scrape interval.")]
Bridge = Annotated[int, typer.Option("--bridge-steps", min=0, help="How many missing samples in a row to fill with the last one seen.")]
Timeout = Annotated[int, typer.Option("--timeout", min=1, max=3600, help="The most seconds for one query.")]
ResumeDir = Annotated[
    Path | None,
    typer.Option(
        "--resume-dir", help="Keep answers in this folder, to resume. Default: the user's cache folder, until the command is done."
    ),
]
