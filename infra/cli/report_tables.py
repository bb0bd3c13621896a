"""Tables of figures that people read: one for a terminal and for Markdown, so that both say the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.table import Table as RichTable
from rich.text import Text

from infra.cli.cost_report import literal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console


_TEXT = 12
"""A text is folded to so many columns of a terminal, and no fewer."""


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
    """Prints it. Names are shown as they are, with no markup in them. A figure is in one piece: the table is wider where it must be."""
    shown = RichTable(title=Text(table.title), title_justify="left")
    for column, heading in enumerate(table.headings):
        text = table.is_text(column)
        shown.add_column(heading, justify="left" if text else "right", overflow="fold", no_wrap=not text)
    for row in table.rows:
        shown.add_row(*map(Text, row))
    console.width = max(console.width, _needed(table))
    console.print(shown)


def _needed(table: Table) -> int:
    """How wide it is with its figures whole and its texts folded, with their borders."""
    widths = [max(map(cell_len, column)) for column in zip(table.headings, *table.rows, strict=True)]
    return 1 + sum(3 + (min(each, _TEXT) if table.is_text(column) else each) for column, each in enumerate(widths))


def markdown_table(table: Table) -> Iterator[str]:
    """Its lines, after an empty one. No markup in names counts, and nobody is mentioned."""
    yield ""
    yield f"## {table.title}"
    yield ""
    yield f"| {' | '.join(table.headings)} |"
    yield f"|{'|'.join(':--' if table.is_text(column) else '--:' for column in range(len(table.headings)))}|"
    yield from (f"| {' | '.join(map(literal, row))} |" for row in table.rows)
