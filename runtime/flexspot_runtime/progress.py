"""The progress file: how far a run is, for people, for other containers of the pod and for the run's next start."""

from __future__ import annotations

import json
import logging
import math
from typing import TYPE_CHECKING, Any, cast

from flexspot_runtime.storage import Storage, read_whole

if TYPE_CHECKING:
    from flexspot_runtime.clock import Clock
    from flexspot_runtime.status import RunStatus

_LOG = logging.getLogger("flexspot_runtime")


class ProgressFile:
    """A JSON object of a run's figures, written at most every `every_seconds` and at every change of phase.

    It is told of, never relied on: a run goes on when it cannot be written, and resumes from its checkpoints when it cannot be read.
    """

    def __init__(self, storage: Storage, name: str = "progress.json", *, every_seconds: float = 10.0) -> None:
        self.storage = storage
        self.name = name
        self.every_seconds = every_seconds
        self._written_at = -math.inf

    def due(self, now: float) -> bool:
        """Whether it is time to write it again."""
        return now - self._written_at >= self.every_seconds

    def write(self, status: RunStatus, clock: Clock) -> None:
        """Writes it now."""
        now = clock.monotonic()
        self._written_at = now
        body = {
            "phase": status.phase,
            "written_at_unix_seconds": clock.wall(),
            "notice": status.notice.source if status.notice else None,
            "last_failure": status.last_failure,
            **status.gauges(now),
        }
        try:
            self.storage.publish(self.name, (json.dumps(body, indent=1) + "\n").encode())
        except OSError as error:
            _LOG.warning("%s could not be written: %s", self.name, error)

    def last_step(self) -> int | None:
        """How far an earlier start came, as far as it told; None when nothing can be read."""
        try:
            body: Any = json.loads(read_whole(self.storage, self.name))
        except (OSError, ValueError):
            return None
        step = cast("dict[str, Any]", body).get("step") if isinstance(body, dict) else None
        return int(step) if isinstance(step, int | float) else None
