"""What the command line shows of progress, results and errors: colours and moving lines on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from rich.console import Console, RenderHook
from rich.segment import Segment
from rich.text import Text

from flexspot.capacity.values.shown_text import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import ConsoleOptions, ConsoleRenderable
    from rich.status import Status
    from rich.table import Table

    from flexspot.capacity.values.errors import ExplainedError


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


def show_table(table: Table) -> None:
    """A table with every column whole: a narrow terminal wraps its lines rather than losing what they say."""
    table_console().print(table)


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
