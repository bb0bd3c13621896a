"""Output of the command line: progress, results and errors; tables for terminals and Markdown; JSON and CSV."""

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
    """Something to print, with control characters escaped as in Python.

    Names come from other people's manifests, plans and servers. None of them may clear a terminal, change its title or hide text.
    """

    printed: ConsoleRenderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for text, style, control in console.render(self.printed, options):
            yield Segment(text if control else printable(text, lines=True), style, control)


class _ShowsAll(RenderHook):
    """A hook that escapes control characters in everything that a console prints."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """See RenderHook."""
        return [_Shown(each) for each in renderables]


def new_console(*, stderr: bool = False, file: IO[str] | None = None, width: int | None = None, soft_wrap: bool = False) -> Console:
    """Return a console that ignores control characters in texts. `file` gets plain text. Default for `width`: that of the terminal."""
    forced = None if file is None else False
    made = Console(stderr=stderr, file=file, width=width, highlight=False, soft_wrap=soft_wrap, force_terminal=forced)
    made.push_render_hook(_ShowsAll())
    return made


out, err = new_console(soft_wrap=True), new_console(stderr=True, soft_wrap=True)

_QUIET_SECONDS = 15.0
TABLE_WIDTH = 110
"""Minimum width of a table. A narrow terminal wraps its lines rather than losing text."""


class ConsoleProgress:
    """The display of flexspot.lab.progress.Progress.

    On a terminal, the running steps share one line that is updated. Elsewhere, a long step is printed every 15 s, so that a log shows which
    work is in progress.
    """

    def __init__(self) -> None:
        self._started_at: dict[str, float] = {}
        self._doing: dict[str, str] = {}
        self._last_line = time.monotonic()
        self._status: Status | None = None

    def begin(self, step: str, doing: str) -> None:
        """See Progress."""
        self._started_at.setdefault(step, time.monotonic())
        self._show(step, doing, at_once=True)

    def advance(self, step: str, doing: str, done: int, total: int) -> None:
        """See Progress."""
        share = f" ({done} of {total})" if total else f" ({done})"
        self._show(step, doing + share, at_once=False)

    def end(self, step: str, outcome: str) -> None:
        """See Progress."""
        self._started_at.pop(step, None)
        self._doing.pop(step, None)
        self._refresh()
        err.print(Text.assemble(("  ✓ ", "green"), f"{step}: {outcome}"))

    def close(self) -> None:
        """Remove the updated line. Called when the work is over, successful or not."""
        if self._status is not None:
            self._status.stop()
            self._status = None

    def _show(self, step: str, doing: str, *, at_once: bool) -> None:
        self._doing[step] = doing
        if err.is_terminal:
            self._refresh()
        elif at_once or time.monotonic() - self._last_line > _QUIET_SECONDS:
            self._last_line = time.monotonic()
            err.print(f"  … {step}: {doing}, {time.monotonic() - self._started_at[step]:.0f} s")

    def _refresh(self) -> None:
        if not err.is_terminal:
            return
        if not self._doing:
            self.close()
            return
        now = time.monotonic()
        line = Text("   ".join(f"{step}: {doing}, {now - self._started_at[step]:.0f} s" for step, doing in self._doing.items()))
        line.truncate(max(20, err.width - 4), overflow="ellipsis")
        if self._status is None:
            self._status = err.status(line)
            self._status.start()
        else:
            self._status.update(line)


def table_console(file: IO[str] | None = None) -> Console:
    """Return a console for tables, as wide as the terminal is now. `file` as for new_console."""
    return new_console(file=file, width=max(new_console().width, TABLE_WIDTH))


def show_error(error: ExplainedError) -> None:
    """Print the problem in red, the evidence dimmed, and the remedy in bold."""
    err.print(Text.assemble(("error: ", "bold red"), error.problem))
    for line in error.evidence:
        err.print(Text(f"  | {line}", style="dim"))
    err.print(Text.assemble(("what to do: ", "bold"), error.remedy))


def show_interrupted() -> None:
    """Print after Ctrl-C what happens to the work."""
    err.print(
        Text.assemble(("interrupted. ", "bold yellow"), "Steps in progress are completed or rolled back. Run the same command to continue.")
    )


_TEXT = 12
"""Minimum width of a folded text, in columns."""


@dataclass(frozen=True)
class Table:
    """A table of texts and figures. Text contains no markup; a `Text` has a style on a terminal."""

    title: str
    headings: tuple[str, ...]
    rows: Sequence[tuple[Cell, ...]]
    texts: int = 1
    """The number of leading columns that are text. The others are figures."""
    ends_in_text: bool = False
    """True if the last column is text too."""
    total: tuple[Cell, ...] | None = None
    """A row below a line."""

    def is_text(self, column: int) -> bool:
        """Return whether a column is text, and so left-aligned."""
        return column < self.texts or (self.ends_in_text and column == len(self.headings) - 1)


def show(title: str, headings: Iterable[str], rows: Iterable[tuple[Cell, ...]]) -> None:
    """Print a table of texts to standard output."""
    named = tuple(headings)
    print_table(Table(title, named, tuple(rows), len(named)))


def print_table(table: Table, title_style: str = "table.title", console: Console | None = None) -> None:
    """Print a table. Names are printed literally, without markup. Figures are never wrapped: the table becomes wider if necessary."""
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
    """Return the table's width with whole figures, folded texts, and borders."""
    rows = (*table.rows, *(() if table.total is None else (table.total,)))
    widths = [max(cell_len(str(cell)) for cell in column) for column in zip(table.headings, *rows, strict=True)]
    return 1 + sum(3 + (min(each, _TEXT) if table.is_text(column) else each) for column, each in enumerate(widths))


def markdown_rows(table: Table, shown: int | None = None) -> Iterator[str]:
    """Yield the table's headings and rows, at most `shown`. Names are escaped, so that they contain neither markup nor mentions."""
    yield f"| {' | '.join(table.headings)} |"
    yield f"|{'|'.join(':--' if table.is_text(column) else '--:' for column in range(len(table.headings)))}|"
    yield from (f"| {' | '.join(literal(str(cell)) for cell in row)} |" for row in table.rows[:shown])


_PLAIN = frozenset(" .,:;/=%()+-→?")


def literal(text: str) -> str:
    """Return `text` escaped for Markdown, HTML and GitHub's mentions."""
    return "".join(
        each if each.isalnum() or each in _PLAIN else f"&#{ord(each)};" for each in " ".join(printable(text, lines=True).split())
    )


_ROWS = 500
"""Most rows of a table in a comment. GitHub refuses a comment of more than 65,536 characters."""


def folded(title: str, table: Table, shown: int = _ROWS, command: str = "cost") -> Iterator[str]:
    """Yield a collapsed table; nothing for one without rows. `command` names the command that prints the omitted rows."""
    if not table.rows:
        return
    yield f"<details><summary>{title}</summary>"
    # Without an empty line, GitHub reads the following lines as HTML.
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
    """A report of words and tables."""

    title: str
    tables: Sequence[Table]
    notes: Sequence[str] = ()
    """Remarks that a reader must know."""
    how: str = ""
    """A sentence on how the report was calculated."""
    sums: Sequence[tuple[str, str]] = ()
    """Names and figures of its sums."""

    def text(self) -> str:
        """Return the report for a terminal, as wide as it is."""
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
        """Return the report for an issue or a message. Names are escaped, so that they contain neither markup nor mentions."""
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
    """Return rows as CSV, the headings first. The caller escapes names."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def shown_usd(usd: Decimal | None) -> str:
    """Return an amount for people, with thousands separators."""
    return "not known" if usd is None else f"{cents(usd):,}"


def change(usd: Decimal, none: str = "0") -> str:
    """Return a difference with its sign, or `none` for zero."""
    return f"{usd:+,.2f}" if usd else none


def as_json(content: object) -> str:
    """Return one object, or a list, as JSON for programs. Money is text, so that no program rounds it."""
    return json.dumps(content, indent=2, allow_nan=False, default=str) + "\n"


_PLACES = Decimal("1e-9")
"""Precision of quantities in hours. For the dearest machine, it is a ten-millionth of a dollar."""


def hours_of(seconds: Fraction) -> Decimal:
    """Return seconds as hours, rounded."""
    with localcontext(prec=60):
        return (Decimal(seconds.numerator) / seconds.denominator / SECONDS_OF_AN_HOUR).quantize(_PLACES)


def text_of(number: Decimal) -> str:
    """Return a number in FOCUS's format: a point, no exponent, no trailing zeros."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def priced(which: str, usd_per_hour: Fraction, hours: Decimal) -> dict[str, str]:
    """Return the unit price, and the cost as its exact product with `hours`, as FOCUS requires."""
    with localcontext(prec=60):
        price = Decimal(usd_per_hour.numerator) / usd_per_hour.denominator
        return {f"{which}UnitPrice": text_of(price), f"{which}Cost": text_of(price * hours)}
