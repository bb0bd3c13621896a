"""Tables of figures that people read: one for a terminal and for Markdown, so that both say the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.table import Table as RichTable
from rich.text import Text

from infra.cli.cost_report import literal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console


@dataclass(frozen=True)
class Table:
    """A title, headings and rows of text. The first `texts` columns are text, and with `ends_in_text` the last; the others are figures."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    texts: int = 1
    ends_in_text: bool = False

    def is_text(self, column: int) -> bool:
        """Whether a column is text, and so begins at its left."""
        return column < self.texts or (self.ends_in_text and column == len(self.headings) - 1)


def print_table(console: Console, table: Table) -> None:
    """Prints it. Names are shown as they are, with no markup in them."""
    shown = RichTable(title=Text(table.title), title_justify="left")
    for column, heading in enumerate(table.headings):
        shown.add_column(heading, justify="left" if table.is_text(column) else "right", overflow="fold")
    for row in table.rows:
        shown.add_row(*map(Text, row))
    console.print(shown)


def markdown_table(table: Table) -> Iterator[str]:
    """Its lines, after an empty one. No markup in names counts, and nobody is mentioned."""
    yield ""
    yield f"## {table.title}"
    yield ""
    yield f"| {' | '.join(table.headings)} |"
    yield f"|{'|'.join(':--' if table.is_text(column) else '--:' for column in range(len(table.headings)))}|"
    yield from (f"| {' | '.join(map(literal, row))} |" for row in table.rows)
