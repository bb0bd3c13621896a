"""Maintenance windows and exclusions of GKE clusters."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from flexspot.capacity.settings.maintenance import Maintenance, Weekday

RELEASE = {"name": "release", "starts": "2026-12-20", "ends": "2027-01-04"}


@pytest.mark.parametrize(
    "written,refused",
    [
        ({"days": ["sat"]}, "4 hours on sat are 16 hours in 32 days, and GKE requires 48; use 12 hours, or more days"),
        ({"days": ["sat"], "hours": 12}, None),
        ({"days": ["sat", "sun"], "hours": 5}, "use 6 hours"),
        ({"days": ["sat", "sun"], "hours": 6}, None),
        ({"days": ["mon", "wed", "fri"]}, None),
        ({"days": ["sat", "sat"], "hours": 12}, "days contains the same day twice"),
        ({"exclusions": [RELEASE, RELEASE]}, "the same name"),
        ({"exclusions": [RELEASE | {"ends": "2026-12-20"}]}, "not after"),
        ({"exclusions": [RELEASE | {"starts": "2026-02-30"}]}, "not a day of the calendar"),
        ({"exclusions": [{"name": "release", "starts": "2026-12-20"}]}, "requires ends"),
        ({"exclusions": [{"name": "release", "starts": "2026-12-20", "scope": "no_minor_upgrades"}]}, None),
        ({"exclusions": [RELEASE | {"name": f"release-{number}"} for number in range(21)]}, "at most 20"),
    ],
)
def test_windows_and_exclusions_that_gke_refuses_are_refused(written: dict[str, Any], refused: str | None) -> None:
    if refused is None:
        Maintenance.model_validate(written)
        return
    with pytest.raises(ValidationError, match=refused):
        Maintenance.model_validate(written)


@pytest.mark.parametrize(
    "days,hours", [((), 24), (("sat",), 168), (("sat", "sun"), 144), (("mon", "thu"), 96), (("sun", "mon"), 144), (tuple(Weekday), 24)]
)
def test_the_longest_time_between_windows_may_span_the_end_of_the_week(days: tuple[str, ...], hours: int) -> None:
    assert Maintenance.model_validate({"days": days, "hours": 12}).hours_between_windows == hours
