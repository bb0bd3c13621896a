"""The state of a file backend: repair after an engine was killed while writing it, and locks of other runs."""

from __future__ import annotations

import json
import os
import shutil
import socket
from pathlib import Path
from typing import TYPE_CHECKING, cast

import psutil

if TYPE_CHECKING:
    from collections.abc import Iterator


SCHEME = "file://"

_CHECKPOINT_VERSION = 3
"""Supported format of a state file: CheckpointV3 and DeploymentV3 of sdk/go/common/apitype (3.259.0)."""


def state_file(backend_url: str | None, project: str, stack: str) -> Path | None:
    """Return the file in which a file backend keeps the state of a stack. None for another backend."""
    if backend_url is None or not backend_url.startswith(SCHEME):
        return None
    return Path(backend_url.removeprefix(SCHEME)) / ".pulumi" / "stacks" / project / f"{stack}.json"


def repair_state_file(backend_url: str | None, project: str, stack: str) -> str | None:
    """Repair a state that the engine cannot read because its file or its attributes were cut off.

    Next to each file the engine writes its attributes in place (`.attrs`: a content type and a checksum that it does not check). If they
    are cut off, it cannot read the file (`failed to load checkpoint: EOF`); without them it can. This happens when the engine is killed
    because its output closes with the command that started it. See setAttrs and getAttrs in gocloud.dev/blob/fileblob/attrs.go.

    The state file itself is written by a rename. A machine that loses power may do the rename before the content is on the disk. The copy
    that the engine makes before each write (`.bak`) then replaces it. Changes of the last write are found by looking at the cluster, as
    after any interruption. Returns a message for the user if the state was replaced, else None.
    """
    state = state_file(backend_url, project, stack)
    if state is None:
        return None
    for folder in (state.parents[2], state.parent):
        _remove_cut_off_attributes(folder)
    copy = state.with_name(f"{state.name}.bak")
    if not state.is_file() or _is_whole(state) or not _is_whole(copy):
        return None
    cut_off = state.with_name(f"{state.name}.cut-off")
    state.replace(cut_off)
    # Copied under another name first, so that an interruption here leaves no partial state file.
    fresh = state.with_name(f"{state.name}.fixed")
    shutil.copyfile(copy, fresh)
    os.replace(fresh, state)  # noqa: PTH105 -- one step, over whatever is there
    return f"An earlier run was killed while it wrote the state. The state before is used; the incomplete one is in {cut_off.name}.\n"


def may_have_pending_operations(backend_url: str | None, project: str, stack: str) -> bool:
    """Return False only if the state file is local and lists no pending operations, which an interrupted run leaves.

    For other backends only the engine knows. Its answer takes a second of CPU, because it decrypts the state. In the file, pending
    operations are not encrypted.
    """
    state = state_file(backend_url, project, stack)
    if state is None:
        return True
    content = _content(state)
    latest = _part(_part(content, "checkpoint"), "latest")
    if _part(content, "version") != _CHECKPOINT_VERSION or not isinstance(_part(latest, "resources"), list):
        return True
    return bool(_part(latest, "pending_operations"))


def deployed_resources(backend_url: str | None, project: str, stack: str) -> int | None:
    """Return the number of resources in the state, 0 without a state. None if the backend is not in files."""
    state = state_file(backend_url, project, stack)
    if state is None:
        return None
    content = _content(state)
    resources = _part(_part(_part(content, "checkpoint"), "latest"), "resources")
    return len(cast("list[object]", resources)) if isinstance(resources, list) else 0


def _part(content: object, key: str) -> object:
    return cast("dict[str, object]", content).get(key) if isinstance(content, dict) else None


def _remove_cut_off_attributes(folder: Path) -> None:
    for path in folder.glob("*.attrs"):
        if not isinstance(_content(path), dict):
            path.unlink(missing_ok=True)


def _is_whole(path: Path) -> bool:
    content = _content(path)
    return isinstance(content, dict) and "checkpoint" in content


def _content(path: Path) -> object:
    """Return the content of a JSON file. None if it does not exist or is not JSON."""
    try:
        return json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return None


_WRITING = frozenset({"up", "destroy", "refresh"})


def other_runs(backend_url: str | None) -> set[int]:
    """Return the processes of this machine that may be writing state to `backend_url`. Empty for a backend that is not in files.

    A lock whose process has ended is removed. An engine whose command was killed releases its lock before its last write of the state has
    ended. So engines that change a stack of this backend count without a lock too.
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
    """Return whether the process that created the lock has ended; the lock is then removed."""
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
        # Processes of other users are not readable, and have no permission to write to this backend.
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
