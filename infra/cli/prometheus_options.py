"""The options by which a command is told what to read from Prometheus, and how."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Month = Annotated[str | None, typer.Option("--month", metavar="YYYY-MM", help="A calendar month in --timezone.")]
From = Annotated[str | None, typer.Option("--from", metavar="TIME", help="Instead of a month: from this date or time on.")]
To = Annotated[str | None, typer.Option("--to", metavar="TIME", help="Until before this date or time.")]
Timezone = Annotated[str, typer.Option("--timezone", help="In which months and times are, such as Europe/Berlin.")]
Match = Annotated[str, typer.Option("--match", help="A matcher for every selector, such as 'cluster=\"prod\"'.")]
Header = Annotated[list[str] | None, typer.Option("--header", metavar="'NAME: VALUE'", help="Sent with every request.")]
Authorities = Annotated[Path | None, typer.Option("--ca", help="Certificate authorities of the server, in PEM form.")]
TokenFile = Annotated[Path | None, typer.Option("--token-file", help="A file that holds a bearer token.")]
TokenEnv = Annotated[str | None, typer.Option("--token-env", metavar="NAME", help="An environment variable that holds one.")]
Step = Annotated[int, typer.Option("--step", min=1, max=3600, help="Seconds between samples, at least the scrape interval.")]
Bridge = Annotated[int, typer.Option("--bridge-steps", min=0, help="Missing samples taken to be as the one before.")]
Timeout = Annotated[int, typer.Option("--timeout", min=1, max=3600, help="Seconds that one query may take.")]
ResumeDir = Annotated[
    Path | None, typer.Option("--resume-dir", help="Keep answers there. Default: the user's cache folder, until the command is done.")
]
