"""`flexspot advise reserve` with a history, for a person and a program."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from chargeback_months import HOUR, Month
from fake_prometheus import FakePrometheus, served
from typer.testing import CliRunner

from flexspot.capacity.chargeback.machine_hours import node_queries
from flexspot.capacity.values.errors import ExitCode, ExplainedError
from flexspot.infra.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow

DAYS = 15
PERIOD = ("--from", "2026-10-01", "--to", f"2026-10-{DAYS + 1}", "--step", "60")
OFF = ("--discount-percent", "40")


def run(*arguments: str | Path, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["advise", "reserve", *map(str, arguments)], env={"COLUMNS": "200"})
    if isinstance(result.exception, ExplainedError):
        assert result.exception.exit_code == code
        return str(result.exception)
    assert result.exit_code == code, result.output
    return re.sub(r"[\s│]+", " ", result.output) if code == ExitCode.BAD_USAGE else result.stdout


def data(*arguments: str | Path, code: int = 0) -> dict[str, Any]:
    return json.loads(run(*arguments, "--format", "json", code=code))


@pytest.fixture(scope="module")
def fortnight() -> Month:
    """Return a fortnight with two p4d all the time, a third for 16 hours of each day, a fourth for 8, and a Spot node."""
    month = Month(hours=DAYS * 24)
    for name in ("one", "two"):
        month.node(name, 0, DAYS * 24 * HOUR, bought="on-demand")
    for day in range(DAYS):
        month.node(f"third-{day}", (day * 24 + 4) * HOUR, (day * 24 + 20) * HOUR, bought="on-demand")
        month.node(f"fourth-{day}", (day * 24 + 8) * HOUR, (day * 24 + 16) * HOUR, bought="on-demand")
    month.node("spare", 0, 24 * HOUR)
    return month


@pytest.fixture
def prometheus(fortnight: Month, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakePrometheus]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with served(FakePrometheus(fortnight)) as found:
        yield found


def test_machines_above_the_break_even_are_committed_to_from_prometheus(prometheus: FakePrometheus, tmp_path: Path) -> None:
    kept = tmp_path / "hours.csv"
    found = data("--prometheus", prometheus.url, *PERIOD, *OFF, "--write-history", kept)
    [machine] = found["machines"]

    assert (machine["best"]["nodes"], machine["peak_nodes"], machine["break_even_share"]) == (3, 4, "0.6000")
    assert [each["used_share"] for each in machine["nodes"]] == ["1.0000", "1.0000", "0.6667", "0.3333"]
    assert (machine["best"]["utilisation"], machine["best"]["coverage"]) == ("0.8889", "0.8889")
    # Three are committed all day. The fourth is on demand for 8 hours a day.
    price = Decimal("21.957642")
    assert Decimal(machine["best"]["usd_a_month"]) == ((3 * 24 * price * 6 / 10 + 8 * price) / 24 * 730).quantize(Decimal("0.01"))
    assert Decimal(machine["none"]["usd_a_month"]) == ((2 * 24 + 16 + 8) * price / 24 * 730).quantize(Decimal("0.01"))
    assert found["history"]["hours"] == DAYS * 24
    assert found["not_counted"] == [
        {"machine": "p4d.24xlarge", "region": "us-east-1", "capacity_type": "spot", "node_hours": "24.00"},
    ]
    assert {each["query"] for each in prometheus.asked} == {each.expression for each in node_queries()}, "pods are not asked for"
    assert data("--history", kept, *OFF) == found, "what was written is the same history"


def test_text_shows_number_cost_neighbours_and_the_historys_extent(prometheus: FakePrometheus) -> None:
    shown = " ".join(run("--prometheus", prometheus.url, *PERIOD, *OFF, "--term-years", "3").split())

    for words in (
        "history: 15.0 days in the hours from 2026-10-01 00:00 to 2026-10-15 23:00 UTC.",
        "in doubt: 15.0 days were seen, less than 60",
        "│ > 60.0 % │ 3 │ 88.9 % │ 88.9 % │",
        "p4d.24xlarge in us-east-1: the commitment costs 1,038,684.30 USD and pays if use goes on as it was for 24.3 of 36 months.",
        "not counted: spot p4d.24xlarge in us-east-1, 24.0 node hours.",
        "p4d.24xlarge on-demand 21.957642 USD an hour",
    ):
        assert words in shown


def test_without_a_commitment_price_the_break_even_price_is_shown(prometheus: FakePrometheus) -> None:
    shown = run("--prometheus", prometheus.url, *PERIOD, code=ExitCode.UNMET)

    assert "not known: the price of a commitment for p4d.24xlarge in us-east-1." in shown
    assert "committing to 3 pays at more than 33.3 % off on-demand, which is below 14.6384 USD an hour" in shown


def test_days_without_prometheus_are_missing_and_not_free(prometheus: FakePrometheus) -> None:
    """Prometheus answers with no series for a slice without samples."""
    start = prometheus.month.period.start

    def gone(_number: int, fields: dict[str, str]) -> tuple[int, str, bytes] | None:
        day = (int(fields["start"]) - start) // (24 * HOUR)
        empty = {"status": "success", "data": {"resultType": "matrix", "result": []}}
        return (200, "application/json", json.dumps(empty).encode()) if 3 <= day < 3 + days else None

    prometheus.misbehave, days = gone, 1
    one = data("--prometheus", prometheus.url, *PERIOD, *OFF)
    days = 4
    four = data("--prometheus", prometheus.url, *PERIOD, *OFF, code=ExitCode.UNMET)

    assert one["history"]["missing_hours"] == 24
    assert "24 of 360 hours" in one["history"]["in_doubt"][1]
    assert one["machines"][0]["nodes"][0]["used_share"] == "1.0000"
    assert (four["machines"][0]["best"], len(four["history"]["no_advice_because"])) == (None, 2)
    assert "no advice: 96 of 360 hours" in run("--prometheus", prometheus.url, *PERIOD, *OFF, code=ExitCode.UNMET)


BOTH = (("us-east-1", "p4d.24xlarge", 2), ("us-central1", "a3-highgpu-8g", 1))


def test_a_history_of_one_machine_may_have_its_own_prices(tmp_path: Path) -> None:
    hours = [f"2026-09-{day:02}T{hour:02}:00Z" for day in range(1, 21) for hour in range(24)]
    rows = [f"{hour},{place},{name},on-demand,{nodes}" for hour in hours for place, name, nodes in BOTH]
    (tmp_path / "hours.csv").write_text("\n".join(("hour,region,machine,capacity_type,nodes", *rows)))
    both = data("--history", tmp_path / "hours.csv", *OFF)
    one = data(
        "--history", tmp_path / "hours.csv", "-m", "p4d.24xlarge", "-r", "us-east-1", "--on-demand-usd", "20", "--reserved-usd", "15"
    )

    assert [(each["machine"], each["best"]["nodes"]) for each in both["machines"]] == [("a3-highgpu-8g", 1), ("p4d.24xlarge", 2)]
    assert [(each["machine"], each["best"]["usd_a_month"]) for each in one["machines"]] == [("p4d.24xlarge", "21900.00")]
    assert one["prices"] == []
    assert "the history has no p5.48xlarge" in run("--history", tmp_path / "hours.csv", "-m", "p5.48xlarge", *OFF, code=ExitCode.BAD_USAGE)


def test_the_last_days_are_read_from_midnight_in_steps_of_five_minutes(prometheus: FakePrometheus) -> None:
    run("--prometheus", prometheus.url, "--days", "2", *OFF, code=ExitCode.UNMET)

    assert min(int(each["start"]) for each in prometheus.asked) % (24 * HOUR) == 0
    assert {each["step"] for each in prometheus.asked} == {"300"}


@pytest.mark.parametrize(
    "arguments,message",
    [
        ((), "exactly one of --prometheus URL, --history FILE, --use FILE and --baseline-nodes N is required"),
        (("--history", "x.csv", "--term-years", "2"), "clouds sell terms of 1 and 3 years"),
        (("--history", "x.csv", "--reserved-usd", "3"), "Add --machine and --region"),
        (
            ("--history", "x.csv", "--reserved-usd", "3", "--discount-percent", "3"),
            "--reserved-usd and --discount-percent exclude each other",
        ),
        (("--history", "x.csv", "--write-history", "y.csv"), "--write-history requires --prometheus"),
        (("--history", "x.csv", "--month", "2026-10", "--match", 'cluster="a"'), "--month, --match: no effect without --prometheus"),
        (("--baseline-nodes", "1", "--discount-percent", "3"), "--machine and --region are required"),
        (("--history", "x.csv"), "x.csv cannot be read"),
    ],
)
def test_contradictory_or_missing_options_are_refused(arguments: tuple[str, ...], message: str) -> None:
    assert message in run(*arguments, code=ExitCode.BAD_USAGE)
