"""`flexspot doctor`: what this machine has for each thing that people do with Flexspot, and what to do about the rest."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from capacity.values.errors import ExitCode
from infra.cli.console import Format, out, show_table
from infra.cli.diagnosis import Purpose, Standing

if TYPE_CHECKING:
    from infra.cli.diagnosis import Diagnosis


_SHOWN = {
    Standing.HERE: ("✓", "green"),
    Standing.BUILT: ("✓", "green"),
    Standing.NOT_ASKED: ("?", "yellow"),
    Standing.MISSING: ("✗", "red"),
}
"""By standing: its mark and its colour."""


def doctor(
    needed: Annotated[list[Purpose] | None, typer.Option("--for", help="Exit with 1 unless this works here. Repeatable.")] = None,
    ask: Annotated[
        bool,
        typer.Option(
            "--ask", help="Ask the clouds of the project's stacks who the credentials belong to, and Pulumi where the state is kept."
        ),
    ] = False,
    shown: Annotated[Format, typer.Option("--format", help="A table, or JSON for programs.")] = Format.TEXT,
) -> None:
    """Report what works on this machine, what is missing, and how to get it. Builds and changes nothing."""
    from infra.cli.doctor import diagnoses  # noqa: PLC0415 -- what it looks at takes a second to load

    found = diagnoses(ask=ask)
    if shown is Format.JSON:
        out.print_json(json.dumps([_as_data(each) for each in found]))
    else:
        _show(found)
    unmet = [each for each in found if each.purpose in (needed or ()) and each.standing is Standing.MISSING]
    if unmet:
        raise typer.Exit(ExitCode.UNMET)


def _as_data(diagnosis: Diagnosis) -> dict[str, object]:
    pieces = [{"piece": each.name, "state": each.standing.value, "found": each.said, "remedy": each.remedy} for each in diagnosis.pieces]
    return {"for": diagnosis.purpose.value, "state": diagnosis.standing.value, "pieces": pieces}


def _show(found: list[Diagnosis]) -> None:
    for diagnosis in found:
        mark, colour = _SHOWN[diagnosis.standing]
        out.print(f"[{colour}]{mark}[/] [bold]{diagnosis.purpose.value}[/]: {diagnosis.purpose.words}")
        table = Table("piece", "state", "what is there", "what to do")
        for each in diagnosis.pieces:
            state = f"[{_SHOWN[each.standing][1]}]{each.standing.value}[/]"
            table.add_row(escape(each.name), state, escape(each.said), escape(each.remedy))
        show_table(table)
