"""How often a program was started and how long it ran: from which its rate of interruption is estimated."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class History:
    """Carried in every marker. What ran after the last marker of a start is not in it, so the rate comes out a little high."""

    starts: int = 1
    running_seconds: float = 0.0

    @property
    def interruptions(self) -> int:
        """Every start but the first followed one."""
        return self.starts - 1

    def started_again(self) -> History:
        """At a resumption."""
        return replace(self, starts=self.starts + 1)

    def ran(self, seconds: float) -> History:
        """After having run so long since the start."""
        return replace(self, running_seconds=self.running_seconds + seconds)
