"""Why a program that was started does not answer, for the person who started it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lab.errors import LabError
from lab.processes import log_tail

if TYPE_CHECKING:
    from lab.home import LabHome
    from lab.part import Part

READY_SECONDS = 120.0
"""How long a part may take until it answers."""

POLL_SECONDS = 0.1

PORT_ATTEMPTS = 3
"""How often ports are chosen before a person is asked: between choosing one and listening on it another program can be quicker."""


class PortTakenError(Exception):
    """A part found its port in use."""

    def again_and_again(self) -> LabError:
        """The error to raise after the last attempt."""
        return LabError(f"{self}, {PORT_ATTEMPTS} times in a row.", "free some ports on loopback and start again.")


def why_it_ended(home: LabHome, part: Part, remedy: str) -> PortTakenError | LabError:
    """The error for a part that ended while it was starting; `remedy` is what to do after its log was read."""
    lines = log_tail(home, part.name)
    if any("address already in use" in line for line in lines):
        return PortTakenError(f"{part.name} found its port taken by another program")
    told = f"{part.name} ended while it was starting. Its last lines:"
    return LabError(told, f"read {home.log(part.name)}, then {remedy}.", evidence=lines)


def never_ready(home: LabHome, part: Part) -> LabError:
    """The error for a part that lives and does not answer."""
    return LabError(
        f"{part.name} was not ready within {READY_SECONDS:.0f} s ({part.probe}). Its last lines:",
        f"read {home.log(part.name)}; on a busy machine, start again.",
        evidence=log_tail(home, part.name),
    )
