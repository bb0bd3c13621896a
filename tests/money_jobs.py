"""Jobs for the tests of advice, with the prices of the course."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from flexspot.capacity.cost.costed_plan import MachinePrices
from flexspot.capacity.cost.estimates import JobNeeds

COURSE_P4D = MachinePrices(Decimal("32.77"), Decimal("12.50"))
"""Prices of p4d.24xlarge in the course."""

COURSE_A2 = MachinePrices(Decimal("29.39"), Decimal("8.82"))
"""Prices of a2-highgpu-8g in the course: Spot is 70 % off."""


def on_aws(**fields: Any) -> JobNeeds:
    """Return a job, by default of three days on one p4d.24xlarge."""
    return JobNeeds.model_validate({"cloud": "aws", "region": "us-east-1", "machine": "p4d.24xlarge", "work_hours": 72} | fields)


def on_gcp(**fields: Any) -> JobNeeds:
    """Return a job, by default of three days on one a2-highgpu-8g."""
    return JobNeeds.model_validate({"cloud": "gcp", "region": "us-central1", "machine": "a2-highgpu-8g", "work_hours": 72} | fields)
