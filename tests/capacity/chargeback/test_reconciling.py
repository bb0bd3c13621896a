"""Reconciliation of a report with a bill: every difference has a reason or is listed as unexplained, and all sum to the bill."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING, Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings
from made_bills import cur_row, focus_row, gcp_row, node, report_file, table

from flexspot.capacity.chargeback.bills.entries import Bill
from flexspot.capacity.chargeback.bills.folders import read_bill
from flexspot.capacity.chargeback.reconciling import Reason, Reconciliation, reconcile
from flexspot.capacity.chargeback.saved_report import read_report

if TYPE_CHECKING:
    from pathlib import Path


def compared(folder: Path, nodes: list[dict[str, Any]], *bills: str, **more: Any) -> Reconciliation:
    month = read_report(report_file(folder, *nodes, **more))
    bill, seen = Bill(month.period.start, month.period.end), dict[str, str]()
    for number, text in enumerate(bills):
        path = folder / f"bill-{number}"
        path.write_text(text)
        for row in read_bill(path, seen):
            bill.add(row)
    found = reconcile(month, bill)
    parts = [usd for line in found.lines for _, usd in line.parts] + [each.usd for each in found.others]
    assert found.report_usd + sum(parts, Decimal(0)) == found.bill_usd
    assert sum((line.bill_usd for line in found.lines), Decimal(0)) + sum((each.usd for each in found.others), Decimal(0)) == found.bill_usd
    return found


def why(found: Reconciliation) -> dict[Reason, str]:
    return {reason: str(usd) for reason, usd in found.by_reason.items()}


def test_the_same_hours_at_another_price_differ_in_price(tmp_path: Path) -> None:
    found = compared(tmp_path, [node(usd="50.00", hours=100)], table([cur_row(usage_amount="100", unblended_cost="61.5")]))

    assert why(found) == {Reason.PRICE: "11.50"}
    assert (found.lines[0].report_price, found.lines[0].bill_price) == (Fraction("0.5"), Fraction("0.615"))
    assert found.unexplained_usd == 0


def test_what_is_billed_before_a_node_registers_is_explained_and_no_more_than_that(tmp_path: Path) -> None:
    # Three nodes explain half an hour. Of the two additional hours one and a half remain unexplained.
    found = compared(tmp_path, [node(usd="50.00", hours=100, nodes=3)], table([cur_row(usage_amount="102", unblended_cost="51")]))

    assert why(found) == {Reason.START: "0.25", Reason.MORE_HOURS: "0.75"}
    assert found.unexplained_usd == Decimal("0.75")
    assert found.within(Decimal("1.5"))
    assert not found.within(Decimal("1.4"))


def test_fewer_hours_than_were_charged_are_not_explained_beyond_the_samples(tmp_path: Path) -> None:
    found = compared(tmp_path, [node(usd="60.00", hours=60, nodes=3)], table([cur_row(usage_amount="59", unblended_cost="59")]))

    assert why(found) == {Reason.START: "-0.10", Reason.FEWER_HOURS: "-0.90"}


def test_hours_of_rows_without_a_cluster_explain_additional_hours(tmp_path: Path) -> None:
    rows = [
        cur_row(usage_amount="100", unblended_cost="50", resource_tags='{"aws_eks_cluster_name": "prod"}'),
        cur_row(usage_amount="20", unblended_cost="10", resource_tags='{"user_team": "web"}'),
    ]

    assert why(compared(tmp_path, [node()], table(rows))) == {Reason.START: "0.08", Reason.LOOSE: "9.92"}
    untagged = [row | {"resource_tags": ""} for row in rows]
    assert why(compared(tmp_path, [node()], table(untagged))) == {Reason.START: "0.08", Reason.MORE_HOURS: "9.92"}


def test_rows_without_a_tag_are_no_strangers_where_the_report_needs_their_hours(tmp_path: Path) -> None:
    rows = [
        cur_row(usage_amount="40", unblended_cost="20", resource_tags='{"aws_eks_cluster_name": "prod"}'),
        cur_row(usage_amount="60", unblended_cost="30"),
    ]

    assert why(compared(tmp_path, [node()], table(rows))) == {}


def test_machines_that_the_report_does_not_know_and_services_are_lines_of_their_own(tmp_path: Path) -> None:
    rows = [
        cur_row(usage_amount="100", unblended_cost="50"),
        cur_row(usage_type="EUC1-BoxUsage:m5.large", usage_amount="10", unblended_cost="1.15", product_region_code="eu-central-1"),
        cur_row(usage_type="USE1-EBS:VolumeUsage.gp3", unblended_cost="3"),
        cur_row(usage_type="NatGateway-Hours", unblended_cost="4"),
        cur_row(product_code="AmazonEKS", usage_type="USE1-AmazonEKS-Hours:perCluster", unblended_cost="5"),
        cur_row(line_item_type="Tax", usage_type="", unblended_cost="6", product_region_code=""),
        cur_row(line_item_type="Credit", unblended_cost="-7"),
        cur_row(line_item_type="Refund", unblended_cost="-8"),
        cur_row(line_item_type="Fee", product_code="AWSSupportBusiness", usage_type="Dollar", unblended_cost="100"),
    ]
    found = compared(tmp_path, [node()], table(rows))

    assert why(found) == {
        Reason.NOT_IN_REPORT: "1.15",
        Reason.CREDIT: "-7.00",
        Reason.CORRECTION: "-8.00",
        Reason.TAX: "6.00",
        Reason.SERVICE: "112.00",
    }
    services = {each.what: str(each.usd) for each in found.others if each.reason is Reason.SERVICE}
    assert services == {"AmazonEC2 EBS": "3.00", "AmazonEC2 NatGateway": "4.00", "AmazonEKS": "5.00", "AWSSupportBusiness Fee": "100.00"}


def test_a_reserved_instance_and_a_plan_pay_for_hours_by_their_fees(tmp_path: Path) -> None:
    nodes = [node("p4d.24xlarge", "200.00", 10, capacity_type="on-demand"), node("g6.xlarge", "8.00", 10, capacity_type="on-demand")]
    rows = [
        cur_row(line_item_type="DiscountedUsage", usage_type="BoxUsage:p4d.24xlarge", usage_amount="6", unblended_cost="0"),
        cur_row(usage_type="BoxUsage:p4d.24xlarge", usage_amount="4", unblended_cost="84"),
        cur_row(line_item_type="RIFee", usage_type="HeavyUsage:p4d.24xlarge", usage_amount="744", unblended_cost="7440"),
        cur_row(line_item_type="SavingsPlanCoveredUsage", usage_type="BoxUsage:g6.xlarge", usage_amount="10", unblended_cost="8.05"),
        cur_row(line_item_type="SavingsPlanNegation", usage_type="BoxUsage:g6.xlarge", usage_amount="10", unblended_cost="-8.05"),
        cur_row(line_item_type="SavingsPlanRecurringFee", product_code="ComputeSavingsPlans", usage_type="", unblended_cost="744"),
    ]

    # Of the report's 200 USD, six hours at 20 are paid by the reserved instance; the others cost one more.
    assert why(compared(tmp_path, nodes, table(rows))) == {
        Reason.PRICE: "4.00",
        Reason.COVERED: "-128.00",
        Reason.COMMITMENT: "8184.00",
    }


def test_discounts_are_counted_once_whether_they_are_columns_or_rows(tmp_path: Path) -> None:
    as_column = [cur_row(usage_amount="100", unblended_cost="50", line_item_net_unblended_cost="45")]
    both = [*as_column, cur_row(line_item_type="EdpDiscount", unblended_cost="-5", line_item_net_unblended_cost="0")]
    as_row = [cur_row(usage_amount="100", unblended_cost="50"), cur_row(line_item_type="EdpDiscount", unblended_cost="-5")]

    for rows in (as_column, both, as_row):
        found = compared(tmp_path, [node()], table(rows))
        assert (str(found.bill_usd), why(found)) == ("45.00", {Reason.DISCOUNT: "-5.00"})


def test_reserved_machines_and_what_is_free_of_a_reservation_are_one_line_with_those_on_demand(tmp_path: Path) -> None:
    nodes = [
        node("p4d.24xlarge", "300.00", 10, capacity_type="reserved", unused=5),
        node("p4d.24xlarge", "40.00", 2, capacity_type="on-demand"),
    ]
    rows = [
        cur_row(usage_type="BoxUsage:p4d.24xlarge", usage_amount="12", unblended_cost="240"),
        cur_row(usage_type="UnusedBox:p4d.24xlarge", usage_amount="5", unblended_cost="100"),
        cur_row(usage_type="Reservation:p4d.24xlarge", usage_amount="15", unblended_cost="0"),
    ]
    [line] = compared(tmp_path, nodes, table(rows)).lines

    assert (line.capacity_types, line.report_hours, line.bill_hours, line.difference) == (("on-demand", "reserved"), 17, 17, 0)


def test_the_fee_of_auto_mode_is_compared_with_its_own_line_of_the_bill(tmp_path: Path) -> None:
    nodes = [node(), node(usd="4.00", capacity_type="eks-auto-mode")]
    fee = cur_row(product_code="AmazonEKS", usage_type="USE1-EKS-Auto:g6.xlarge-management-hours", usage_amount="100", unblended_cost="4.5")

    assert why(compared(tmp_path, nodes, table([cur_row(usage_amount="100", unblended_cost="50"), fee]))) == {Reason.PRICE: "0.50"}


def test_hours_without_a_price_in_the_report_cost_what_the_bill_says(tmp_path: Path) -> None:
    found = compared(tmp_path, [node(usd="0.00", hours=100, unpriced=100)], table([cur_row(usage_amount="100", unblended_cost="50")]))

    assert why(found) == {Reason.UNPRICED: "50.00"}


def test_nodes_that_are_not_in_the_bill_are_unexplained_and_another_clouds_are_reported(tmp_path: Path) -> None:
    nodes = [node(), node("g5.xlarge", "20.00"), node("g2-standard-8", "30.00", cloud="gcp", region="us-central1")]

    found = compared(tmp_path, nodes, table([cur_row(usage_amount="100", unblended_cost="50")]))

    assert why(found) == {Reason.NO_BILL: "-30.00", Reason.NOT_IN_BILL: "-20.00"}
    assert found.unexplained_usd == 20


def test_more_here_does_not_make_up_for_less_there(tmp_path: Path) -> None:
    rows = [
        cur_row(usage_amount="120", unblended_cost="60"),
        cur_row(usage_type="SpotUsage:g5.xlarge", usage_amount="80", unblended_cost="40"),
    ]

    found = compared(tmp_path, [node(), node("g5.xlarge")], table(rows))

    assert found.bill_usd - found.report_usd == 0
    assert found.unexplained_usd == Decimal("9.92") + Decimal("9.98")


def test_other_days_and_repeated_rows_are_amounts_of_their_own(tmp_path: Path) -> None:
    rows = [
        cur_row(usage_amount="100", unblended_cost="50", identity_line_item_id="a", identity_time_interval="i"),
        cur_row(usage_amount="100", unblended_cost="50", identity_line_item_id="a", identity_time_interval="i"),
        cur_row(unblended_cost="3", usage_start_date="2026-09-30T23:00:00Z", usage_end_date="2026-10-01T00:00:00Z"),
        cur_row(unblended_cost="4", usage_start_date="2026-11-01T00:00:00Z", usage_end_date="2026-11-01T01:00:00Z"),
    ]

    assert why(compared(tmp_path, [node()], table(rows))) == {Reason.ELSEWHEN: "7.00", Reason.REPEATED: "50.00"}


def test_notes_explain_missing_days_and_tags(tmp_path: Path) -> None:
    straddling = cur_row(usage_start_date="2026-09-30T23:30:00Z", usage_end_date="2026-10-01T00:30:00Z", unblended_cost="0.5")
    notes = "\n".join(compared(tmp_path, [node()], table([straddling]), complete=False).notes)

    for note in (
        "not complete",
        "machines from 2026-09-30 23:30 UTC to 2026-10-01 00:30",
        "1 rows of machines, 0.50 USD",
        "names a cluster",
    ):
        assert note in notes


def gcp_lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(each) + "\n" for each in rows)


G2 = node("g2-standard-8", "80.00", 100, cloud="gcp", region="us-central1")


def test_parts_of_a_machine_on_google_cloud_are_put_together_by_its_label(tmp_path: Path) -> None:
    bill = gcp_lines(
        gcp_row("Spot Preemptible G2 Instance Core running in Americas", "20", "800"),
        gcp_row("Spot Preemptible G2 Instance Ram running in Americas", "10", "3200"),
        gcp_row("Nvidia L4 GPU attached to Spot Preemptible VMs running in Americas", "54", "100"),
        gcp_row("Balanced PD Capacity", "7", "100"),
        gcp_row("Commitment v1: G2 Core in Americas for 1 Year", "9", "744"),
        gcp_row("Rounding error", "0.01", machine="", cost_type="rounding_error"),
    )
    found = compared(tmp_path, [G2], bill)

    assert why(found) == {Reason.PRICE: "4.00", Reason.COMMITMENT: "9.00", Reason.CORRECTION: "0.01", Reason.SERVICE: "7.00"}
    assert found.lines[0].bill_hours == 100


def test_credits_of_commitments_reduce_hours_and_other_credits_are_listed_by_kind(tmp_path: Path) -> None:
    given = [{"type": "COMMITTED_USAGE_DISCOUNT", "amount": -40, "name": "c"}, {"type": "PROMOTION", "amount": -1.5, "name": "p"}]
    bill = gcp_lines(gcp_row("G2 Instance Core running in Americas", "80", "800", credits=given))

    # Half of the cores' cost, so half of their hours, is paid by the commitment.
    found = compared(tmp_path, [G2 | {"capacity_type": "on-demand"}], bill)

    assert why(found) == {Reason.COVERED: "-40.00", Reason.CREDIT: "-1.50"}


def test_rows_without_a_machine_are_compared_by_family_in_core_hours_and_a_note_says_so(tmp_path: Path) -> None:
    small = node("g2-standard-4", "20.00", 50, cloud="gcp", region="us-central1")
    bill = gcp_lines(
        gcp_row("Spot Preemptible G2 Instance Core running in Americas", "60", "800"),
        gcp_row("Spot Preemptible G2 Instance Core running in Americas", "22", "200", machine=""),
        gcp_row("Nvidia L4 GPU attached to Spot Preemptible VMs running in Americas", "20", "50", machine=""),
    )
    found = compared(tmp_path, [G2, small], bill)

    [line] = found.lines
    assert (line.key.machine, line.report_hours, line.bill_hours) == ("g2-*", 1000, 1000)
    assert why(found) == {Reason.PRICE: "2.00"}
    assert any("compared as a family" in each for each in found.notes)


def test_a_focus_export_of_either_cloud_says_the_same(tmp_path: Path) -> None:
    google = {"ProviderName": "Google Cloud", "ServiceName": "Compute Engine", "RegionId": "us-central1"}
    rows = [
        focus_row(BilledCost="51", ConsumedQuantity="100"),
        focus_row(BilledCost="0", ConsumedQuantity="10", PricingCategory="Committed", CommitmentDiscountId="arn",
                  CommitmentDiscountStatus="Used", SkuPriceDetails='{"InstanceType":"m6i.large"}'),
        focus_row(BilledCost="560.92", ChargeCategory="Purchase", CommitmentDiscountId="arn", SkuPriceDetails="", ConsumedQuantity=""),
        focus_row(BilledCost="2", ServiceName="AmazonVPC", SkuPriceDetails='{"x_TransferType":"InterAZ"}', ConsumedUnit="GB"),
        focus_row(BilledCost="-1", ChargeCategory="Credit"),
        focus_row(BilledCost="-3", ChargeClass="Correction"),
        focus_row(BilledCost="4", ChargeCategory="Tax"),
        focus_row(BilledCost="82", ConsumedQuantity="100", SkuPriceDetails='{"InstanceType":"g2-standard-8"}', **google),
    ]  # fmt: skip
    covered = node("m6i.large", "0.96", 10, capacity_type="on-demand")

    assert why(compared(tmp_path, [node(), covered, G2], table(rows))) == {
        Reason.PRICE: "3.00",
        Reason.COVERED: "-0.96",
        Reason.COMMITMENT: "560.92",
        Reason.CREDIT: "-1.00",
        Reason.CORRECTION: "-3.00",
        Reason.TAX: "4.00",
        Reason.SERVICE: "2.00",
    }


def test_focus_rows_of_google_by_part_are_put_together_as_in_its_own_export(tmp_path: Path) -> None:
    labels = '[{"Key":"compute.googleapis.com/machine_spec","Value":"g2-standard-8"},{"Key":"compute.googleapis.com/cores","Value":"8"}]'
    row = focus_row(
        ProviderName="Google Cloud", ServiceName="Compute Engine", RegionId="us-central1", BilledCost="81", ConsumedQuantity="800",
        ConsumedUnit="hour", SkuPriceDetails="", ChargeDescription="Spot Preemptible G2 Instance Core running in Americas",
    )  # fmt: skip

    assert why(compared(tmp_path, [G2], table([row | {"x_SystemLabels": labels}]))) == {Reason.PRICE: "1.00"}


NODES = st.builds(
    node,
    st.sampled_from(["g6.xlarge", "p4d.24xlarge", "m5.large"]),
    st.decimals(0, 10_000, places=2).map(str),
    st.integers(0, 800),
    capacity_type=st.sampled_from(["spot", "on-demand", "reserved", "eks-auto-mode", "(unknown)"]),
    nodes=st.integers(0, 5),
    unpriced=st.integers(0, 900),
    unused=st.integers(0, 50),
)
AMOUNTS = st.decimals(-10_000, 10_000, places=9).map(lambda each: f"{each:f}")
ROWS = st.fixed_dictionaries(
    {
        "line_item_type": st.sampled_from(
            ["Usage", "DiscountedUsage", "SavingsPlanCoveredUsage", "SavingsPlanNegation", "RIFee", "Tax", "EdpDiscount", "New"]
        ),
        "usage_type": st.sampled_from(
            ["SpotUsage:g6.xlarge", "BoxUsage:p4d.24xlarge", "UnusedBox:p4d.24xlarge", "USE1-BoxUsage:m5.large", "EBS:X", ""]
        ),
        "usage_amount": AMOUNTS,
        "unblended_cost": AMOUNTS,
        "line_item_net_unblended_cost": st.one_of(st.just(""), AMOUNTS),
        "usage_start_date": st.sampled_from(["2026-09-30", "2026-10-01", "2026-10-31", "2026-11-01"]),
        "usage_end_date": st.just(""),
        "identity_line_item_id": st.sampled_from(["", "a", "b"]),
    }
).map(lambda values: cur_row(**values))


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(nodes=st.lists(NODES, max_size=6), rows=st.lists(ROWS, min_size=1, max_size=12))
def test_whatever_a_bill_says_the_report_and_all_differences_sum_to_it(
    tmp_path: Path, nodes: list[dict[str, Any]], rows: list[dict[str, str]]
) -> None:
    found = compared(tmp_path, nodes, table(rows))

    exact = Fraction(0)
    for row in rows:
        net, unblended = row["line_item_net_unblended_cost"], Fraction(row["line_item_unblended_cost"])
        in_others = not net and row["line_item_line_item_type"] == "EdpDiscount"
        exact += Fraction(net) if net else Fraction(0) if in_others else unblended
    assert found.bill_usd == Decimal(floor(exact * 100 + Fraction(1, 2))).scaleb(-2)
