"""`flexspot chargeback-trend` over saved reports: what a person and a program get, and what is refused or told."""

from __future__ import annotations

import calendar
import json
import random
import statistics
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from chargeback_months import HOUR, Month
from fake_prometheus import FakePrometheus, served
from typer.testing import CliRunner

from capacity.values.errors import ExplainedError
from infra.cli.app import app

if TYPE_CHECKING:
    from pathlib import Path


def saved(folder: Path, month: str, teams: dict[str, str], until: str | None = None, **more: Any) -> Path:
    """A report of `teams` as the command writes it; `until` is when it was made, where that was before the month's end."""
    year, number = map(int, month.split("-"))
    start = datetime(year, number, 1, tzinfo=UTC)
    end = datetime(year + number // 12, number % 12 + 1, 1, tzinfo=UTC)
    written = {
        "period": {"name": month, "timezone": "UTC", "from": start.isoformat(), "to": until or end.isoformat()},
        "currency": "USD",
        "idle_policy": "central",
        "complete": until is None,
        "node_usd": str(sum(map(Decimal, teams.values()), Decimal(0))),
        "lines": [{"team": team, "total_usd": usd} for team, usd in teams.items()],
        "unknown_prices": [],
        "gaps": [],
        "homeless": [],
        "of": {"prometheus": "https://prometheus.test", "match": ""},
        **more,
    }
    path = folder / f"{month}-{len(list(folder.iterdir()))}.json"
    path.write_text(json.dumps(written))
    return path


def run(paths: list[Path], form: str = "json", code: int = 0) -> str:
    arguments = ["chargeback-trend", "--format", form, *(word for path in paths for word in ("--report", str(path)))]
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "160"})
    if isinstance(result.exception, ExplainedError):
        assert result.exception.exit_code == code
        return f"{result.exception} {' '.join(result.exception.evidence)}"
    assert result.exit_code == code, result.output
    return result.stdout


def days(month: str) -> int:
    return calendar.monthrange(*map(int, month.split("-")))[1]


MONTHS = [f"2026-{number:02}" for number in range(1, 12)]


@pytest.mark.slow
def test_every_figure_is_that_of_a_calculation_in_other_ways_over_many_histories(tmp_path: Path) -> None:
    chance = random.Random(5)  # noqa: S311 -- no secret
    seen = {"unusual": 0, "usual": 0, "ranges": 0}
    for number in range(25):
        folder = tmp_path / str(number)
        folder.mkdir()
        usd = {
            team: [f"{chance.gauss(30, spread) * chance.choice((1, 1, 1, 1, 1, 4)) * days(month) + 200:.2f}" for month in MONTHS]
            for team, spread in (("vision", 0.5), ("speech", 3))
        }
        over = chance.randrange(2, 30)
        paths = [
            saved(folder, month, {team: of[at] for team, of in usd.items()}, f"2026-11-{over:02}T00:00:00Z" if month == "2026-11" else None)
            for at, month in enumerate(MONTHS)
        ]
        chance.shuffle(paths)
        found = json.loads(run(paths))

        assert [each["name"] for each in found["months"]] == MONTHS
        usd["total"] = [str(sum(Decimal(of[at]) for of in usd.values())) for at in range(len(MONTHS))]
        for row in (*found["teams"], found["total"]):
            amounts = list(map(Decimal, usd[row["team"]]))
            assert [Decimal(each["usd"]) for each in row["months"]] == amounts
            rates = [float(each) / days(month) for each, month in zip(amounts, MONTHS, strict=True)]
            for at, each in enumerate(row["months"][:-1]):
                assert each["change_usd"] == (str(amounts[at] - amounts[at - 1]) if at else None)
                before = rates[:at]
                expected = False
                if len(before) >= 4:
                    middle = statistics.median(before)
                    mad = statistics.median([abs(rate - middle) for rate in before])
                    expected = abs(rates[at] - middle) / max(1.4826 * mad, 0.05 * middle) > 3.5
                assert (each["unusual"] is not None) == expected, (before, rates[at])
                seen["unusual" if expected else "usual"] += 1
            assert row["months"][-1]["change_usd"] is None
            assert row["months"][-1]["unusual"] is None, "what is not over is no month to judge"
            forecast = {key: float(value) for key, value in row["forecast"].items()}
            so_far, left = float(amounts[-1]), 30 - (over - 1)
            known = [so_far / (over - 1), *rates[-7:-1]]
            assert forecast["expected_usd"] == pytest.approx(so_far + known[0] * left, abs=0.02)
            assert forecast["low_usd"] == pytest.approx(so_far + min(known) * left, abs=0.02)
            assert forecast["high_usd"] == pytest.approx(so_far + max(known) * left, abs=0.02)
            assert forecast["low_usd"] <= forecast["expected_usd"] <= forecast["high_usd"]
            seen["ranges"] += forecast["low_usd"] < forecast["high_usd"]
        assert sum(Decimal(row["forecast"]["expected_usd"]) for row in found["teams"]) == Decimal(
            found["total"]["forecast"]["expected_usd"]
        )
    assert min(seen.values()) > 20, seen


@pytest.mark.slow
def test_what_the_report_writes_is_what_the_trend_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    paths = []
    for name, start in (("2026-09", 1_788_220_800), ("2026-10", 1_790_812_800)):
        month = Month(start=start)
        month.node("n1", 0, 24 * HOUR)
        month.pod("train", "n1", 0, 12 * HOUR, gpus=4 if name == "2026-09" else 8)
        paths.append(tmp_path / f"{name}.json")
        with served(FakePrometheus(month, 'cluster="prod"')) as prometheus:
            arguments = ["chargeback", "--prometheus", prometheus.url, "--month", name, "--match", 'cluster="prod"', "--format", "json"]
            result = CliRunner().invoke(app, [*arguments, "--out", str(paths[-1])])
            assert result.exit_code == 0, result.output
    shown, found = run(paths, "text"), json.loads(run(paths))

    assert {row["team"]: [each["usd"] for each in row["months"]] for row in found["teams"]} == {
        "vision": ["45.86", "91.72"],
        "(central)": ["137.58", "91.72"],
    }
    assert found["teams"][0]["months"][1]["change_share"] in {1.0, -0.333333}
    assert "+45.86 (+100%)" in shown
    assert "may be of several clusters" in shown, "each was read from a port of its own"


@pytest.mark.slow
def test_one_unusual_month_does_not_make_the_next_ones_unusual_nor_hide_another(tmp_path: Path) -> None:
    usd = ["3100", "2800", "3100", "3000", "3100", "9000", "3100", "3100", "9000", "3100"]
    paths = [saved(tmp_path, month, {"vision": each}) for month, each in zip(MONTHS, usd, strict=False)]
    shown, found = run(paths, "text"), json.loads(run(paths))

    assert [each["month"] for each in found["teams"][0]["months"] if each["unusual"]] == ["2026-06", "2026-09"]
    assert found["teams"][0]["months"][5]["unusual"] == {
        "usd_per_day": "300.00",
        "median_per_day": "100.00",
        "deviation_per_day": "5.00",
        "months": 5,
    }
    assert "9,000 !" in shown
    assert "out of the usual, USD a day" in shown


def test_a_team_that_is_new_is_judged_by_its_own_months_alone(tmp_path: Path) -> None:
    paths = [
        saved(tmp_path, month, {"old": f"{days(month) * 10}.00"} | ({"new": f"{days(month) * 100}.00"} if month > "2026-03" else {}))
        for month in MONTHS[:9]
    ]
    found = {row["team"]: row for row in json.loads(run(paths))["teams"]}

    assert [each["usd"] for each in found["new"]["months"][:4]] == ["0.00", "0.00", "0.00", "3000.00"]
    assert not any(each["unusual"] for each in found["new"]["months"])
    assert found["new"]["months"][3]["change_share"] is None, "there is no share of nothing"


def test_a_month_without_a_report_and_an_incomplete_one_are_told_and_no_change_goes_across_them(tmp_path: Path) -> None:
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
    assert found["total"]["forecast"] is None, "the last month is over"
    for told in ("There is no report of 2026-02", "2026-04 is not complete", "2026-05 was not over when its report was made", "40 +?"):
        assert told in shown.replace("\\", "")


def test_a_month_of_which_a_day_is_not_over_has_no_forecast_and_the_first_has_no_range(tmp_path: Path) -> None:
    early = saved(tmp_path, "2026-02", {"vision": "10"}, until="2026-02-01T23:00:00Z")
    assert "less than a day is over" in run([early], "text")
    later = saved(tmp_path, "2026-02", {"vision": "10"}, until="2026-02-08T00:00:00Z")
    [row] = json.loads(run([later]))["teams"]
    assert row["forecast"] == {"so_far_usd": "10", "expected_usd": "40.00", "low_usd": None, "high_usd": None, "months": 0}


def period(name: str, start: str, end: str, timezone: str = "UTC") -> dict[str, Any]:
    return {"period": {"name": name, "timezone": timezone, "from": start, "to": end}}


@pytest.mark.parametrize(
    "other,told",
    [
        ({"month": "2026-01"}, "two reports are of 2026-01, which would count twice"),
        ({"currency": "EUR"}, "several currencies, of which amounts have no sum: EUR, USD"),
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
def test_reports_that_cannot_be_put_side_by_side_are_refused(tmp_path: Path, other: dict[str, Any], told: str) -> None:
    month = other.pop("month", "2026-02") if "month" in other else "2026-02"
    paths = [saved(tmp_path, "2026-01", {"vision": "100"}), saved(tmp_path, month, {"vision": "100"}, **other)]

    assert told in run(paths, code=2)


@pytest.mark.slow
def test_what_is_no_file_and_no_report_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("[" * 100_000)
    for path in (tmp_path / "bad.json", tmp_path / "none.json", tmp_path):
        assert "write one with flexspot chargeback --month" in run([path], code=2)
