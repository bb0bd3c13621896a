"""`flexspot chargeback-rules`: what Prometheus records for dashboards, as a file for a Prometheus of one's own."""

from __future__ import annotations

import re
import sys
from typing import Annotated

import typer

_LABEL = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def chargeback_rules(
    label: Annotated[
        list[str] | None,
        typer.Option(
            "--label",
            metavar="NAME=VALUE",
            help="Only series with this label, which recorded ones get, such as cluster=prod; may be repeated.",
        ),
    ] = None,
) -> None:
    """Print the recording rules of GPUs allocated, used and idle, as a file for Prometheus' rule_files."""
    from capacity.telemetry.recording_rules import rules_yaml  # noqa: PLC0415

    scope = dict(_label(each) for each in label or ())
    sys.stdout.write("# GPUs allocated, used and idle, as `flexspot chargeback` counts them; made by `flexspot chargeback-rules`.\n")
    sys.stdout.write(rules_yaml(scope))


def _label(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not value or not _LABEL.fullmatch(name):
        raise typer.BadParameter(f"--label {text!r} is no NAME=VALUE of a Prometheus label; write it as in --label cluster=prod.")
    return name, value
