"""`flexspot chargeback trend` over saved reports: its output for people and programs, its refusals and its notes."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from chargeback_months import HOUR, Month
from typer.testing import CliRunner

from flexspot.capacity.values.errors import ExplainedError
from flexspot.infra.cli.app import app
from flexspot.infra.cli.money.chargeback_formats import report_json

if TYPE_CHECKING:
    from pathlib import Path


def saved(folder: Path, month: str, teams: dict[str, str], until: str | None = None, **more: Any) -> Path:
    """Write a report of `teams` as the command does. `until` is the time of its creation if that was before the month's end."""
    year, number = map(int, month.split("-"))
    start = datetime(year, number, 1, tzinfo=UTC)
    end = datetime(year + number // 12, number % 12 + 1, 1, tzinfo=UTC)
    written = {
        "period": {"name": month, "timezone": "UTC", "from": start.isoformat(), "to": until or end.isoformat()},
        "idle_policy": "central",
        "complete": until is None,
        "node_usd": str(sum(map(Decimal, teams.values()), Decimal(0))),
        "lines": [{"team": team, "total_usd": usd} for team, usd in teams.items()],
        "unknown_prices": [],
        "gaps": [],
        "unmatched": [],
        "uncommitted": [],
        "doubled": [],
        "extra_usd": "0",
        "credit_usd": "0",
        "of": {"prometheus": "https://prometheus.test", "match": ""},
        **more,
    }
    path = folder / f"{month}-{len(list(folder.iterdir()))}.json"
    path.write_text(json.dumps(written))
    return path


def run(paths: list[Path], form: str = "json", code: int = 0) -> str:
    arguments = ["chargeback", "trend", "--format", form, *(word for path in paths for word in ("--report", str(path)))]
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "160"})
    if isinstance(result.exception, ExplainedError):
        assert result.exception.exit_code == code
        return f"{result.exception} {' '.join(result.exception.evidence)}"
    assert result.exit_code == code, result.output
    return result.stdout


def test_months_stand_in_their_order_with_the_change_of_each_and_a_new_team_has_no_share_of_nothing(tmp_path: Path) -> None:
    paths = [
        saved(tmp_path, "2026-03", {"old": "90.00", "new": "30.00"}, until="2026-03-20T00:00:00Z"),
        saved(tmp_path, "2026-02", {"old": "150.00", "new": "60.00"}),
        saved(tmp_path, "2026-01", {"old": "100.00"}),
    ]
    found, shown = json.loads(run(paths)), run(paths, "text")

    assert [each["name"] for each in found["months"]] == ["2026-01", "2026-02", "2026-03"]
    rows = {row["team"]: [(each["usd"], each["change_usd"], each["change_share"]) for each in row["months"]] for row in found["teams"]}
    assert rows == {
        "old": [("100.00", None, None), ("150.00", "50.00", 0.5), ("90.00", None, None)],
        "new": [("0.00", None, None), ("60.00", "60.00", None), ("30.00", None, None)],
    }
    assert [(each["usd"], each["change_usd"]) for each in found["total"]["months"]] == [
        ("100.00", None),
        ("210.00", "110.00"),
        ("120.00", None),
    ]
    assert "2026-03 so far" in shown
    assert "2026-03 is not over: these are the figures up to 2026-03-20 00:00 UTC." in shown


@pytest.mark.slow
def test_the_trend_reads_what_the_report_writes(tmp_path: Path) -> None:
    paths = [tmp_path / "2026-09.json", tmp_path / "2026-10.json"]
    for path, days, start in zip(paths, (30, 31), (1_788_220_800, 1_790_812_800), strict=True):
        month = Month(days * 24, start, path.stem)
        month.node("n1", 0, 24 * HOUR)
        month.pod("train", "n1", 0, 12 * HOUR, gpus=4 if days == 30 else 8)
        path.write_text(report_json(month.report(), of={"prometheus": f"https://{path.stem}.test", "match": 'cluster="prod"'}))
    shown, found = run(paths, "text"), json.loads(run(paths))

    assert {row["team"]: [each["usd"] for each in row["months"]] for row in found["teams"]} == {
        "vision": ["45.86", "91.72"],
        "(central)": ["137.58", "91.72"],
    }
    assert found["teams"][0]["months"][1]["change_share"] in {1.0, -0.333333}
    assert "+45.86 (+100%)" in shown
    assert "may be of several clusters" in shown


def test_missing_and_incomplete_months_are_reported_and_no_change_spans_them(tmp_path: Path) -> None:
    paths = [
        saved(tmp_path, "2026-01", {"vision": "100"}),
        saved(tmp_path, "2026-03", {"vision": "100"}),
        saved(tmp_path, "2026-04", {"vision": "40"}, complete=False, gaps=[{"of": "node a"}]),
        saved(tmp_path, "2026-05", {"vision": "70"}, until="2026-05-20T00:00:00Z"),
        saved(tmp_path, "2026-06", {"vision": "100"}),
    ]
    found, shown = json.loads(run(paths, code=1)), run(paths, "markdown", code=1)

    assert found["missing_months"] == ["2026-02"]
    assert [each["change_usd"] for each in found["total"]["months"]] == [None] * 5
    for note in ("There is no report of 2026-02", "2026-04 is not complete", "2026-05 was not over when its report was created", "40 +?"):
        assert note in shown.replace("\\", "")


def period(name: str, start: str, end: str, timezone: str = "UTC") -> dict[str, Any]:
    return {"period": {"name": name, "timezone": timezone, "from": start, "to": end}}


@pytest.mark.parametrize(
    "other,problem",
    [
        ({"month": "2026-01"}, "two reports are of 2026-01, which would count twice"),
        ({"of": {"prometheus": "https://prometheus.test", "match": 'cluster="b"'}}, 'clusters (--match): none, cluster="b"'),
        ({"idle_policy": "owner"}, "ways to pay for idle GPUs"),
        ({"node_usd": "1.00"}, "sum to 100 USD and not to its 1.00 USD"),
        ({"lines": [{"team": "vision", "total_usd": "NaN"}]}, "it is not a report of"),
        ({"lines": [{"team": "vision", "total_usd": "-100"}, {"team": "b", "total_usd": "200"}]}, "it is not a report of"),
        (period("2026-02-01 to 2026-02-09", "2026-02-01T00:00:00Z", "2026-02-09T00:00:00Z"), "which is not a calendar month"),
        (period("2026-02", "2026-01-31T00:00:00Z", "2026-03-01T00:00:00Z"), "its times are not those of 2026-02 in UTC"),
        (period("2026-02", "2026-01-31T23:00:00Z", "2026-02-28T23:00:00Z", "Europe/Berlin"), "time zones, so that their months overlap"),
    ],
)
def test_reports_that_cannot_be_put_side_by_side_are_refused(tmp_path: Path, other: dict[str, Any], problem: str) -> None:
    month = other.pop("month", "2026-02") if "month" in other else "2026-02"
    paths = [saved(tmp_path, "2026-01", {"vision": "100"}), saved(tmp_path, month, {"vision": "100"}, **other)]

    assert problem in run(paths, code=2)


@pytest.mark.slow
def test_a_missing_file_or_another_file_is_refused_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("[" * 100_000)
    for path in (tmp_path / "bad.json", tmp_path / "none.json", tmp_path):
        assert "write one with `flexspot chargeback report --month" in run([path], code=2)
