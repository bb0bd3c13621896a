"""What a run tells about itself: the progress file and the metrics are made of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flexspot_runtime.interruption import Notice


class Phase(StrEnum):
    """Where a run is."""

    RESUMING = "resuming"
    """Looking for a checkpoint, verifying and loading it."""

    TRAINING = "training"
    """Doing steps."""

    INTERRUPTED = "interrupted"
    """Ended by a warning before all steps were done."""

    COMPLETED = "completed"
    """All steps done and saved."""


@dataclass
class RunStatus:
    """The state of a run; written by the run alone. Times are of a clock's `monotonic`."""

    started_at: float
    phase: Phase = Phase.RESUMING
    step: int = 0
    total_steps: int | None = None
    saved_step: int = 0
    saved_at: float | None = None
    """When the newest checkpoint was made or, at a resumption, loaded; None when there is none."""

    saves: int = 0
    failed_saves: int = 0
    last_failure: str | None = None
    checkpoint_seconds: float | None = None
    interval_seconds: float | None = None
    lost_steps: int = 0
    """Steps that an earlier start had done and that are done again; known only when there is a progress file."""

    interruptions: int = 0
    notice: Notice | None = None

    def gauges(self, now: float) -> dict[str, float]:
        """All figures by name, with their units in the names; what is not known is left out."""
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
