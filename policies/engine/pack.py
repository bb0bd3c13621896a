"""The policy pack as Pulumi's engine runs it, and its end when the engine is no more."""

from __future__ import annotations

import os
import threading
import time

from pulumi_policy import EnforcementLevel, PolicyPack

from policies.engine.gate import Gate

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


NAME = "flexspot"


def serve() -> None:
    """Serves the pack to the engine that started this process, until either is ended. The first line on stdout is the port."""
    end_with_parent()
    PolicyPack(
        name=NAME,
        policies=Gate().policies(),
        enforcement_level=EnforcementLevel.ADVISORY,
        description="Rules that keep GPU capacity on GKE and EKS finite, reserved for GPU work, and accounted for.",
        display_name="Flexspot",
    )
