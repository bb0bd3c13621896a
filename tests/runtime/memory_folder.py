"""A folder without a disk: killing processes has the same effect on files there, and a thousand fsyncs cost nothing."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 -- made unguessable by tempfile


@contextmanager
def folder_in_memory() -> Generator[Path]:
    """Yield a folder in Linux's shared memory; on other systems an ordinary temporary folder."""
    parent = _SHARED_MEMORY if os.access(_SHARED_MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        yield Path(folder)
