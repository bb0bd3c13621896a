"""The `flexspot-lint` command: the linter and its rules alone, as the distribution of that name has it.

It imports nothing of the platform's: what it leads to is what hatch_build.py puts into that wheel.
"""

from __future__ import annotations

from typing import Annotated

import typer

from infra.cli import lint_commands, rule_commands
from infra.cli.command_line import command_group, own_version, started

WORDS = "The rules of Flexspot over Kubernetes manifests, anybody's: GPU pools, queues and the work on them, on GKE and EKS."

app = command_group(WORDS, name="flexspot-lint", add_completion=False, pretty_exceptions_enable=False)
app.command()(lint_commands.lint)
app.add_typer(rule_commands.app, name="rules")


def _print_version(asked: bool) -> None:  # noqa: FBT001 -- typer's callback
    if asked:
        typer.echo(f"flexspot-lint {own_version()}")
        raise typer.Exit


@app.callback(help=WORDS)
def flexspot_lint(
    shown: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version, and nothing else.")
    ] = False,
) -> None:
    """What stands before the name of a command."""


def main() -> None:
    """Runs the command line; exit codes as `started` has them."""
    started(app)
