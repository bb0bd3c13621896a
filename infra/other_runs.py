"""Other runs of the engine over the same file backend: those that hold a lock, and those that gave it back and still write."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from infra.state_file import SCHEME

if TYPE_CHECKING:
    from collections.abc import Iterator

_WRITING = frozenset({"up", "destroy", "refresh"})


def other_runs(backend_url: str | None) -> set[int]:
    """The processes of this machine that may be writing state to `backend_url`; none for a backend that is not in files.

    A lock whose process is gone holds nothing back and is removed. An engine whose command was killed gives its lock back while its last
    write of the state is still going on, so engines that change a stack of this backend count without a lock too.
    """
    if backend_url is None or not backend_url.startswith(SCHEME):
        return set()
    holders = {holder for lock, holder in _locks(backend_url) if not _is_gone(lock, holder)}
    return holders | set(_engines(backend_url))


def _locks(backend_url: str) -> Iterator[tuple[Path, int]]:
    for path in (Path(backend_url.removeprefix(SCHEME)) / ".pulumi" / "locks").rglob("*.json"):
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):
            continue
        if content.get("hostname") == socket.gethostname():
            yield path, int(content["pid"])


def _is_gone(lock: Path, holder: int) -> bool:
    """Whether the process that made the lock is no longer there; its lock is removed then."""
    if psutil.pid_exists(holder):
        return False
    lock.unlink(missing_ok=True)
    return True


def _engines(backend_url: str) -> Iterator[int]:
    for process in psutil.process_iter(["name"]):
        try:
            writes = process.name() == "pulumi" and _WRITING & set(process.cmdline())
            if writes and process.environ().get("PULUMI_BACKEND_URL") == backend_url:
                yield process.pid
        # Others' processes are not ours to look into, and do not write to our backend with our rights.
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
