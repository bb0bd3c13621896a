"""Reading on every core, where there is enough to read that it pays."""

from __future__ import annotations

import os
import pickle
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from policies.lint.manifests import InputProblem, Problem, Reading

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PAYS_FROM_BYTES: Final = 512 * 1024
"""A process more costs some 10 ms; half a MiB takes about 40 ms to read."""

PROCESSES_AT_MOST: Final = 8


@dataclass(frozen=True)
class _Child:
    process: int
    pipe: int
    files: list[str]


def read_on_all_cores(files: Sequence[tuple[str, int]], read: Callable[[str], Reading], cores: int | None = None) -> Reading:
    """What `read` returns for each of the files, given with their sizes, all together.

    A process that a file ends (the parser and the garbage of a hostile text are C) takes no other file with it: those it had are read
    again, each by a process of its own, and the one that does it again is a finding.
    """
    cores = _cores() if cores is None else cores
    total = sum(size for _, size in files)
    shares = _shares(files, min(cores, PROCESSES_AT_MOST, 1 + total // PAYS_FROM_BYTES))
    children = [_start(share, read) for share in shares[1:]]
    whole = Reading()
    try:
        for file in shares[0]:
            whole.add(read(file))
        while children:
            child = children.pop()
            result = _collect(child)
            whole.add(result if result is not None else _one_by_one(child.files, read))
    finally:
        for child in children:
            os.kill(child.process, signal.SIGKILL)
            os.close(child.pipe)
            os.waitpid(child.process, 0)
    return whole


def _cores() -> int:
    """The cores that this process may use; one where processes cannot be forked."""
    if not hasattr(os, "fork"):
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _shares(files: Sequence[tuple[str, int]], count: int) -> list[list[str]]:
    """The files in so many shares of about the same size, the largest files first."""
    shares: list[list[str]] = [[] for _ in range(max(1, count))]
    sizes = [0] * len(shares)
    for file, size in sorted(files, key=lambda each: -each[1]) if len(shares) > 1 else files:
        smallest = sizes.index(min(sizes))
        shares[smallest].append(file)
        sizes[smallest] += size + 1
    return shares


def _start(files: list[str], read: Callable[[str], Reading]) -> _Child:
    receiving, sending = os.pipe()
    process = os.fork()
    if process:
        os.close(sending)
        return _Child(process, receiving, files)
    # In the child. Whatever happens, it ends here: it must not go on as a second parent.
    try:
        # The parent ends it; a Ctrl-C is the parent's to tell of.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.close(receiving)
        whole = Reading()
        for file in files:
            whole.add(read(file))
        with os.fdopen(sending, "wb") as pipe:
            pickle.dump(whole, pipe, protocol=pickle.HIGHEST_PROTOCOL)
    finally:
        os._exit(0)


def _collect(child: _Child) -> Reading | None:
    """What a child read, or nothing if it came to an end before it could say."""
    with os.fdopen(child.pipe, "rb") as pipe:
        told = pipe.read()
    os.waitpid(child.process, 0)
    try:
        reading = pickle.loads(told)  # noqa: S301 -- from our own child
    except (EOFError, pickle.UnpicklingError):
        return None
    return reading if isinstance(reading, Reading) else None


def _one_by_one(files: list[str], read: Callable[[str], Reading]) -> Reading:
    whole = Reading()
    for file in files:
        alone = _collect(_start([file], read))
        if alone is None:
            reason = "reading it ended the process that read it, for lack of memory or by a fault of the parser"
            alone = Reading(problems=[Problem(InputProblem.UNREADABLE, file, 1, ("", "", "", ""), reason)], files=1)
        whole.add(alone)
    return whole
