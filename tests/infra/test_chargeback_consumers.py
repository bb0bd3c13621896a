"""The workloads and users that cost most, in a terminal, a spreadsheet, a program and a browser."""

from __future__ import annotations

import csv
import io
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from chargeback_months import HOUR, Month
from fake_prometheus import FakePrometheus, reported, served

from flexspot.capacity.chargeback.report import IdlePolicy
from flexspot.infra.cli.money.chargeback_formats import document, report_data, report_html
from flexspot.infra.cli.money.chargeback_tables import consumer_data, consumer_tables

if TYPE_CHECKING:
    from pathlib import Path

DAY = ("--from", "2026-10-01", "--to", "2026-10-02")
HOSTILE = "<img src=x onerror=alert(1)>"
FORMULA = "=cmd|' /C calc'!A0"


def month() -> Month:
    found = Month()
    found.node("spot-1", 0, 24 * HOUR)
    found.node("system", 0, 24 * HOUR, gpus=0, machine="m6i.xlarge", bought="on-demand")
    found.pod("big", "spot-1", 0, 12 * HOUR, gpus=4, labels={"flexspot.dev/user": "ana"})
    found.pod("small", "spot-1", 0, 12 * HOUR, gpus=1, labels={"flexspot.dev/user": FORMULA})
    found.pod("least", "spot-1", 0, 6 * HOUR, gpus=1, controller=f"Job/{HOSTILE}")
    found.pod("other", "spot-1", 12 * HOUR, 24 * HOUR, gpus=2, team="speech")
    return found


def test_json_rows_sum_to_each_teams_cost() -> None:
    report = report_data(month().report(IdlePolicy.PROPORTIONAL), top=1)

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


@pytest.mark.slow
def test_csv_rows_sum_to_the_cost_of_the_nodes_and_contain_no_formula(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with served(FakePrometheus(month())) as prometheus:
        rows = list(csv.DictReader(io.StringIO(reported(prometheus, *DAY, "--format", "consumers", "--top", "2"))))
        reported(prometheus, *DAY, "--top", "1001", code=2)

    assert sum(Decimal(row["usd"]) for row in rows) == month().report().node_usd
    assert [(row["team"], row["row"], row["consumers"]) for row in rows if row["team"] == "vision"] == [
        ("vision", "consumer", "1"),
        ("vision", "consumer", "1"),
        ("vision", "others", "1"),
    ]
    assert {row["user"] for row in rows if row["row"] == "consumer"} == {"ana", f"'{FORMULA}", "(no user)"}
    assert {(row["team"], row["row"]) for row in rows} >= {("(central)", "idle"), ("(platform)", "platform")}


def test_text_shows_the_most_expensive_consumers_the_rest_and_idle_gpus() -> None:
    report = month().report(IdlePolicy.PROPORTIONAL)
    shown, marked, page = document(report, 2).text(), document(report, 2).markdown(), report_html(report)

    for words in ("workloads that cost most", "users that cost most", "Job ns-vision/big", "(1 more)", "(idle GPUs)", "(no user)"):
        assert words in shown
        assert words in marked
    assert "users that cost most" in page
    assert "<img" not in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page


def test_without_user_labels_there_is_no_table_of_users() -> None:
    unlabelled = Month()
    unlabelled.node("spot-1", 0, 24 * HOUR)
    unlabelled.pod("big", "spot-1", 0, 12 * HOUR, gpus=4)
    report = unlabelled.report()

    assert [each.title for each in consumer_tables(report)] == ["workloads that cost most"]
    assert consumer_data(report)[0]["users"] is None
