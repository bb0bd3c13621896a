"""Tables and amounts as people read them: one for a terminal and for Markdown, so that both say the same; and JSON for programs."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.table import Table as RichTable
from rich.text import Text

from flexspot.capacity.values.quantities import SECONDS_OF_AN_HOUR, cents
from flexspot.capacity.values.shown_text import printable
from flexspot.infra.cli.console import table_console

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from fractions import Fraction

    from rich.console import Console

    Cell = str | Text


_TEXT = 12
"""A text is folded to so many columns of a terminal, and no fewer."""


@dataclass(frozen=True)
class Table:
    """A title, headings and rows, whose text has no markup in it; a `Text` has a style on a terminal.

    The first `texts` columns are text, and with `ends_in_text` the last; the others are figures. `total` is a row below a line.
    """

    title: str
    headings: tuple[str, ...]
    rows: Sequence[tuple[Cell, ...]]
    texts: int = 1
    ends_in_text: bool = False
    total: tuple[Cell, ...] | None = None

    def is_text(self, column: int) -> bool:
        """Whether a column is text, and so begins at its left."""
        return column < self.texts or (self.ends_in_text and column == len(self.headings) - 1)


def show(title: str, headings: Iterable[str], rows: Iterable[tuple[Cell, ...]]) -> None:
    """Print a table of texts to standard output."""
    named = tuple(headings)
    print_table(table_console(), Table(title, named, tuple(rows), len(named)))


def print_table(console: Console, table: Table, title_style: str = "table.title") -> None:
    """Prints it. Names are shown as they are, with no markup in them. A figure is in one piece: the table is wider where it must be."""
    title = Text(table.title, style=title_style) if table.title else None
    shown = RichTable(title=title, title_justify="left")
    for column, heading in enumerate(table.headings):
        text = table.is_text(column)
        shown.add_column(Text(heading), justify="left" if text else "right", overflow="fold", no_wrap=not text)
    for row in table.rows:
        shown.add_row(*map(_shown, row))
    if table.total is not None:
        shown.add_section()
        shown.add_row(*map(_shown, table.total))
    console.width = max(console.width, _needed(table))
    console.print(shown)


def _shown(cell: Cell) -> Text:
    return Text(cell) if isinstance(cell, str) else cell


def _needed(table: Table) -> int:
    """How wide it is with its figures whole and its texts folded, with their borders."""
    rows = (*table.rows, *(() if table.total is None else (table.total,)))
    widths = [max(cell_len(str(cell)) for cell in column) for column in zip(table.headings, *rows, strict=True)]
    return 1 + sum(3 + (min(each, _TEXT) if table.is_text(column) else each) for column, each in enumerate(widths))


def markdown_rows(table: Table, shown: int | None = None) -> Iterator[str]:
    """Its headings and rows, at most `shown`. No markup in names counts, and nobody is mentioned."""
    yield f"| {' | '.join(table.headings)} |"
    yield f"|{'|'.join(':--' if table.is_text(column) else '--:' for column in range(len(table.headings)))}|"
    yield from (f"| {' | '.join(literal(str(cell)) for cell in row)} |" for row in table.rows[:shown])


_PLAIN = frozenset(" .,:;/=%()+-→?")


def literal(text: str) -> str:
    """`text` so that neither Markdown nor HTML nor GitHub's mentions see anything in it."""
    return "".join(
        each if each.isalnum() or each in _PLAIN else f"&#{ord(each)};" for each in " ".join(printable(text, lines=True).split())
    )


_ROWS = 500
"""Rows of a table that are shown: a comment holds 65,536 characters, and GitHub refuses a longer one."""


def folded(title: str, table: Table, shown: int = _ROWS, command: str = "cost") -> Iterator[str]:
    """A table behind a line to click on; nothing for one without rows. `command` says which command has those that are not shown."""
    if not table.rows:
        return
    yield f"<details><summary>{title}</summary>"
    # Without an empty line GitHub reads what follows as HTML.
    yield ""
    yield from markdown_rows(table, shown)
    yield ""
    if len(table.rows) > shown:
        yield f"... and {len(table.rows) - shown} more; `flexspot {command} --format json` has them all."
        yield ""
    yield "</details>"
    yield ""


@dataclass(frozen=True)
class TabularReport:
    """A report in words and tables: what it is, a sentence on how it was made, its sums by name, its tables, and what must be known."""

    title: str
    tables: Sequence[Table]
    notes: Sequence[str] = ()
    how: str = ""
    sums: Sequence[tuple[str, str]] = ()

    def text(self) -> str:
        """For a terminal, as wide as it is."""
        text = io.StringIO()
        console = table_console(text)
        for line in (self.title, *([f"  {self.how}"] if self.how else ()), *(f"  {name}: {figure}" for name, figure in self.sums)):
            console.print(Text(line))
        for each in self.tables:
            print_table(console, each)
        for line in self.notes:
            console.print(Text(line))
        return text.getvalue()

    def markdown(self) -> str:
        """For an issue or a message: no markup in names counts, and nobody is mentioned."""
        lines = [f"# {literal(self.title)}"]
        if self.how:
            lines += ["", literal(self.how)]
        if self.sums:
            lines += ["", *(f"- {name}: **{literal(figure)}**" for name, figure in self.sums)]
        for each in self.tables:
            lines += ["", f"## {each.title}", "", *markdown_rows(each)]
        if self.notes:
            lines += ["", "## To be known", "", *(f"- {literal(each)}" for each in self.notes)]
        return "\n".join(lines) + "\n"


def as_csv(rows: Iterable[Iterable[object]]) -> str:
    """Rows of a spreadsheet, the headings first. Whoever gives names has them made harmless."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def shown_usd(usd: Decimal | None) -> str:
    """For people: with thousands."""
    return "not known" if usd is None else f"{cents(usd):,}"


def change(usd: Decimal, none: str = "0") -> str:
    """A difference with its sign, or what to say of none."""
    return f"{usd:+,.2f}" if usd else none


def as_json(content: object) -> str:
    """One object, or a list, for programs."""
    return json.dumps(content, indent=2, allow_nan=False, default=_plain) + "\n"


def _plain(value: Any) -> str:
    """Money is text, so that no program rounds it."""
    return str(value)


_PLACES = Decimal("1e-9")
"""Quantities are rounded to so much of an hour: of the dearest machine that is a ten-millionth of a dollar."""


def hours_of(seconds: Fraction) -> Decimal:
    """Hours, rounded."""
    with localcontext(prec=60):
        return (Decimal(seconds.numerator) / seconds.denominator / SECONDS_OF_AN_HOUR).quantize(_PLACES)


def text_of(number: Decimal) -> str:
    """As FOCUS writes numbers: a point, no exponent, no digit that says nothing."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def priced(which: str, usd_per_hour: Fraction, hours: Decimal) -> dict[str, str]:
    """The unit price and the cost at it, which is their product to the last digit, as FOCUS has it."""
    with localcontext(prec=60):
        price = Decimal(usd_per_hour.numerator) / usd_per_hour.denominator
        return {f"{which}UnitPrice": text_of(price), f"{which}Cost": text_of(price * hours)}
