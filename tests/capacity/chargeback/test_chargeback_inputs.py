"""Months and their clocks, the queries to Prometheus, and the costs that users add."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import promql_parser
import pytest

from flexspot.capacity.catalog.data_files import DataFileError
from flexspot.capacity.chargeback.queries import Question, queries
from flexspot.capacity.chargeback.report import read_extra_costs
from flexspot.capacity.chargeback.samples import Period, PeriodError, month_period, period_between

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "month,timezone,hours",
    [
        ("2026-10", "UTC", 744),
        ("2026-10", "Europe/Berlin", 745),
        ("2026-03", "Europe/Berlin", 743),
        ("2026-03", "America/New_York", 743),
        ("2026-12", "Asia/Kolkata", 744),
        ("2028-02", "UTC", 696),
    ],
)
def test_a_month_is_as_long_as_its_clocks_say(month: str, timezone: str, hours: int) -> None:
    period = month_period(month, timezone)

    assert period.seconds == hours * 3600
    assert sum(end - start for start, end in period.slices(86_400)) == period.seconds


def test_moments_are_of_the_time_zone_unless_they_say_so() -> None:
    assert period_between("2026-10-01", "2026-10-02T01:00+02:00", "Europe/Berlin").seconds == 25 * 3600


@pytest.mark.parametrize(
    "month,timezone", [("2026-13", "UTC"), ("October", "UTC"), ("0001-01", "UTC"), ("2026-10", "Mars/Base"), ("2026-10", "../x")]
)
def test_an_invalid_month_or_time_zone_is_refused_with_what_is_allowed(month: str, timezone: str) -> None:
    with pytest.raises(PeriodError, match="write"):
        month_period(month, timezone)


@pytest.mark.parametrize("start,end", [("2026-10-02", "2026-10-01"), ("yesterday", "2026-10-01")])
def test_an_invalid_period_is_refused(start: str, end: str) -> None:
    with pytest.raises(PeriodError):
        period_between(start, end, "UTC")


def test_a_month_is_counted_until_now_and_a_future_one_is_refused() -> None:
    period = Period(100, 200, "2026-10", "UTC")

    assert period.until(150).end == 150
    assert period.until(500) == period
    with pytest.raises(PeriodError, match="has not begun"):
        period.until(100)


@pytest.mark.parametrize("match", ["", 'cluster="prod"'])
def test_every_question_is_promql(match: str) -> None:
    found = queries(match)

    assert [each.question for each in found] == list(Question)
    for each in found:
        promql_parser.parse(each.expression)
        assert match in each.expression


def test_questions_keep_clear_of_the_known_traps() -> None:
    text = {each.question: each.expression for each in queries()}

    # Amounts are summed over pods that have not ended. DCGM's series have no node. A label of a Job's own pod is not the exporter's.
    assert "count" not in " ".join(text.values())
    assert 'kube_pod_status_phase{phase=~"Pending|Running"} == 1' in text[Question.ALLOCATIONS]
    assert "node" not in text[Question.UTILISATION]
    assert "exported_pod" in text[Question.UTILISATION]


def test_costs_of_storage_and_egress_are_read_or_refused_all_at_once(tmp_path: Path) -> None:
    path = tmp_path / "storage.yaml"
    path.write_text(
        "costs:\n- {team: vision, kind: storage, usd: '12.30', what: bucket}\n- {team: speech, kind: egress, usd: 4, project: asr}\n"
    )
    assert [(each.team, each.usd) for each in read_extra_costs(path)] == [("vision", Decimal("12.30")), ("speech", Decimal(4))]

    path.write_text("costs:\n- {team: vision, kind: disks, usd: -1}\n")
    with pytest.raises(DataFileError, match="2 problem"):
        read_extra_costs(path)
