"""Running the Go toolchain so that it can be watched, interrupted and explained."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections import deque
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING

from lab.errors import ExitCode, LabError
from lab.interrupts import interrupts_wait

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

_EVIDENCE_LINES = 20


def require_go(family: str) -> str:
    """The path of the `go` command. Raises LabError when there is none."""
    go = shutil.which("go")
    if go is None:
        raise LabError(
            f"cannot build {family}: there is no Go toolchain (no `go` on PATH).",
            "install Go 1.26 or later (https://go.dev/dl, or your package manager) and run the same command again.",
            exit_code=ExitCode.BAD_USAGE,
        )
    return go


def run_go(family: str, arguments: Sequence[str], folder: Path, on_line: Callable[[str], None]) -> list[str]:
    """Runs `go ARGUMENTS` in `folder` and returns its standard output, a line an entry.

    Each line of standard error goes to `on_line` as it comes. When interrupted, the whole process group is ended first.
    Raises LabError with the last lines of standard error when go fails.
    """
    go = require_go(family)
    # GOWORK and CGO_ENABLED are set because a user's own values would build something else than what is pinned.
    environment = os.environ | {"CGO_ENABLED": "0", "GOWORK": "off"}
    recent: deque[str] = deque(maxlen=_EVIDENCE_LINES)
    with ExitStack() as stack:
        # Standard output goes to a file, because a pipe that nobody reads while standard error is read would fill up and block go.
        output = stack.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8"))
        with interrupts_wait():
            process = stack.enter_context(
                subprocess.Popen(  # noqa: S603 -- the program is go, the arguments are our own
                    [go, *arguments],
                    cwd=folder,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.PIPE,
                    text=True,
                    start_new_session=True,
                )
            )
            stack.push(partial(_end_group_on_error, process.pid))
        for line in process.stderr or ():
            recent.append(line.rstrip())
            on_line(line.rstrip())
        status = process.wait()
        output.seek(0)
        printed = output.read().splitlines()
    if status != 0:
        raise _failure(family, arguments, status, tuple(recent))
    return printed


def _end_group_on_error(group: int, kind: type[BaseException] | None, *_: object) -> None:
    if kind is not None:
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


def _failure(family: str, arguments: Sequence[str], status: int, evidence: tuple[str, ...]) -> LabError:
    said = "\n".join(evidence).lower()
    if "no space left on device" in said:
        return disk_full(family, evidence)
    if "requires go >=" in said:
        remedy = "install the Go version named above, or unset GOTOOLCHAIN so that go may fetch it."
    elif any(sign in said for sign in ("dial tcp", "no such host", "connection refused", "i/o timeout", "tls handshake")):
        remedy = "check the connection to the Go module proxy (`go env GOPROXY`) and run the same command again; finished parts are kept."
    elif status < 0:
        remedy = f"the compiler was ended by signal {-status}; with little memory, set GOFLAGS=-p=1, then run the same command again."
    else:
        remedy = f"run the same command again; if it fails the same way, run `go clean -cache`, or build by hand in lab/tools/{family}."
    return LabError(f"building {family} failed: `go {arguments[0]}` ended with {status}. Its last lines:", remedy, evidence=evidence)


def disk_full(family: str, evidence: tuple[str, ...] = ()) -> LabError:
    """The error for a full disk, with the folders that a build writes to."""
    return LabError(
        f"building {family} failed: no space left on the disk.",
        "free about 10 GiB where go keeps its files (`go env GOCACHE GOMODCACHE`) and run the same command again; finished parts are kept.",
        evidence=evidence,
    )
