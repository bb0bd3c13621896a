"""What ends the pack when the engine is no more: an engine that is killed ends none of the processes that it started."""

from __future__ import annotations

import os
import threading
import time

_SECONDS = 1.0


def end_with_parent() -> None:
    """Watches from now on whether the process that started this one is still its parent, and ends this one at once when it is not.

    Where an orphan keeps its parent's number (Windows), this sees nothing.
    """
    threading.Thread(target=_watch, args=(os.getppid(),), daemon=True, name="end-with-parent").start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_SECONDS)
    os._exit(0)
