"""What rules see of a shipped stack: everything that the program declares for it, read as the policy pack reads it. Not a test."""

from __future__ import annotations

from functools import cache

from planted_defects import resources_of

from flexspot.policies.core import Reading, read_source
from flexspot.policies.inventory.reading.source import from_pulumi


@cache
def readings_of(stack: str) -> tuple[Reading, ...]:
    """Return the readings of what a shipped stack declares."""
    found = (read_source(from_pulumi(kind, name, inputs)) for name, (kind, inputs) in resources_of(stack).items())
    return tuple(reading for reading in found if reading.views)
