"""`flexspot chargeback reconcile` with output for people, spreadsheets and programs."""

from __future__ import annotations

import csv
import io
import json
import sys
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from made_bills import cur_row, focus_row, node, report_file, table
from made_parquet import export_table, parquet_file
from typer.testing import CliRunner

from flexspot.capacity.values.errors import ExplainedError
from flexspot.infra.cli.app import app
from flexspot.infra.cli.console import out

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = '=cmd|<img src=x onerror=alert(1)>&"`@everyone\x1b[2J'


def run(*arguments: str | Path, code: int = 0) -> str:
    """Return its standard output, or an ExplainedError as `main` shows it."""
    result = CliRunner().invoke(app, ["chargeback", "reconcile", *map(str, arguments)], env={"COLUMNS": "160"})
    if isinstance(result.exception, ExplainedError):
        assert result.exception.exit_code == code
        return str(result.exception)
    assert result.exit_code == code, result.output
    return result.stdout or result.output


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, ...]:
    """Return options for a report and a bill in two files. 0.83 of its 150 USD is not explained."""
    first, second = tmp_path / "bill-1.csv", tmp_path / "focus.csv"
    first.write_text(
        table(
            [
                cur_row(usage_amount="100", unblended_cost="61.5"),
                cur_row(usage_type="BoxUsage:p4d.24xlarge", usage_amount="10.25", unblended_cost="102.5"),
                cur_row(line_item_type="Credit", product_code=HOSTILE, unblended_cost="-7"),
            ]
        )
    )
    second.write_text(table([focus_row(ServiceName="Cloud Storage", ProviderName="Google Cloud", SkuPriceDetails="", BilledCost="3.004")]))
    report = report_file(tmp_path, node(), node("p4d.24xlarge", "100.00", 10, capacity_type="on-demand"))
    return ("--report", str(report), "--bill", str(first), "--bill", str(second))


def test_a_person_reads_the_sums_and_why_they_differ(files: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    # A wide terminal, so that no cell is folded.
    monkeypatch.setattr(out, "width", 200)
    shown = run(*files)

    for printed in (
        "report: 150.00 USD",
        "bill: 160.00 USD",
        "difference: +10.00 USD",
        "unexplained: 0.83 USD, within 2 % of the report",
        "price differs (0.5000 an hour, billed 0.6150)",
        "=cmd|<img",
        "Cloud Storage",
        "names a cluster",
    ):
        assert printed in shown
    assert "\x1b" not in shown


def test_json_has_money_as_text_that_adds_up_to_the_bill(files: tuple[str, ...]) -> None:
    found = json.loads(run(*files, "--format", "json"))

    parts = [part["usd"] for line in found["lines"] for part in line["why"]] + [each["usd"] for each in found["others"]]
    assert Decimal(found["report_usd"]) + sum(map(Decimal, parts)) == Decimal(found["bill_usd"]) == Decimal("160.00")
    assert (found["unexplained_usd"], found["within_tolerance"]) == ("0.83", True)
    assert {each["reason"]: each["usd"] for each in found["by_reason"]} == {
        "price differs": "11.50",
        "start and end of nodes": "1.67",
        "credits": "-7.00",
        "other services": "3.00",
        "unexplained: more hours billed": "0.83",
    }


def test_csv_has_rows_that_add_up_to_the_bill_and_no_formula(files: tuple[str, ...]) -> None:
    rows = list(csv.DictReader(io.StringIO(run(*files, "--format", "csv"))))

    assert sum(Decimal(each["usd"]) for each in rows) == Decimal("160.00")
    [hostile] = [each["what"] for each in rows if "cmd" in each["what"]]
    assert hostile.startswith("'=cmd")


@pytest.mark.slow
def test_the_exit_code_shows_whether_the_unexplained_amount_is_tolerated(files: tuple[str, ...]) -> None:
    assert "more than 0.5 %" in run(*files, "--tolerance-percent", "0.5", code=1)
    assert "within 0.6 %" in run(*files, "--tolerance-percent", "0.6")


@pytest.mark.parametrize("percent", ["101", "NaN"])
def test_an_invalid_tolerance_is_refused(files: tuple[str, ...], percent: str) -> None:
    assert "from 0 to 100" in run(*files, "--tolerance-percent", percent, code=2)


@pytest.mark.parametrize(
    "more, problem",
    [
        ({"nodes": None}, "nodes: Input should be a valid list"),
        ({"node_usd": "51.00"}, "its nodes sum to 50.00 USD and not to its 51.00 USD"),
        ({"period": {"name": "x", "from": "2026-10-02", "to": "2026-10-01"}}, "ends before it begins"),
    ],
)
def test_an_unusable_report_is_refused(tmp_path: Path, more: dict[str, object], problem: str) -> None:
    bill = tmp_path / "bill.csv"
    bill.write_text(table([cur_row()]))

    assert problem in run("--report", report_file(tmp_path, node(), **more), "--bill", bill, code=2)


@pytest.mark.slow
def test_an_unusable_bill_is_refused_with_its_name_and_row(tmp_path: Path) -> None:
    bill, report = tmp_path / "bill.csv", report_file(tmp_path, node())
    bill.write_text(table([cur_row(), cur_row(currency_code="EUR")]))

    printed = run("--report", report, "--bill", bill, code=2)
    assert f"--bill: {bill} cannot be used" in printed
    assert "row 2: line_item_currency_code is EUR, and reports are in USD. Export the bill in USD" in printed
    (tmp_path / "fine.csv").write_text(table([cur_row()]))
    assert "the same bill" in run("--report", report, *("--bill", tmp_path / "fine.csv") * 2, code=2)
    assert "No such file" in run("--report", report, "--bill", tmp_path / "none.csv", code=2)
    assert "No such file" in run("--report", tmp_path / "none.json", "--bill", bill, code=2)
    bill.write_text("[" * 100_000)
    assert "not a report of flexspot" in run("--report", bill, "--bill", bill, code=2)


def test_a_missing_parquet_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report, text = report_file(tmp_path, node()), tmp_path / "bill.csv"
    text.write_text(table([cur_row(usage_amount="100", unblended_cost="50")]))
    bill = parquet_file(tmp_path / "bill.parquet", export_table([cur_row()]))
    for name in [each for each in sys.modules if each.partition(".")[0] == "pyarrow"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    printed = run("--report", report, "--bill", bill, code=2)
    assert "run `pip install 'flexspot[parquet]'`" in printed
    assert "flexspot[parquet]" in printed
    assert "bill: 50.00 USD" in run("--report", report, "--bill", text)
