"""Every planted defect. Not a test.

A new rule needs a row in one of the lists here, or stands in WITHOUT_DEFECT with the reason: what it looks at is in no shipped stack and
cannot be added to one. Both clouds have a row where they write the same thing each in its own way; else one will do, since each row is a
preview of its own.
"""

from __future__ import annotations

from planted_capacity_defects import CAPACITY_DEFECTS
from planted_defects import DEFECTS
from planted_platform_defects import PLATFORM_DEFECTS
from planted_workload_defects import WORKLOAD_DEFECTS

EVERY_DEFECT = [*DEFECTS, *CAPACITY_DEFECTS, *WORKLOAD_DEFECTS, *PLATFORM_DEFECTS]

WITHOUT_DEFECT: dict[str, str] = {}
"""Rules that no row can be about, each with the reason."""
