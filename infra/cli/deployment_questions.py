"""What a person is shown and asked before something is deployed or deleted."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer
from rich.markup import escape
from rich.table import Table

from capacity.values.errors import ExitCode, ExplainedError
from infra.cli.console import out, show_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from capacity.plan.stack_plan import StackPlan
    from infra.deployment.drift import Drift

_ROWS = 40


def bad_usage(problem: str, remedy: str) -> ExplainedError:
    """A command that cannot be meant."""
    return ExplainedError(problem, remedy, exit_code=ExitCode.BAD_USAGE)


def require_somebody_to_ask(command: str, *, yes: bool) -> None:
    """Raises ExplainedError (bad usage) where a question could not be answered: without a terminal and without --yes."""
    if not yes and not sys.stdin.isatty():
        raise bad_usage(
            f"`flexspot {command}` asks before it changes anything, and there is no terminal to answer at. No state was opened.",
            f"add --yes: flexspot {command} --yes ...",
        )


def ask(question: str, *, yes: bool) -> None:
    """Goes on when the answer is yes. Raises ExplainedError (exit code 1) when it is no."""
    if not yes and not typer.confirm(question, default=False):
        raise ExplainedError("the answer was no; nothing was changed.", "run the same command again when it should be.")


def told_answers(made: Sequence[str] | None, not_made: Sequence[str] | None) -> dict[str, str | None]:
    """A person's answers about resources that an interrupted run may have created: ids by URN, None for those that do not exist."""
    given: dict[str, str | None] = dict.fromkeys(not_made or [])
    for each in made or []:
        # An id may have a `=` in it, a URN has none.
        urn, sign, identity = each.partition("=")
        if not (sign and identity):
            raise bad_usage(f"--made {each} names no id.", "write --made URN=ID, as the message that asked for it has it.")
        if urn in given:
            raise bad_usage(f"more than one answer is given about {urn}.", "say once whether it was made, with --made or --not-made.")
        given[urn] = identity
    return given


def show_drift(found: Sequence[Drift], consequence: str) -> None:
    """What was changed by hand, as a table; nothing when nothing was."""
    if not found:
        return
    table = Table(title=f"Changed by hand since the last run; {consequence}", title_justify="left", title_style="bold yellow")
    for heading in ("resource", "field", "deployed", "found"):
        table.add_column(heading, overflow="fold")
    for each in found[:_ROWS]:
        table.add_row(escape(each.resource), escape(each.path), escape(each.deployed), escape(each.found))
    show_table(table)
    if len(found) > _ROWS:
        out.print(f"and {len(found) - _ROWS} more.")


def show_cost_line(planned: StackPlan) -> None:
    """What the stack costs a month, in one line; nothing for a lab, whose nodes are fake."""
    from capacity.cost.costed_plan import costed  # noqa: PLC0415
    from capacity.cost.expected_use import shipped_use  # noqa: PLC0415
    from capacity.cost.plan_cost_lines import plan_cost  # noqa: PLC0415
    from capacity.settings.platform import EksSettings, GkeSettings  # noqa: PLC0415
    from infra.cli.advise_report import shown_usd  # noqa: PLC0415

    if not isinstance(planned.settings, EksSettings | GkeSettings):
        return
    cost = plan_cost(costed(planned.plan), planned.prices, shipped_use())
    least = "at least " if cost.unknown else ""
    total = cost.total
    told = f"worst case {least}{shown_usd(total.worst_usd)}, expected {least}{shown_usd(total.expected_usd)}"
    out.print(f"Cost, USD a month: {told}, with nothing running {least}{shown_usd(total.floor_usd)}.")
