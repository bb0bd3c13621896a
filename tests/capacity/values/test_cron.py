"""Cron schedules as Karpenter parses them. The invalid ones are those of robfig/cron's own tests and bounds (v3, parser_test.go)."""

from __future__ import annotations

import pytest

from flexspot.capacity.values.cron import cron_problem


@pytest.mark.parametrize(
    "schedule",
    ["0 8 * * mon-fri", "*/15 0-6,18-23 1 jan-mar,12 0", "5-7/2 * ? * MON,Wed", "59 23 31 12 6", "0 0 1 * *", "1,5-7/2,3 8/4 * * *"],
)
def test_schedules_that_karpenter_parses_are_valid(schedule: str) -> None:
    assert cron_problem(schedule) is None


@pytest.mark.parametrize(
    "schedule,problem",
    [
        ("0 8 * *", "it has 4 fields"),
        ("0 8 * * * *", "it has 6 fields"),
        ("60 8 * * *", "minute 60 is not within 0 to 59"),
        ("0 24 * * *", "hour 24 is not within 0 to 23"),
        ("0 8 0 * *", "day of the month 0 is not within 1 to 31"),
        ("0 8 * 13 *", "month 13 is not within 1 to 12 or jan to dec"),
        ("0 8 * * 7", "day of the week 7 is not within 0 to 6 or sun to sat"),
        ("0 8 * * mon-fri-two", "day of the week mon-fri-two is not a value, range or step"),
        ("0 8 * * mun", "day of the week mun is not within"),
        ("0 8 * * sat-sun", "goes from high to low; write two, such as sat,sun"),
        ("0 18-6 * * *", "hour 18-6 goes from high to low"),
        ("*/0 8 * * *", "minute */0 has a step of 0"),
        ("*//2 8 * * *", "minute *//2 is not a value"),
        ("5--5 8 * * *", "minute 5--5 is not a value"),
        ("1,,2 8 * * *", "minute 1,,2 is not a value"),
        ("mon 8 * * *", "minute mon is not within 0 to 59"),
    ],
)
def test_an_invalid_schedule_is_reported_with_its_field(schedule: str, problem: str) -> None:
    assert problem in (cron_problem(schedule) or "")
