"""What processes leave behind for the launcher above them: a launcher in between, such as torchrun, keeps their exit codes to itself."""

from __future__ import annotations

import logging
import os
from pathlib import Path

_LOG = logging.getLogger("flexspot_runtime")

MARKS_VARIABLE = "FLEXSPOT_MARKS"
"""A folder of the launcher's, for its processes and theirs."""


def mark_interrupted(source: str) -> None:
    """Says that this process ends because of an interruption, here or elsewhere. Without a launcher there is nobody to tell."""
    folder = os.environ.get(MARKS_VARIABLE)
    if not folder:
        return
    ranks = os.environ.get("LOCAL_WORLD_SIZE") or "1"
    rank = os.environ.get("LOCAL_RANK") or "0"
    try:
        Path(folder, f"{rank}-of-{ranks}").write_text(source)
    except OSError as error:
        _LOG.warning("the launcher cannot be told of the interruption: %s", error)


def all_were_interrupted(folder: Path) -> bool:
    """Whether every rank of this machine said so.

    One that crashed said nothing, and what the others then say, because they lost it or were told to stop, is a consequence.
    """
    marks = {path.name for path in folder.glob("*-of-*")}
    sizes = {int(name.partition("-of-")[2]) for name in marks}
    return any(marks >= {f"{rank}-of-{size}" for rank in range(size)} for size in sizes)
