"""A shipped stack's declarations, read as the policy pack reads them. Not a test."""

from __future__ import annotations

from functools import cache

from planted_defects import resources_of

from flexspot.policies.core import Reading, read_source
from flexspot.policies.inventory.reading.source import from_pulumi


@cache
def readings_of(stack: str) -> tuple[Reading, ...]:
    """Return the readings of a shipped stack's declarations."""
    found = (read_source(from_pulumi(kind, name, inputs)) for name, (kind, inputs) in resources_of(stack).items())
    return tuple(reading for reading in found if reading.views)
