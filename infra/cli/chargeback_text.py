"""The chargeback report for a terminal, and for an issue, a wiki or a message."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from infra.cli import chargeback_words as words
from infra.cli.console import out
from infra.cli.cost_report import literal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from capacity.chargeback.report import Report


_WIDTH = 110


def report_text(report: Report) -> str:
    """Sums first, then table by table, then what is missing. Names are shown as they are, with no markup in them."""
    text = io.StringIO()
    console = Console(file=text, highlight=False, width=max(out.width, _WIDTH), force_terminal=False)
    console.print(Text(words.title(report)))
    console.print(Text(f"  {words.how(report)}"))
    for name, figure in words.summary(report):
        console.print(Text(f"  {name}: {figure}"))
    for each in words.tables(report):
        table = Table(title=Text(each.title), title_justify="left")
        for number, heading in enumerate(each.headings):
            table.add_column(heading, justify="left" if number < each.texts else "right", overflow="fold")
        for row in each.rows:
            table.add_row(*map(Text, row))
        console.print(table)
    for line in (*words.warnings(report), *words.price_notes(report)):
        console.print(Text(line))
    return text.getvalue()


def report_markdown(report: Report) -> str:
    """All tables. Names are shown as they are: no markup in them counts, and nobody is mentioned."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield f"# {literal(words.title(report))}"
    yield ""
    yield literal(words.how(report))
    yield ""
    yield from (f"- {name}: **{literal(figure)}**" for name, figure in words.summary(report))
    for each in words.tables(report):
        yield ""
        yield f"## {each.title}"
        yield ""
        yield f"| {' | '.join(each.headings)} |"
        yield f"|{'|'.join(':--' if column < each.texts else '--:' for column in range(len(each.headings)))}|"
        yield from (f"| {' | '.join(map(literal, row))} |" for row in each.rows)
    notes = [*words.warnings(report), *words.price_notes(report)]
    if notes:
        yield ""
        yield "## To be known"
        yield ""
        yield from (f"- {literal(each)}" for each in notes)
