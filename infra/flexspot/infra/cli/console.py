"""What the command line prints: progress, results and errors; tables, the same for a terminal and in Markdown; JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
import time
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import IO, TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console, RenderHook
from rich.segment import Segment
from rich.table import Table as RichTable
from rich.text import Text

from flexspot.capacity.values.quantities import SECONDS_OF_AN_HOUR, cents
from flexspot.capacity.values.shown_text import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from fractions import Fraction

    from rich.console import ConsoleOptions, ConsoleRenderable
    from rich.status import Status

    from flexspot.capacity.values.errors import ExplainedError

    Cell = str | Text


@dataclass(frozen=True)
class _Shown:
    """Something to print, in which what a terminal would obey stands in the writing of Python, backslash and all.

    Names come from manifests, plans and servers of other people; none of them may clear a terminal, change its title or hide what it says.
    """

    printed: ConsoleRenderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for text, style, control in console.render(self.printed, options):
            yield Segment(text if control else printable(text, lines=True), style, control)


class _ShowsAll(RenderHook):
    """Has everything that a console prints shown."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """See RenderHook."""
        return [_Shown(each) for each in renderables]


def new_console(*, stderr: bool = False, file: IO[str] | None = None, width: int | None = None, soft_wrap: bool = False) -> Console:
    """A console whose output no text in it can command. `file` gets plain text; `width` is that of the terminal unless given."""
    forced = None if file is None else False
    made = Console(stderr=stderr, file=file, width=width, highlight=False, soft_wrap=soft_wrap, force_terminal=forced)
    made.push_render_hook(_ShowsAll())
    return made


out, err = new_console(soft_wrap=True), new_console(stderr=True, soft_wrap=True)

_QUIET_SECONDS = 15.0
TABLE_WIDTH = 110
"""A table is drawn at least so wide: a narrow terminal wraps its lines rather than losing what they say."""


class ConsoleProgress:
    """Shows flexspot.lab.progress.Progress. On a terminal the running steps share one moving line; elsewhere a step that lasts is
    told of every 15 s, so that a log shows that something is happening and what.
    """

    def __init__(self) -> None:
        self._begun: dict[str, float] = {}
        self._doing: dict[str, str] = {}
        self._last_line = time.monotonic()
        self._status: Status | None = None

    def begin(self, step: str, doing: str) -> None:
        """See Progress."""
        self._begun.setdefault(step, time.monotonic())
        self._show(step, doing, at_once=True)

    def advance(self, step: str, doing: str, done: int, total: int) -> None:
        """See Progress."""
        share = f" ({done} of {total})" if total else f" ({done})"
        self._show(step, doing + share, at_once=False)

    def end(self, step: str, outcome: str) -> None:
        """See Progress."""
        self._begun.pop(step, None)
        self._doing.pop(step, None)
        self._refresh()
        err.print(Text.assemble(("  ✓ ", "green"), f"{step}: {outcome}"))

    def close(self) -> None:
        """Takes the moving line away; called when the work is over, well or not."""
        if self._status is not None:
            self._status.stop()
            self._status = None

    def _show(self, step: str, doing: str, *, at_once: bool) -> None:
        self._doing[step] = doing
        if err.is_terminal:
            self._refresh()
        elif at_once or time.monotonic() - self._last_line > _QUIET_SECONDS:
            self._last_line = time.monotonic()
            err.print(f"  … {step}: {doing}, {time.monotonic() - self._begun[step]:.0f} s")

    def _refresh(self) -> None:
        if not err.is_terminal:
            return
        if not self._doing:
            self.close()
            return
        now = time.monotonic()
        line = Text("   ".join(f"{step}: {doing}, {now - self._begun[step]:.0f} s" for step, doing in self._doing.items()))
        line.truncate(max(20, err.width - 4), overflow="ellipsis")
        if self._status is None:
            self._status = err.status(line)
            self._status.start()
        else:
            self._status.update(line)


def table_console(file: IO[str] | None = None) -> Console:
    """One for tables, as wide as the terminal is now; `file` as for new_console."""
    return new_console(file=file, width=max(new_console().width, TABLE_WIDTH))


def show_error(error: ExplainedError) -> None:
    """The problem in red, the evidence dimmed, what to do in bold."""
    err.print(Text.assemble(("error: ", "bold red"), error.problem))
    for line in error.evidence:
        err.print(Text(f"  | {line}", style="dim"))
    err.print(Text.assemble(("what to do: ", "bold"), error.remedy))


def show_interrupted() -> None:
    """After Ctrl-C: what that means for the work."""
    err.print(
        Text.assemble(("interrupted. ", "bold yellow"), "Work in progress is undone or kept whole; run the same command to continue.")
    )


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
    print_table(Table(title, named, tuple(rows), len(named)))


def print_table(table: Table, title_style: str = "table.title", console: Console | None = None) -> None:
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
    to = console or table_console()
    to.width = max(to.width, _needed(table))
    to.print(shown)


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
            print_table(each, console=console)
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
    """One object, or a list, for programs. Money is text, so that no program rounds it."""
    return json.dumps(content, indent=2, allow_nan=False, default=str) + "\n"


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
