"""`flexspot chargeback` for a person, a spreadsheet, a program and a browser."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
import site_pages
from chargeback_months import HOUR, Month
from fake_prometheus import FakePrometheus, refused, reported, served
from focus_conformance import broken
from typer.testing import CliRunner

from flexspot.capacity.chargeback.queries import Question
from flexspot.infra.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow

HOSTILE = '<img src=x onerror=alert(1)>&"|`@everyone'
DAY = ("--from", "2026-10-01", "--to", "2026-10-02")


@pytest.fixture
def prometheus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakePrometheus]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    month = Month()
    month.node("spot-1", 0, 24 * HOUR)
    month.pod("train", "spot-1", 0, 12 * HOUR, gpus=4, team="vision", project=HOSTILE)
    month.pod("serve", "spot-1", 6 * HOUR, 24 * HOUR, gpus=2, team="=cmd|' /C calc'!A0")
    month.seen(Question.UTILISATION, {"namespace": "ns-vision", "pod": "train"}, 0, 6 * HOUR, 3.0)
    month.seen(Question.LOST_STEPS, {"namespace": "ns-vision", "pod": "train"}, HOUR, 2 * HOUR, 9)
    month.seen(Question.EVICTIONS, {"instance": "k", "cluster_queue": "vision", "reason": "Preempted"}, HOUR, 2 * HOUR, 3)
    month.seen(Question.OPENCOST, {"node": "spot-1"}, 0, 24 * HOUR, 8.0)
    with served(FakePrometheus(month)) as found:
        yield found


def test_text_shows_the_sums_and_each_teams_cost(prometheus: FakePrometheus) -> None:
    shown = reported(prometheus, *DAY, "--idle", "proportional")

    for words in (
        "2026-10-01 00:00 UTC to 2026-10-02 00:00 UTC (UTC), every 60 s; teams with GPUs of the same pool pay",
        "nodes: 183.44 USD",
        "GPU hours: 192.0, allocated 84.0 (44%)",
        "busy: 75% of 24.0 GPU hours measured",
        "OpenCost: 192.00 USD for 1 node, here 183.44 USD",
        "sent back to their queue by Kueue",
        HOSTILE,
        "skypilot-catalog",
    ):
        assert words in shown


def test_json_has_money_as_text_and_lines_that_sum_to_the_nodes(prometheus: FakePrometheus) -> None:
    found = json.loads(reported(prometheus, *DAY, "--format", "json"))

    assert sum(Decimal(line["total_usd"]) for line in found["lines"]) == Decimal(found["node_usd"]) == Decimal("183.44")
    assert found["complete"] is True
    assert found["lost"][0]["steps_of_unknown_pace"] == 9
    assert found["opencost"] == {"nodes": 1, "opencost_usd": "192.00", "same_nodes_usd": "183.44"}


def test_csv_sums_to_the_total_cost_and_contains_no_formula(prometheus: FakePrometheus, tmp_path: Path) -> None:
    (tmp_path / "storage.yaml").write_text("costs: [{team: vision, kind: egress, usd: '4.56'}]")
    out = tmp_path / "report.csv"
    reported(prometheus, *DAY, "--format", "csv", "--storage", tmp_path / "storage.yaml", "--out", out)
    rows = list(csv.DictReader(io.StringIO(out.read_text())))

    assert sum(Decimal(row["total_usd"]) for row in rows) == Decimal("188.00")
    assert {row["team"] for row in rows} == {"vision", "'=cmd|' /C calc'!A0", "(central)"}
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_focus_dataset_is_written_completely_and_sums_to_the_total_cost(prometheus: FakePrometheus, tmp_path: Path) -> None:
    (tmp_path / "storage.yaml").write_text("costs: [{team: vision, kind: egress, usd: '4.56', cloud: aws}]")
    out = tmp_path / "focus.csv"
    out.write_text("the last month's")
    reported(prometheus, *DAY, "--format", "focus", "--billing-account", " 12-34 ", "--storage", tmp_path / "storage.yaml", "--out", out)
    rows = list(csv.DictReader(io.StringIO(out.read_text())))

    assert broken(list(rows[0]), rows) == []
    assert sum(Decimal(row["EffectiveCost"]) for row in rows) == Decimal("188.00")
    assert {row["BillingAccountId"] for row in rows} == {"12-34"}
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_omissions_of_a_focus_dataset_are_warnings_with_exit_code_1(prometheus: FakePrometheus) -> None:
    prometheus.month.node("new", 0, HOUR, machine="p9.48xlarge")
    arguments = ["chargeback", "report", "--prometheus", prometheus.url, *DAY, "--format", "focus", "--billing-account", "12-34"]
    result = CliRunner().invoke(app, arguments)

    assert result.exit_code == 1
    assert "warning: unknown, and in no sum: spot price of p9.48xlarge in us-east-1 (1.0 node hours)" in result.stderr
    assert {row["x_MachineType"] for row in csv.DictReader(io.StringIO(result.stdout))} == {"p4d.24xlarge"}


def test_the_html_page_loads_nothing_and_escapes_names(prometheus: FakePrometheus, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    reported(prometheus, *DAY, "--format", "html", "--out", out)
    page = out.read_text()

    assert not re.search(r"<(script|img|iframe|object|embed|form)\b|<[^>]* on\w+=", page)
    assert set(re.findall(r'<[^>]*\b(?:src|href)="([^"]*)"', page)) == {"data:,"}
    assert html.escape(HOSTILE) in page
    assert site_pages.wrong_of(page) == []
    assert page.count("<table>") == page.count('<div class="wide"><table>')
    assert {"<svg", "<rect", "<table"} <= set(re.findall(r"<\w+", page))


def test_markdown_contains_no_mention_and_breaks_no_table(prometheus: FakePrometheus) -> None:
    shown = reported(prometheus, *DAY, "--format", "markdown")

    assert "@everyone" not in shown
    assert "<img" not in shown
    tables = [line for line in shown.splitlines() if line.startswith("| ")]
    assert all(re.fullmatch(r"\|( [^|]* \|)+", line) for line in tables)


def test_missing_data_is_reported_with_exit_code_1(prometheus: FakePrometheus) -> None:
    prometheus.month.node("new", 0, HOUR, machine="p9.48xlarge")
    prometheus.misbehave = lambda _, fields: prometheus.right(fields, warnings=["one store is away"])
    shown = reported(prometheus, *DAY, code=1)

    assert "nodes: at least 183.44 USD" in shown
    assert "unknown, and in no sum: spot price of p9.48xlarge in us-east-1 (1.0 node hours)" in shown
    assert "Prometheus warned, and data may be missing: one store is away" in shown


def test_the_fee_of_auto_mode_counts_for_the_named_environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    month = Month()
    month.node("spot-1", 0, 24 * HOUR, labels={"flexspot.dev/environment": "auto"})
    with served(FakePrometheus(month)) as prometheus:
        counted, not_counted = (reported(prometheus, *DAY, "--auto-mode", each) for each in ("auto", "dev"))

    # 183.44, and 4.8 % of the on-demand price of 21.957642 an hour.
    assert "nodes: 208.74 USD" in counted
    assert "nodes: 183.44 USD" in not_counted


def test_an_interrupted_report_is_resumed_by_the_same_command_and_then_leaves_no_files(prometheus: FakePrometheus, tmp_path: Path) -> None:
    prometheus.misbehave = lambda number, _: refused(400, "bad_data", "broken") if number == 5 else None
    reported(prometheus, *DAY, code=1)
    assert list((tmp_path / "cache").rglob("*.json.gz"))

    prometheus.misbehave = lambda _, __: None
    reported(prometheus, *DAY)
    assert len(prometheus.asked) == 5 + len(Question) - 4
    assert not list((tmp_path / "cache").rglob("*.json*"))


def test_a_named_folder_is_kept_for_the_next_report(prometheus: FakePrometheus, tmp_path: Path) -> None:
    reported(prometheus, *DAY, "--resume-dir", tmp_path / "kept", "--idle", "central")
    asked = len(prometheus.asked)
    reported(prometheus, *DAY, "--resume-dir", tmp_path / "kept", "--idle", "proportional")

    assert len(prometheus.asked) == asked


@pytest.mark.parametrize(
    "arguments,code,message",
    [
        ((), 2, "give either --month, or --from and --to"),
        (("--month", "2026-10", "--from", "2026-10-01"), 2, "given twice"),
        (("--month", "2026-00"), 2, "write YYYY-MM"),
        (("--month", "2026-10", "--timezone", "Berlin"), 2, "IANA"),
        (("--month", "2999-01"), 2, "has not begun"),
        ((*DAY, "--out", "missing/report"), 2, "cannot be written to missing/report"),
        ((*DAY, "--format", "focus"), 2, "add the billed account's id, for example --billing-account"),
        ((*DAY, "--format", "focus", "--billing-account", " "), 2, "--billing-account is required with --format focus"),
        ((*DAY, "--format", "focus", "--billing-account", "1", "--out", "missing/report"), 2, "cannot be written to missing/report"),
        ((*DAY, "--format", "FOCUS-1.0"), 2, ""),
        (("--from", "2026-08-01", "--to", "2026-08-02"), 1, "the server has no data about nodes in 2026-08-01 to 2026-08-02"),
    ],
)
def test_unusable_options_are_reported_with_what_to_do(
    prometheus: FakePrometheus, arguments: tuple[str, ...], code: int, message: str
) -> None:
    assert message in reported(prometheus, *arguments, code=code)
