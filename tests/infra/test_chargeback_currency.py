"""Reports in another currency: sums that are converted once, parts that sum to them, and the rate wherever an amount is."""

from __future__ import annotations

import csv
import io
import json
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING

import pytest
from chargeback_months import HOUR, Month
from currency_reports import RATES, euros, in_euros, usd_report
from fake_prometheus import FakePrometheus, reported, served
from focus_conformance import TWO_CURRENCIES, broken
from hypothesis import given

from capacity.chargeback.billed import Bill
from capacity.chargeback.bills.entries import BillError
from capacity.chargeback.bills.files import read_bill
from capacity.chargeback.exchanged import exchanged
from capacity.chargeback.reconciling import reconcile
from capacity.chargeback.report import IdlePolicy
from capacity.chargeback.saved_report import read_report
from infra.cli.chargeback_consumers import consumers_csv
from infra.cli.chargeback_focus import columns_of, report_focus
from infra.cli.chargeback_html import report_html
from infra.cli.chargeback_report import report_csv, report_json, report_markdown, report_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.mark.slow
@given(RATES)
def test_the_focus_dataset_is_billed_in_the_currency_and_priced_in_us_dollars(rate: Decimal) -> None:
    before = usd_report(IdlePolicy.PROPORTIONAL)
    after = exchanged(before, euros(rate))
    rows = list(csv.DictReader(io.StringIO(report_focus(after, "123456789012"))))

    assert "PricingCurrency" not in columns_of(before)
    assert broken(columns_of(after), rows, TWO_CURRENCIES) == []
    assert {row["BillingCurrency"] for row in rows} == {"EUR"}
    assert {row["PricingCurrency"] for row in rows} == {"USD"}
    for column, whole in (
        ("BilledCost", after.paid_usd),
        ("EffectiveCost", after.paid_usd),
        ("PricingCurrencyEffectiveCost", before.paid_usd),
    ):
        assert sum(Decimal(row[column]) for row in rows) == whole, column
    with localcontext(prec=60):
        for row in rows:
            if row["x_ChargeKind"] in {"storage", "egress"}:
                continue
            for price in ("ListUnitPrice", "ContractedUnitPrice"):
                told = Decimal(row[f"PricingCurrency{price}"]) * rate
                assert abs(Decimal(row[price]) - told) <= abs(told) * Decimal("1e-40")


def test_every_form_tells_the_rate_its_day_and_its_source_and_calls_no_amount_dollars() -> None:
    after = exchanged(usd_report(IdlePolicy.CENTRAL), euros())
    told = "1 USD is 0.861234 EUR, of 2026-10-30, reference rates of the central bank"

    for form in (report_text, report_markdown, report_html):
        shown = " ".join(form(after).replace("\\", "").split())
        assert told in shown, form.__name__
        assert "USD" not in shown.replace(told, ""), form.__name__
        assert f"{after.node_usd:,} EUR" in shown, form.__name__
    for table in (report_csv, consumers_csv):
        rows = list(csv.DictReader(io.StringIO(table(after))))
        assert all((row["currency"], row["per_usd"], row["rate_as_of"]) == ("EUR", "0.861234", "2026-10-30") for row in rows)
        assert not [name for name in rows[0] if name.endswith("_usd") and name != "per_usd"]
    spread = list(csv.DictReader(io.StringIO(report_csv(after))))
    assert sum(Decimal(row["total_eur"]) for row in spread) == after.paid_usd


def test_programs_find_amounts_by_their_currency_and_prices_an_hour_in_dollars() -> None:
    after = exchanged(usd_report(IdlePolicy.CENTRAL), euros())
    found = json.loads(report_json(after))

    assert found["currency"] == "EUR"
    assert found["exchange_rate"]["per_usd"] == "0.861234"
    assert Decimal(found["node_eur"]) == after.node_usd == sum(Decimal(line["total_eur"]) for line in found["lines"])
    names = {name for line in (found, found["total"], *found["lines"], *found["nodes"]) for name in line}
    assert not [name for name in names if name == "usd" or name.endswith("_usd")]


def test_a_saved_report_is_held_against_a_bill_in_its_currency_and_no_other(tmp_path: Path) -> None:
    after = exchanged(usd_report(IdlePolicy.CENTRAL), euros())
    report, bill = tmp_path / "report.json", tmp_path / "bill.csv"
    report.write_text(report_json(after))
    month = read_report(report)
    assert (month.currency, month.node_usd) == ("EUR", after.node_usd)

    bill.write_text(report_focus(after, "123456789012"))
    found = Bill(month.start, month.end)
    for row in read_bill(bill, {}, "EUR"):
        found.add(row)
    reconciled = reconcile(month, found)
    assert reconciled.currency == "EUR"
    assert reconciled.bill_usd == after.paid_usd

    bill.write_text(report_focus(usd_report(IdlePolicy.CENTRAL), "123456789012"))
    with pytest.raises(BillError, match="the amount is in USD; the report is in EUR"):
        list(read_bill(bill, {}, "EUR"))
    bill.write_text(report_focus(after, "123456789012"))
    with pytest.raises(BillError, match="the amount is in EUR; the report is in USD"):
        list(read_bill(bill, {}))


@pytest.fixture
def prometheus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakePrometheus]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    month = Month()
    month.node("spot-1", 0, 24 * HOUR)
    month.pod("train", "spot-1", 0, 12 * HOUR, gpus=4, team="vision")
    with served(FakePrometheus(month)) as found:
        yield found


RATE_FILE = """
currency: EUR
rates:
  - {per_usd: "0.86", as_of: 2026-10-30, source: reference rates of the central bank, month: 2026-10}
  - {per_usd: "0.85", as_of: 2026-11-30, source: reference rates of the central bank, month: 2026-11}
"""


@pytest.mark.slow
def test_the_command_takes_the_rate_of_the_reports_month(prometheus: FakePrometheus, tmp_path: Path) -> None:
    rates = tmp_path / "rates.yaml"
    rates.write_text(RATE_FILE)
    found = json.loads(reported(prometheus, "--from", "2026-10-01", "--to", "2026-10-02", "--currency", rates, "--format", "json"))

    assert Decimal(found["node_eur"]) == in_euros(Decimal("183.44"), Decimal("0.86"))
    over_two = reported(prometheus, "--from", "2026-10-31", "--to", "2026-11-02", "--currency", rates, code=None)
    assert "several months with rates of their own" in over_two
    assert "make a report of each month" in over_two
    assert "there is no rate of 2026-09" in reported(prometheus, "--month", "2026-09", "--currency", rates, code=None)


@pytest.mark.parametrize("option", ["--currency", "--credits", "--prices", "--storage"])
def test_a_file_that_is_not_there_is_told_by_its_name_and_not_as_something_to_mend(
    option: str, prometheus: FakePrometheus, tmp_path: Path
) -> None:
    missing = tmp_path / "no-such.yaml"
    told = reported(prometheus, "--from", "2026-10-01", "--to", "2026-10-02", option, missing, code=2)

    assert f"there is no file {missing}." in told
    assert "give the path of an existing file" in told
    assert "Errno" not in told
    assert "fix it" not in told
