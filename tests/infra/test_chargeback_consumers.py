"""The workloads and users that cost most, as a person, a spreadsheet, a program and a browser meet them."""

from __future__ import annotations

import csv
import io
import json
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from chargeback_months import HOUR, Month
from fake_prometheus import FakePrometheus, reported, served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow

DAY = ("--from", "2026-10-01", "--to", "2026-10-02")
HOSTILE = "<img src=x onerror=alert(1)>"
FORMULA = "=cmd|' /C calc'!A0"


@pytest.fixture
def prometheus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakePrometheus]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    month = Month()
    month.node("spot-1", 0, 24 * HOUR)
    month.node(
        "system", 0, 24 * HOUR, gpus=0, labels={"node.kubernetes.io/instance-type": "m6i.xlarge", "karpenter.sh/capacity-type": "on-demand"}
    )
    month.pod("big", "spot-1", 0, 12 * HOUR, gpus=4, labels={"flexspot.dev/user": "ana"})
    month.pod("small", "spot-1", 0, 12 * HOUR, gpus=1, labels={"flexspot.dev/user": FORMULA})
    month.pod("least", "spot-1", 0, 6 * HOUR, gpus=1, controller=f"Job/{HOSTILE}")
    month.pod("other", "spot-1", 12 * HOUR, 24 * HOUR, gpus=2, team="speech")
    with served(FakePrometheus(month)) as found:
        yield found


def test_a_program_gets_rows_that_sum_to_what_each_team_pays(prometheus: FakePrometheus) -> None:
    report = json.loads(reported(prometheus, *DAY, "--format", "json", "--idle", "proportional", "--top", "1"))

    teams = {each["team"]: each for each in report["by"]["team"]}
    assert [each["team"] for each in report["top_consumers"]] == ["vision", "speech"]
    for each in report["top_consumers"]:
        total = Decimal(teams[each["team"]]["total_usd"])
        assert Decimal(each["total_usd"]) == total
        for rows, others in ((each["workloads"], each["other_workloads"]), (each["users"], each["other_users"])):
            assert len(rows) == 1
            assert sum(Decimal(row["usd"]) for row in (*rows, others)) + Decimal(each["idle_usd"]) == total
    vision = report["top_consumers"][0]
    first = vision["workloads"][0]
    assert (first["kind"], first["namespace"], first["name"], first["gpu_hours"]) == ("Job", "ns-vision", "big", 48.0)
    assert (first["measured_gpu_hours"], first["used_gpu_hours"], first["unpriced_gpu_hours"]) == (0.0, None, 0.0)
    assert (vision["users"][0]["user"], vision["other_workloads"]["count"]) == ("ana", 2)


def test_a_spreadsheet_gets_rows_that_sum_to_what_the_nodes_cost_and_runs_no_formula(prometheus: FakePrometheus) -> None:
    report = json.loads(reported(prometheus, *DAY, "--format", "json", "--idle", "central"))
    rows = list(csv.DictReader(io.StringIO(reported(prometheus, *DAY, "--format", "consumers", "--idle", "central", "--top", "2"))))

    assert sum(Decimal(row["usd"]) for row in rows) == Decimal(report["node_usd"])
    assert [(row["team"], row["row"], row["consumers"]) for row in rows if row["team"] == "vision"] == [
        ("vision", "consumer", "1"),
        ("vision", "consumer", "1"),
        ("vision", "others", "1"),
    ]
    assert {row["user"] for row in rows if row["row"] == "consumer"} == {"ana", f"'{FORMULA}", "(no user)"}
    assert {(row["team"], row["row"]) for row in rows} >= {("(central)", "idle"), ("(platform)", "platform")}


def test_a_person_reads_who_cost_most_what_is_left_over_and_what_was_idle(prometheus: FakePrometheus, tmp_path: Path) -> None:
    shown = reported(prometheus, *DAY, "--idle", "proportional", "--top", "2")
    marked = reported(prometheus, *DAY, "--idle", "proportional", "--top", "2", "--format", "markdown")
    reported(prometheus, *DAY, "--format", "html", "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()

    for told in ("workloads that cost most", "users that cost most", "Job ns-vision/big", "(1 more)", "(idle GPUs)", "(no user)"):
        assert told in shown
        assert told.replace("(", "\\(") in marked or told in marked
    assert "users that cost most" in page
    assert "<img" not in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page


def test_where_no_pod_says_for_whom_it_is_there_is_no_table_of_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    month = Month()
    month.node("spot-1", 0, 24 * HOUR)
    month.pod("big", "spot-1", 0, 12 * HOUR, gpus=4)
    with served(FakePrometheus(month)) as prometheus:
        shown, report = reported(prometheus, *DAY), json.loads(reported(prometheus, *DAY, "--format", "json"))

    assert "workloads that cost most" in shown
    assert "users that cost most" not in shown
    assert report["top_consumers"][0]["users"] is None


@pytest.mark.parametrize("top", ["0", "1001", "all"])
def test_a_number_of_consumers_that_makes_no_sense_is_refused(prometheus: FakePrometheus, top: str) -> None:
    reported(prometheus, *DAY, "--top", top, code=2)
