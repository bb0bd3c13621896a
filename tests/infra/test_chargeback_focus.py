"""The dataset of `--format focus`: it sums to the report to the cent, and follows FOCUS 1.2. Its checker finds violations."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from chargeback_months import HOUR, Month
from contract_files import contract_file
from focus_conformance import Row, broken

from flexspot.capacity.catalog.machines import Vendor
from flexspot.capacity.chargeback.bills.entries import Bill
from flexspot.capacity.chargeback.bills.folders import read_bill
from flexspot.capacity.chargeback.charges import Credit, moments_of
from flexspot.capacity.chargeback.charging import charge
from flexspot.capacity.chargeback.node_costs import PriceTimes, cost_nodes
from flexspot.capacity.chargeback.reconciling import Reason, Reconciliation, reconcile
from flexspot.capacity.chargeback.report import ExtraCost, ExtraKind, IdlePolicy, Report
from flexspot.capacity.chargeback.saved_report import read_report
from flexspot.capacity.values.errors import ExitCode, ExplainedError
from flexspot.infra.cli.money.chargeback_focus import COLUMNS, report_focus
from flexspot.infra.cli.money.chargeback_formats import report_json

if TYPE_CHECKING:
    from pathlib import Path

P5 = {"machine": "p5.48xlarge", "region": "us-east-1", "nodes": 2, "pool": "h100"}
STORAGE = ExtraCost(team="vision", kind=ExtraKind.STORAGE, usd=Decimal("120.50"), what="bucket datasets")
EGRESS = ExtraCost(team="=cmd|' /C calc'!A0", kind=ExtraKind.EGRESS, usd=Decimal("14.07"), project="@asr")


def rows_of(report: Report) -> list[Row]:
    return list(csv.DictReader(io.StringIO(report_focus(report, "123456789012"))))


def total(rows: list[Row], column: str) -> Decimal:
    return sum((Decimal(row[column]) for row in rows), Decimal(0))


def mixed_month() -> Month:
    """Return a month with half-used Spot and reserved GPUs in two regions, a node without GPUs, and one without a price."""
    month = Month(hours=48)
    month.node("spot-1", 0, 36 * HOUR)
    month.node("spot-2", 0, 7 * HOUR + 60, region="us-west-2")
    month.node("h100-1", 0, 30 * HOUR, machine="p5.48xlarge", bought="reserved", pool="h100")
    month.node("system", 0, 48 * HOUR, gpus=0, machine="m6i.xlarge", bought="on-demand")
    month.node("new", 0, HOUR, machine="p9.48xlarge")
    month.pod("train", "spot-1", 0, 20 * HOUR, gpus=3, team="vision", project="segmentation", workload_type="training")
    month.pod("serve", "spot-2", HOUR, 5 * HOUR + 420, gpus=1, team="speech")
    month.pod("tune", "h100-1", 2 * HOUR, 29 * HOUR, gpus=7, team="search", environment="prod")
    return month


def mixed_report(policy: IdlePolicy = IdlePolicy.CENTRAL) -> Report:
    """Return its report with a contract: a price of reservations, a discount, and twice as many machines as ever exist."""
    row = {"capacity_type": "reserved", "usd_per_hour": "38.015", "source": "contract", "machine": "p5.48xlarge", "region": "us-east-1"}
    own = contract_file(prices=[row], discounts=[{"capacity_type": "on-demand", "percent": "12"}], commitments=[P5])
    return replace(mixed_month().report(policy, own=own), extra=(STORAGE, EGRESS))


PLANS = [
    {
        "name": "arn:aws:savingsplans::123456789012:savingsplan/1",
        "kind": "compute-savings-plan",
        "usd_per_hour": "9.50",
        "rates": [
            {"machine": "p4d.24xlarge", "region": "us-east-1", "usd_per_hour": "12.34"},
            {"machine": "m6i.xlarge", "region": "us-east-1", "usd_per_hour": "0.111"},
        ],
    }
]


def planned_report(policy: IdlePolicy = IdlePolicy.CENTRAL, auto_mode: frozenset[str] = frozenset()) -> Report:
    """Return the mixed month with an on-demand machine for a part of it. A commitment of US dollars an hour pays a part of that."""
    month = mixed_month()
    auto = {"flexspot.dev/environment": "auto"}
    month.node("a100-1", 5 * HOUR, 29 * HOUR + 120, bought="on-demand", pool="a100", labels=auto)
    month.pod("late", "a100-1", 6 * HOUR, 20 * HOUR, gpus=5, team="speech")
    changed = {"machine": "p4d.24xlarge", "region": "us-east-1", "capacity_type": "on-demand", "start": "2026-10-01T12:30:00Z"}
    prices = [{**changed, "usd_per_hour": "19.99"}]
    times = PriceTimes(own=contract_file(prices=prices, spend_commitments=PLANS, commitments=[P5]), name="own")
    books = month.books(cuts=times.cuts(month.period))
    return charge(books, cost_nodes(books, times, auto_mode=auto_mode), idle=policy, asked=month.period, extra=(STORAGE, EGRESS))


def with_fee(policy: IdlePolicy) -> Report:
    return planned_report(policy, frozenset({"auto"}))


PLANNED = [*(pytest.param(each, policy, id=f"{each.__name__}-{policy}") for each in (planned_report, with_fee) for policy in IdlePolicy)]


@pytest.mark.parametrize("policy", IdlePolicy)
def test_every_row_follows_the_rules_and_all_sum_to_the_report(policy: IdlePolicy) -> None:
    report = mixed_report(policy)
    rows = rows_of(report)

    assert broken(COLUMNS, rows) == []
    assert total(rows, "EffectiveCost") == total(rows, "BilledCost") == report.node_usd + report.extra_usd
    # A product of quantity and price has more digits than cents. The sum of all is within half a cent of the exact sum.
    assert abs(total(rows, "ContractedCost") - report.node_usd - report.extra_usd) < Decimal("0.0051")
    # Each row is less than a cent off the cost of its quantity.
    assert all(abs(Decimal(row["EffectiveCost"]) - Decimal(row["ContractedCost"])) < Decimal("0.01") + Decimal("1e-6") for row in rows)
    for line in report.lines:
        assert sum(each.usd for each in report.charges if each.line == line.key) == line.totals.usd
    for team, totals in report.by("team").items():
        own = [row for row in rows if row["x_ChargedTo"] == team[0] and row["ServiceCategory"] == "Compute"]
        assert total(own, "EffectiveCost") == totals.usd
    had_hours = total([row for row in rows if row["x_ChargeKind"] == "allocated"], "ConsumedQuantity")
    assert float(had_hours) == pytest.approx((report.total.gpu_seconds - report.total.unpriced) / HOUR, abs=1e-4)
    gpu_hours = total([row for row in rows if row["ConsumedUnit"] == "GPU-Hours"], "ConsumedQuantity")
    assert float(had_hours) < float(gpu_hours) < report.gpu_seconds / HOUR, "with the idle ones, without those that have no price"


def reconciled_with_itself(report: Report, folder: Path) -> Reconciliation:
    """Compare the report's JSON with its own dataset, as if that were the cloud's bill."""
    bill, saved = folder / "focus.csv", folder / "report.json"
    bill.write_text(report_focus(report, "123456789012"))
    saved.write_text(report_json(report))
    month = read_report(saved)
    billed = Bill(month.period.start, month.period.end)
    for row in read_bill(bill, {}):
        billed.add(row)
    return reconcile(month, billed)


@pytest.mark.parametrize("policy", IdlePolicy)
def test_reconciling_the_dataset_with_its_report_leaves_nothing_unexplained(policy: IdlePolicy, tmp_path: Path) -> None:
    """Uses `flexspot chargeback reconcile`, which reads FOCUS as the clouds export it, and the report's JSON."""
    report = mixed_report(policy)
    found = reconciled_with_itself(report, tmp_path)

    assert (found.report_usd, found.bill_usd) == (report.node_usd, report.node_usd + report.extra_usd)
    assert {reason for reason, usd in found.by_reason.items() if usd} == {Reason.SERVICE}, "storage and egress"
    assert {line.key.machine: line.difference for line in found.lines if line.difference} == {}
    assert found.unexplained_usd == 0


@pytest.mark.parametrize("made,policy", PLANNED)
def test_spend_commitments_are_rows_that_follow_the_rules_and_bill_the_paid_amount(made: Any, policy: IdlePolicy, tmp_path: Path) -> None:
    report: Report = made(policy)
    rows = rows_of(report)

    assert broken(COLUMNS, rows) == []
    assert total(rows, "EffectiveCost") == total(rows, "BilledCost") == report.node_usd + report.extra_usd
    [spent] = report.plans
    [fee] = [row for row in rows if row["ChargeCategory"] == "Purchase"]
    assert (fee["EffectiveCost"], fee["PricingQuantity"], fee["ContractedUnitPrice"]) == ("0", "48", "9.5")
    used, unused = ([row for row in rows if row["CommitmentDiscountStatus"] == each] for each in ("Used", "Unused"))
    assert {row["x_MachineType"] for row in used} == {"p4d.24xlarge", "m6i.xlarge"}
    # Each row is rounded by itself, as is the fee. In total, they are less than a cent per row off.
    for rows_of_status, usd in ((used, spent.used_usd), (unused, spent.unused_usd)):
        assert abs(total(rows_of_status, "CommitmentDiscountQuantity") - usd) < Decimal("0.011")
    assert Decimal(fee["CommitmentDiscountQuantity"]) == spent.committed_usd == Decimal("456.00")
    assert abs(Decimal(fee["BilledCost"]) - spent.committed_usd) < Decimal("0.01") * (len(used) + len(unused))
    on_demand = [row for row in used if row["x_MachineType"] == "p4d.24xlarge"]
    fees = Decimal(0) if made is planned_report else total(on_demand, "BilledCost")
    assert (fees > 0) is (made is with_fee)
    assert {row["BilledCost"] for row in used if row not in on_demand} == {"0.00"}
    # One price before and one after the change. Covered usage has on-demand prices in the contracted columns.
    prices = {Decimal(row["ContractedUnitPrice"]) for row in on_demand}
    assert len(prices) == 2
    assert {row["PricingCategory"] for row in rows if row["x_CapacityType"] == "on-demand"} == {"Committed", "Standard"}
    assert {row["PricingCategory"] for row in rows if row["x_CapacityType"] == "spot"} == {"Dynamic"}

    found = reconciled_with_itself(report, tmp_path)
    assert found.bill_usd == report.node_usd + report.extra_usd
    assert found.bill_usd == found.report_usd + sum(found.by_reason.values(), Decimal(0))
    assert found.by_reason[Reason.COMMITMENT] > 0
    assert found.by_reason[Reason.COVERED] < 0
    assert found.unexplained_usd == 0 or made is with_fee, "this dataset has the fee of a node in the node's own rows"


@pytest.mark.parametrize("policy", IdlePolicy)
def test_credits_are_rows_that_subtract_the_reports_amount(policy: IdlePolicy, tmp_path: Path) -> None:
    month, prices = mixed_month(), PriceTimes()
    row = {"name": "research", "usd": "77.77", "cloud": "aws", "source": "the console on 2026-11-02"}
    granted = [Credit.model_validate({**row, "start": "2026-10-01T06:00:00Z", "capacity_types": ["spot"]})]
    books = month.books(cuts=prices.cuts(month.period, moments_of(granted)))
    report = charge(books, cost_nodes(books, prices), idle=policy, asked=month.period, granted=granted)
    rows = rows_of(report)

    assert broken(COLUMNS, rows) == []
    taken = [row for row in rows if row["ChargeCategory"] == "Credit"]
    assert total(taken, "BilledCost") == total(taken, "ListCost") == -report.credit_usd == Decimal("-77.77")
    assert total(rows, "EffectiveCost") == total(rows, "BilledCost") == report.paid_usd
    assert {row["ContractedUnitPrice"] for row in taken} == {row["ConsumedQuantity"] for row in taken} == {""}

    found = reconciled_with_itself(report, tmp_path)
    assert {reason: usd for reason, usd in found.by_reason.items() if usd} == {Reason.CREDIT: Decimal("-77.77")}


def test_rows_have_the_capacity_type_and_the_use_of_a_machine() -> None:
    rows = {(row["x_MachineType"], row["RegionId"], row["x_ChargeKind"]): row for row in rows_of(mixed_report())}

    spot = rows["p4d.24xlarge", "us-east-1", "allocated"]
    assert (spot["ProviderName"], spot["InvoiceIssuerName"], spot["PricingCategory"]) == ("AWS", "AWS", "Dynamic")
    assert (spot["PricingQuantity"], spot["PricingUnit"]) == ("7.5", "Hours"), "three eighths of twenty hours of the machine"
    assert (spot["ConsumedQuantity"], spot["ConsumedUnit"]) == ("60", "GPU-Hours")
    assert spot["SubAccountId"] == "vision"
    assert json.loads(spot["Tags"]) == {"team": "vision", "project": "segmentation", "workload_type": "training", "pool": "a100-spot"}
    assert json.loads(spot["SkuPriceDetails"]) == {"InstanceType": "p4d.24xlarge", "CoreCount": 96, "GpuCount": 8}
    assert (spot["SkuId"], spot["SkuPriceId"]) == ("us-east-1/p4d.24xlarge", "us-east-1/p4d.24xlarge/spot")
    # The discount of 12 % is for on-demand; the list price is the cloud's own.
    assert Decimal(spot["ListUnitPrice"]) == Decimal("21.957642")
    used, unused = rows["p5.48xlarge", "us-east-1", "allocated"], rows["p5.48xlarge", "us-east-1", "unused"]
    assert used["CapacityReservationId"] == unused["CapacityReservationId"] == "reserved/us-east-1/p5.48xlarge/h100"
    assert (used["CapacityReservationStatus"], unused["CapacityReservationStatus"]) == ("Used", "Unused")
    assert (used["PricingCategory"], used["ContractedUnitPrice"], used["ListUnitPrice"]) == ("Standard", "38.015", "55.04")
    assert (unused["PricingQuantity"], unused["ConsumedQuantity"]) == ("66", "0"), "two machines for 48 hours, and one for 30 of them"
    assert (unused["SubAccountId"], unused["x_ChargedTo"]) == ("", "(central)")
    platform = rows["m6i.xlarge", "us-east-1", "platform"]
    assert (platform["ConsumedQuantity"], platform["ConsumedUnit"], platform["x_GpuModel"]) == ("48", "Hours", "")
    assert not [key for key in rows if key[0] == "p9.48xlarge"], "what has no price is in no row"
    assert {row["BillingPeriodStart"] for row in rows.values()} == {spot["ChargePeriodStart"]} == {"2026-10-01T00:00:00Z"}


def test_idle_gpus_that_another_pool_pays_for_keep_their_own_pool() -> None:
    month = Month()
    month.node("spot-1", 0, 10 * HOUR)
    month.node("h100-1", 0, 10 * HOUR, machine="p5.48xlarge", bought="reserved", pool="h100")
    month.pod("train", "spot-1", 0, 10 * HOUR, gpus=8, team="vision")
    [row] = [each for each in rows_of(month.report(IdlePolicy.PROPORTIONAL)) if each["x_ChargeKind"] == "idle"]

    assert (row["x_ChargedTo"], json.loads(row["Tags"])["pool"]) == ("vision", "a100-spot")
    assert (row["x_NodePool"], row["x_MachineType"], row["CapacityReservationStatus"]) == ("h100", "p5.48xlarge", "Used")


def test_storage_and_traffic_are_rows_and_no_text_is_a_formula() -> None:
    storage, egress = rows_of(mixed_report())[-2:]

    assert (storage["ServiceCategory"], storage["EffectiveCost"], storage["ListUnitPrice"]) == ("Storage", "120.50", "120.5")
    assert storage["ChargeDescription"] == "Storage: bucket datasets"
    assert (egress["SubAccountId"], egress["x_ChargedTo"]) == ("'=cmd|' /C calc'!A0",) * 2
    assert json.loads(egress["Tags"]) == {"team": EGRESS.team, "project": "@asr"}, "tags are as they were given"
    for row in (storage, egress):
        assert not [value for value in row.values() if value.startswith(("=", "+", "-", "@"))]


def test_a_cost_without_a_known_cloud_is_refused() -> None:
    month = Month()
    month.node("spot-1", 0, HOUR)
    month.node("l4-1", 0, HOUR, gpus=1, machine="g2-standard-4", region="us-central1")
    report = month.report()
    assert {row["ProviderName"] for row in rows_of(report)} == {"AWS", "Google Cloud"}

    with pytest.raises(ExplainedError, match="the cloud of storage bucket datasets is not known") as caught:
        rows_of(replace(report, extra=(STORAGE,)))
    assert caught.value.exit_code is ExitCode.BAD_USAGE
    rows = rows_of(replace(report, extra=(STORAGE.model_copy(update={"cloud": Vendor.GCP}),)))
    assert rows[-1]["ProviderName"] == "Google Cloud"
    assert broken(COLUMNS, rows) == []
