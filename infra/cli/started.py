"""How a command line is started: the one place where an error becomes a message and an exit code."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING

from capacity.values.errors import ExplainedError
from infra.collector import collect_rarely

if TYPE_CHECKING:
    from types import FrameType

    from typer import Typer

INTERRUPTED = 130
"""The exit code that shells give a command ended by Ctrl-C."""


def started(app: Typer) -> None:
    """Runs the command line. Exit codes: 0 fine, 1 findings or an unmet expectation, 2 bad usage or input, 130 interrupted."""
    collect_rarely()
    # A terminated command cleans up like an interrupted one: children are ended, locks are given back.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    try:
        app()
    except ExplainedError as error:
        # Rich takes a tenth of the linter's start.
        from infra.cli.console import show_error  # noqa: PLC0415

        show_error(error)
        sys.exit(error.exit_code)
    except InterruptedByPersonError:
        from infra.cli.console import show_interrupted  # noqa: PLC0415

        show_interrupted()
        sys.exit(INTERRUPTED)


class InterruptedByPersonError(BaseException):
    """Ctrl-C or a request to end. Not KeyboardInterrupt, which typer would turn into its own wordless exit."""


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise InterruptedByPersonError
