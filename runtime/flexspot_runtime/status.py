"""Status of a run: the progress file, and metrics for Prometheus."""

from __future__ import annotations

import json
import logging
import math
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, cast

from flexspot_runtime.schedule import SYSTEM_CLOCK, Clock
from flexspot_runtime.storage import Storage, read_whole

if TYPE_CHECKING:
    from collections.abc import Generator

    from flexspot_runtime.interruption import Notice


_LOG = logging.getLogger("flexspot_runtime")


class ProgressFile:
    """A JSON object with a run's metrics, written at most every `every_seconds` and at every change of phase.

    For reports only: a run continues when the file cannot be written, and resumes from its checkpoints when it cannot be read.
    """

    def __init__(self, storage: Storage, name: str = "progress.json", *, every_seconds: float = 10.0) -> None:
        self.storage = storage
        self.name = name
        self.every_seconds = every_seconds
        self._written_at = -math.inf

    def due(self, now: float) -> bool:
        """Return whether the file is due to be written again."""
        return now - self._written_at >= self.every_seconds

    def write(self, status: RunStatus, clock: Clock) -> None:
        """Write the file now."""
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
        """Return the last step that an earlier start reported, or None if nothing can be read."""
        try:
            body: Any = json.loads(read_whole(self.storage, self.name))
        except (OSError, ValueError):
            return None
        step = cast("dict[str, Any]", body).get("step") if isinstance(body, dict) else None
        return int(step) if isinstance(step, int | float) else None


PREFIX = "flexspot_training_"


def render(status: RunStatus, now: float) -> str:
    """Return the text that Prometheus scrapes. `now` is of the run's clock."""
    lines: list[str] = []
    for name, value in status.gauges(now).items():
        kind = "counter" if name.endswith("_total") else "gauge"
        lines += [f"# TYPE {PREFIX}{name} {kind}", f"{PREFIX}{name} {value:.17g}"]
    return "\n".join(lines) + "\n"


@contextmanager
def served(status: RunStatus, port: int, *, address: str = "", clock: Clock = SYSTEM_CLOCK) -> Generator[int]:
    """Serve /metrics inside the `with` block. Yield the port, which is chosen for `port` 0. Raises OSError when the port is taken."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = render(status, clock.monotonic()).encode() if self.path == "/metrics" else b"/metrics is here\n"
            self.send_response(200 if self.path == "/metrics" else 404)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the server's own name
            """Do nothing: a line for every scrape would drown the trainer's log."""

    server = ThreadingHTTPServer((address, port), Handler)
    thread = threading.Thread(target=server.serve_forever, name="flexspot-metrics", daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Phase(StrEnum):
    """Phase of a run."""

    RESUMING = "resuming"
    """Searching for a checkpoint, verifying and loading it."""

    TRAINING = "training"
    """Doing steps."""

    INTERRUPTED = "interrupted"
    """Ended by a warning before all steps were done."""

    COMPLETED = "completed"
    """All steps done and saved."""


@dataclass
class RunStatus:
    """The state of a run. Only the run writes it. Times are a clock's `monotonic`."""

    started_at: float
    phase: Phase = Phase.RESUMING
    step: int = 0
    total_steps: int | None = None
    saved_step: int = 0
    saved_at: float | None = None
    """Time at which the newest checkpoint was saved or, at a resumption, loaded; None if there is none."""

    saves: int = 0
    failed_saves: int = 0
    last_failure: str | None = None
    checkpoint_seconds: float | None = None
    interval_seconds: float | None = None
    lost_steps: int = 0
    """Steps that an earlier start had done and that are repeated. Known only with a progress file."""

    interruptions: int = 0
    notice: Notice | None = None

    def gauges(self, now: float) -> dict[str, float]:
        """Return all metrics by name, with their units in the names. Unknown values are omitted."""
        at_risk_since = self.started_at if self.saved_at is None else self.saved_at
        known: dict[str, float | None] = {
            "step": self.step,
            "total_steps": self.total_steps,
            "checkpoint_step": self.saved_step,
            "checkpoint_age_seconds": None if self.saved_at is None else now - self.saved_at,
            "unsaved_steps": self.step - self.saved_step,
            "unsaved_seconds": now - at_risk_since if self.step > self.saved_step else 0.0,
            "checkpoints_total": self.saves,
            "checkpoint_failures_total": self.failed_saves,
            "checkpoint_duration_seconds": self.checkpoint_seconds,
            "checkpoint_interval_seconds": self.interval_seconds,
            "lost_steps": self.lost_steps,
            "interruptions_total": self.interruptions,
            "notice_received": 0.0 if self.notice is None else 1.0,
            "notice_remaining_seconds": None if self.notice is None else max(0.0, self.notice.deadline - now),
        }
        return {name: float(value) for name, value in known.items() if value is not None}
