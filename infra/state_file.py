"""The state file of a file backend, after an engine that was killed while it wrote it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

SCHEME = "file://"


def mend_state_file(backend_url: str | None, project: str, stack: str) -> str | None:
    """Puts the engine's own copy of the state before the last write in place of a state that was cut off.

    The engine writes the file in place: one that is killed meanwhile (its output closed with the command that started it) leaves a part of
    it, which no engine reads. Before each write it copies the file to `.bak`. What the last write would have added is found by looking at
    the cluster, as after any interruption. Returns what to tell the person; None when the state is whole, or is not in files.
    """
    if backend_url is None or not backend_url.startswith(SCHEME):
        return None
    state = Path(backend_url.removeprefix(SCHEME)) / ".pulumi" / "stacks" / project / f"{stack}.json"
    copy = state.with_name(f"{state.name}.bak")
    if not state.is_file() or _is_whole(state) or not _is_whole(copy):
        return None
    cut_off = state.with_name(f"{state.name}.cut-off")
    state.replace(cut_off)
    # By way of another name, so that an interruption here leaves no half of a copy.
    fresh = state.with_name(f"{state.name}.mended")
    shutil.copyfile(copy, fresh)
    os.replace(fresh, state)  # noqa: PTH105 -- one step, over whatever is there
    return f"An earlier run was killed while it wrote the state; the state before that is used, the rest is kept in {cut_off.name}.\n"


def _is_whole(path: Path) -> bool:
    try:
        content = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return False
    return isinstance(content, dict) and "checkpoint" in content
