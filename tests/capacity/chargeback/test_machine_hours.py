"""Number of running machines by hour, from Prometheus and from files."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from chargeback_months import HOUR, STEP, Month
from hypothesis import given, settings
from hypothesis import strategies as st

from flexspot.capacity.chargeback.machine_hours import (
    MachineHours,
    MachineHoursReader,
    MachineKind,
    machine_hours_csv,
    node_queries,
    read_machine_hours,
)
from flexspot.capacity.values.errors import ExplainedError

if TYPE_CHECKING:
    from pathlib import Path

P4D = MachineKind("p4d.24xlarge", "us-east-1", "on-demand")
SPOT = MachineKind("p4d.24xlarge", "us-east-1", "spot")


def read(month: Month, slice_seconds: int = 24 * HOUR, missing: tuple[tuple[int, int], ...] = ()) -> MachineHours:
    reader = MachineHoursReader(month.period, STEP)
    for start, end in month.period.slices(slice_seconds):
        reader.take(month.answers(start, end, missing))
    return reader.close()


def test_nodes_are_counted_by_the_clock_hour_by_machine_and_by_how_they_were_bought() -> None:
    month = Month(hours=3)
    month.node("system", 0, 3 * HOUR, machine="m6i.large", bought="on-demand")
    month.node("steady", 0, 3 * HOUR, bought="on-demand")
    month.node("burst", HOUR + 900, 2 * HOUR, bought="on-demand")
    month.node("spare", 2 * HOUR, 3 * HOUR)
    found = read(month)

    assert len(found.hours) == 3
    assert found.of(P4D) == [1, Fraction(7, 4), 1]
    assert found.of(SPOT) == [0, 0, 1]
    assert found.notes == []


def test_an_hour_with_a_gap_in_the_samples_is_missing_and_not_without_nodes() -> None:
    month = Month(hours=6)
    month.node("steady", 0, 6 * HOUR, bought="on-demand")
    found = read(month, missing=((2 * HOUR + 60, 2 * HOUR + 1800), (4 * HOUR, 4 * HOUR + 240)))

    assert [(hour - month.period.start) // HOUR for hour in found.hours] == [0, 1, 3, 4, 5], "four missing samples are bridged"
    assert (found.span, found.missing) == (6, 1)
    assert found.of(P4D) == [1] * 5


def test_nodes_without_a_machine_label_are_reported_with_the_remedy() -> None:
    month = Month(hours=1)
    month.seen(next(iter(node_queries())).question, {"node": "bare", "provider_id": "x"}, 0, HOUR)
    found = read(month)

    assert [kind.machine for kind in found.nodes] == ["(unknown)"]
    assert "--metric-labels-allowlist" in found.notes[0]


MINUTES = st.integers(0, 6 * 60)


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(MINUTES, MINUTES, st.booleans()), max_size=7), st.sampled_from([HOUR, 5400, 24 * HOUR]))
def test_the_count_agrees_with_counting_minute_by_minute(spans: list[tuple[int, int, bool]], slice_seconds: int) -> None:
    month = Month(hours=6)
    month.node("always", 0, 6 * HOUR, machine="m6i.large", bought="on-demand")
    minutes: defaultdict[tuple[int, bool], int] = defaultdict(int)
    for number, (start, end, is_spot) in enumerate(spans):
        month.node(f"n{number}", start * 60, end * 60, bought="spot" if is_spot else "on-demand")
        for minute in range(start, end):
            minutes[minute // 60, is_spot] += 1
    found = read(month, slice_seconds)

    for is_spot, kind in ((True, SPOT), (False, P4D)):
        assert found.of(kind) == [Fraction(minutes[hour, is_spot], 60) for hour in range(6)]


START = 1_790_812_800
SECONDS = st.tuples(st.integers(0, 9000), st.integers(1, 9000))


@settings(deadline=None, max_examples=40)
@given(st.dictionaries(st.integers(0, 400), SECONDS, min_size=1, max_size=20))
def test_a_history_that_was_written_is_read_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, seconds: dict[int, tuple[int, int]]
) -> None:
    parts = {START + each * HOUR: seconds[each] for each in sorted(seconds)}
    nodes = {kind: {hour: Fraction(each[place], HOUR) for hour, each in parts.items()} for place, kind in enumerate((P4D, SPOT))}
    path = tmp_path_factory.mktemp("history") / "hours.csv"
    path.write_text(machine_hours_csv(MachineHours(tuple(parts), nodes)))

    assert read_machine_hours([path]) == MachineHours(tuple(parts), nodes)


HEADER = "hour,region,machine,capacity_type,nodes\n"
ROW = "2026-10-01T08:00Z,us-east-1,p4d.24xlarge,on-demand,2\n"


def test_files_of_two_months_are_one_history_and_hours_are_in_utc_where_they_say_no_other(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(HEADER + ROW)
    more = ("2026-10-01T12:00:00+02:00,us-east-1,p4d.24xlarge,on-demand,2.5", "2026-10-01T09:00,us-east-1,p4d.24xlarge,spot,1")
    (tmp_path / "b.csv").write_text(HEADER + "\n".join(more))
    found = read_machine_hours([tmp_path / "b.csv", tmp_path / "a.csv"])

    assert found.of(P4D) == [2, 0, Fraction(5, 2)], "an hour with a row for Spot was observed"
    assert found.missing == 0


@pytest.mark.parametrize(
    "text,problem",
    [
        ("a,b\n", "other columns"),
        (HEADER, "no hours"),
        (HEADER + ROW + ROW, r"line 3: the hour .* appears twice"),
        (HEADER + ROW.replace("08:00Z", "08:30Z"), "line 2: '2026-10-01T08:30Z' is no start of a clock-hour"),
        (HEADER + ROW.replace("2026-10-01T08:00Z", "soon"), "'soon' is no start"),
        (HEADER + ROW.replace(",2\n", ",-1\n"), "'-1' is not a number of nodes"),
        (HEADER + ROW.replace(",2\n", ",nan\n"), "'nan' is not a number of nodes"),
        (HEADER + ROW.replace(",2\n", ",two\n"), "'two' is not a number of nodes"),
        (HEADER + ROW.replace("on-demand", "cheap"), "'cheap' are not machine, region and capacity type"),
        (HEADER + ROW.replace(",2\n", "\n"), "line 2: it has not 5 fields"),
        (HEADER + ROW.replace(",2\n", ",2,3\n"), "line 2: it has not 5 fields"),
        (HEADER + '"2026\n', "line"),
    ],
)
def test_an_unusable_file_is_reported_with_its_line(text: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "hours.csv").write_text(text)

    with pytest.raises(ExplainedError, match=problem):
        read_machine_hours([tmp_path / "hours.csv"])
