"""The `flexspot` command: its sub-commands."""

from __future__ import annotations

from typing import Annotated

import typer

from infra.cli import (
    advise_commands,
    audit_commands,
    chargeback_commands,
    cost_commands,
    doctor_commands,
    image_commands,
    import_commands,
    init_commands,
    lab_commands,
    lint_commands,
    price_commands,
    reconcile_commands,
    render_commands,
    review_commands,
    rule_commands,
    run_commands,
    settings_commands,
    stack_commands,
    trend_commands,
    version_commands,
)
from infra.cli.command_line import command_group, own_version, started

WORDS = "Cost-efficient AI platforms on GKE and EKS: declare, preview, rehearse."

app = command_group(WORDS, name="flexspot", add_completion=False, pretty_exceptions_enable=False)
app.add_typer(settings_commands.app, name="settings")
app.add_typer(price_commands.app, name="prices")
app.add_typer(image_commands.app, name="images")
app.add_typer(version_commands.app, name="versions")
app.add_typer(rule_commands.app, name="rules")
app.add_typer(advise_commands.app, name="advise")
app.add_typer(lab_commands.app, name="lab")
app.add_typer(run_commands.app, name="jobs")
app.command()(init_commands.init)
app.command("import")(import_commands.import_stack)
app.command()(doctor_commands.doctor)
stack_commands.add_to(app)
app.command()(review_commands.review)
app.command()(lint_commands.lint)
app.command()(audit_commands.audit)
app.command()(cost_commands.cost)
app.command()(chargeback_commands.chargeback)
app.command()(chargeback_commands.chargeback_rules)
app.command()(reconcile_commands.chargeback_reconcile)
app.command()(trend_commands.chargeback_trend)
app.command()(render_commands.render)
# What comes after the script is its own, `--lr 1` too.
app.command(context_settings={"allow_interspersed_args": False})(run_commands.run)


def _print_version(asked: bool) -> None:  # noqa: FBT001 -- typer's callback
    if asked:
        typer.echo(f"flexspot {own_version()}")
        raise typer.Exit


@app.command("policy-pack")
def policy_pack() -> None:
    """Print the folder of the policy pack that comes with this version, as in: pulumi preview --policy-pack $(flexspot policy-pack)."""
    from policies import FOLDER  # noqa: PLC0415

    typer.echo(FOLDER)


Version = Annotated[bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version, and nothing else.")]


@app.callback(help=WORDS)
def flexspot(shown: Version = False) -> None:
    """What stands before the name of a command."""


def main() -> None:
    """Runs the command line; exit codes as `started` has them."""
    started(app)
