"""The `flexspot` command, also as `python -m flexspot`."""

import atexit
import os
import sys
from contextlib import suppress

_status = 0
"""The exit status of this process, once it is known."""


def main() -> None:
    """Run the command line."""
    global _status  # noqa: PLW0603 -- read by the handler below, which is given nothing
    # The first handler registered runs last.
    atexit.register(_end_at_once)
    try:
        from flexspot.infra.cli.app import main as run  # noqa: PLC0415

        run()
    except SystemExit as ended:
        _status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        raise
    except BaseException:
        _status = 1
        raise


def _end_at_once() -> None:
    """End the process without taking it apart, after everything else that runs at exit.

    Python would free each of a million objects of a cloud's SDK: 1 of 11 s of CPU of a preview of prod-eks (3.11, 2026-11-28).
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(_status)


if __name__ == "__main__":
    main()
