"""The state of a file backend: after an engine that was killed while it wrote it, and while other runs hold its lock."""

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
"""The form of a state's file whose open steps are read here: CheckpointV3 and DeploymentV3 of sdk/go/common/apitype (3.259.0)."""


def state_file(backend_url: str | None, project: str, stack: str) -> Path | None:
    """Return where a file backend keeps the state of a stack; None for another backend."""
    if backend_url is None or not backend_url.startswith(SCHEME):
        return None
    return Path(backend_url.removeprefix(SCHEME)) / ".pulumi" / "stacks" / project / f"{stack}.json"


def repair_state_file(backend_url: str | None, project: str, stack: str) -> str | None:
    """Takes away what keeps the engine from reading its state: attributes that were cut off, and a state that was.

    Beside each file the engine writes its attributes (`.attrs`: a content type and a checksum that it does not check), in place, and with
    half of them it reads the file no more (`failed to load checkpoint: EOF`); without them it does. An engine is killed meanwhile when the
    output closes with the command that started it. See setAttrs and getAttrs in gocloud.dev/blob/fileblob/attrs.go.
    The file itself is put in its place by a rename, which a machine that loses its power may do before the content is on the disk; the
    copy that the engine makes before each write (`.bak`) then takes its place. What the last write would have added is found by looking
    at the cluster, as after any interruption. Returns what to tell the person of a state that was replaced; else None.
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
    # By way of another name, so that an interruption here leaves no half of a copy.
    fresh = state.with_name(f"{state.name}.fixed")
    shutil.copyfile(copy, fresh)
    os.replace(fresh, state)  # noqa: PTH105 -- one step, over whatever is there
    return f"An earlier run was killed while it wrote the state; the state before that is used, the rest is kept in {cut_off.name}.\n"


def may_be_open(backend_url: str | None, project: str, stack: str) -> bool:
    """Whether an interrupted run may have left steps open: not if the file of the state is here and has none, else only the engine knows.

    To ask the engine takes it a second of CPU, for it decrypts the state; in the file open steps stand in the clear.
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
    """Return how many resources the state has, 0 without one; None where it is not in a file here."""
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
    """What a JSON file holds; None when it is not there or is no JSON."""
    try:
        return json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return None


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
