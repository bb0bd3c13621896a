"""How a process that was interrupted ends."""

from __future__ import annotations

INTERRUPTED_EXIT_CODE = 143
"""128 and the number of SIGTERM, which is what a shell reports of a process that the signal ended.

Never 0 for a trainer: a Job with podFailurePolicy counts a pod that exits 0 as done, and is Complete with the work unfinished.
"""


class Interrupted(SystemExit):
    """Ends the process with 143 unless it is caught. A SystemExit, so `finally` blocks run and nothing is printed."""

    def __init__(self, source: str, step: int) -> None:
        super().__init__(INTERRUPTED_EXIT_CODE)
        self.source = source
        """What told of the interruption: SIGTERM, or the name of a notice."""
        self.step = step
        """Steps done, whether or not they could be saved."""
