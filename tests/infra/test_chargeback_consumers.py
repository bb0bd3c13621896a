"""The workloads and users that cost most, as a person, a spreadsheet, a program and a browser meet them."""

from __future__ import annotations

import csv
import io
import json
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from chargeback_months import HOUR, Month
from fake_prometheus import FakePrometheus, served
from typer.testing import CliRunner

from infra.cli.app import app

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


def run(prometheus: FakePrometheus, *arguments: str | Path, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["chargeback", "--prometheus", prometheus.url, *DAY, *map(str, arguments)], env={"COLUMNS": "160"})
    assert result.exit_code == code, result.output
    return result.stdout


def test_a_program_gets_rows_that_sum_to_what_each_team_pays(prometheus: FakePrometheus) -> None:
    report = json.loads(run(prometheus, "--format", "json", "--idle", "proportional", "--top", "1"))

    teams = {each["team"]: each for each in report["by"]["team"]}
    assert [each["team"] for each in report["top_consumers"]] == ["vision", "speech"]
    for each in report["top_consumers"]:
        total = Decimal(teams[each["team"]]["total_usd"])
        assert Decimal(each["total_usd"]) == total
        for rows, others in ((each["workloads"], each["other_workloads"]), (each["users"], each["other_users"])):
            assert len(rows) == 1
            assert sum(Decimal(row["usd"]) for row in (*rows, others)) + Decimal(each["idle_usd"]) == total
    vision = report["top_consumers"][0]
    assert vision["workloads"][0] | {"usd": "", "share_of_team": 0} == {
        "kind": "Job",
        "namespace": "ns-vision",
        "name": "big",
        "usd": "",
        "share_of_team": 0,
        "gpu_hours": 48.0,
        "measured_gpu_hours": 0.0,
        "used_gpu_hours": None,
        "unpriced_gpu_hours": 0.0,
    }
    assert (vision["users"][0]["user"], vision["other_workloads"]["count"]) == ("ana", 2)


def test_a_spreadsheet_gets_rows_that_sum_to_what_the_nodes_cost_and_runs_no_formula(prometheus: FakePrometheus) -> None:
    report = json.loads(run(prometheus, "--format", "json", "--idle", "central"))
    rows = list(csv.DictReader(io.StringIO(run(prometheus, "--format", "consumers", "--idle", "central", "--top", "2"))))

    assert sum(Decimal(row["usd"]) for row in rows) == Decimal(report["node_usd"])
    assert [(row["team"], row["row"], row["consumers"]) for row in rows if row["team"] == "vision"] == [
        ("vision", "consumer", "1"),
        ("vision", "consumer", "1"),
        ("vision", "others", "1"),
    ]
    assert {row["user"] for row in rows if row["row"] == "consumer"} == {"ana", f"'{FORMULA}", "(no user)"}
    assert {(row["team"], row["row"]) for row in rows} >= {("(central)", "idle"), ("(platform)", "platform")}


def test_a_person_reads_who_cost_most_what_is_left_over_and_what_was_idle(prometheus: FakePrometheus, tmp_path: Path) -> None:
    shown = run(prometheus, "--idle", "proportional", "--top", "2")
    marked = run(prometheus, "--idle", "proportional", "--top", "2", "--format", "markdown")
    run(prometheus, "--format", "html", "--out", tmp_path / "page.html")
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
        shown, report = run(prometheus), json.loads(run(prometheus, "--format", "json"))

    assert "workloads that cost most" in shown
    assert "users that cost most" not in shown
    assert report["top_consumers"][0]["users"] is None


@pytest.mark.parametrize("top", ["0", "1001", "all"])
def test_a_number_of_consumers_that_makes_no_sense_is_refused(prometheus: FakePrometheus, top: str) -> None:
    run(prometheus, "--top", top, code=2)
