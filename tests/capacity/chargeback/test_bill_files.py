"""Bills as files: every supported form, and refusals of files that are not bills, truncated, changed or malicious."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from made_bills import cur_row, focus_row, gcp_row, table

from flexspot.capacity.catalog.machines import Vendor
from flexspot.capacity.chargeback.bills.aws import column, place_of
from flexspot.capacity.chargeback.bills.entries import MAX_SUMS, Bill, BilledPlace, BillError, Bought, Entry, Kind
from flexspot.capacity.chargeback.bills.folders import MAX_LINE_BYTES, read_bill

if TYPE_CHECKING:
    from pathlib import Path

NO_NUMBERS = ("NaN", "Infinity", "=1+1", "1,5", "1e999", "9" * 40, "0x10", "\N{ARABIC-INDIC DIGIT ONE}")
SPOT = BilledPlace(Vendor.AWS, "us-east-1", "g6.xlarge", Bought.SPOT)

# Header of a legacy report as in github.com/cloud-carbon-footprint/cloud-carbon-footprint, reduced to the columns that are read.
LEGACY_HEADER = [
    "lineItem/LineItemType",
    "lineItem/UsageStartDate",
    "lineItem/UsageEndDate",
    "lineItem/ProductCode",
    "lineItem/UsageType",
    "lineItem/UsageAmount",
    "lineItem/CurrencyCode",
    "lineItem/UnblendedCost",
    "product/regionCode",
]


def read(folder: Path, content: str | bytes) -> list[Entry]:
    path = folder / "bill"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return [each for row in read_bill(path, {}) for each in row]


def without(row: dict[str, str], name: str) -> dict[str, str]:
    return {key: value for key, value in row.items() if key != name}


def refused(folder: Path, content: str | bytes) -> str:
    with pytest.raises(BillError) as refused_bill:
        read(folder, content)
    return str(refused_bill.value)


def test_a_legacy_report_says_the_same_as_cur_2_plain_and_packed(tmp_path: Path) -> None:
    by_new_name = {column(name): name for name in LEGACY_HEADER}
    legacy = table([{by_new_name[key]: value for key, value in cur_row().items()}])

    [expected] = read(tmp_path, table([cur_row()]))

    assert (expected.place, expected.hours, expected.usd) == (SPOT, Fraction(1), Decimal("0.5"))
    assert read(tmp_path, legacy) == read(tmp_path, gzip.compress(legacy.encode())) == [expected]
    assert read(tmp_path, "\ufeff" + table([cur_row()]).replace("\n", "\r\n")) == [expected]


@pytest.mark.parametrize(
    "usage, machine, bought, is_time",
    [
        ("BoxUsage:p5.48xlarge", "p5.48xlarge", Bought.ON_DEMAND, True),
        ("USW2-SpotUsage:g6e.12xlarge", "g6e.12xlarge", Bought.SPOT, True),
        ("EU-UnusedBox:p4d.24xlarge", "p4d.24xlarge", Bought.ON_DEMAND, True),
        ("APN1-Reservation:p4d.24xlarge", "p4d.24xlarge", Bought.ON_DEMAND, False),
        ("HeavyUsage:u-6tb1.112xlarge", "u-6tb1.112xlarge", Bought.ON_DEMAND, False),
        ("USE1-EKS-Auto:c6g.large-management-hours", "c6g.large", Bought.AUTO_MODE, True),
    ],
)
def test_a_usage_type_names_the_machine(usage: str, machine: str, bought: Bought, *, is_time: bool) -> None:
    assert place_of(usage, "r") == (BilledPlace(Vendor.AWS, "r", machine, bought), is_time)


@pytest.mark.parametrize("usage", ["EBS:VolumeUsage.gp3", "NatGateway-Hours", "EBSOptimized:m1.large", "", "xBoxUsage:m5.large"])
def test_a_usage_type_of_no_machine_gives_none(usage: str) -> None:
    assert place_of(usage, "r") is None


def test_the_region_is_found_where_a_report_has_it(tmp_path: Path) -> None:
    rows = [
        cur_row(product_region_code="", product='{"region": "eu-west-1", "instance_type": "g6.xlarge"}'),
        cur_row(product_region_code="", line_item_availability_zone="us-east-2b"),
        cur_row(product_region_code=""),
    ]

    assert [each.place.region for each in read(tmp_path, table(rows)) if each.place] == ["eu-west-1", "us-east-2", "(no region)"]


def test_a_row_of_google_in_another_currency_is_divided_by_its_own_rate(tmp_path: Path) -> None:
    """As Google documents currency_conversion_rate: the cost divided by it is the cost in US dollars."""
    given = [{"type": "COMMITTED_USAGE_DISCOUNT", "amount": -21.5}, {"type": "PROMOTION", "amount": -4.3}]
    sku = "G2 Instance Core running in Americas"
    rows = [
        gcp_row(sku, "86", "8", currency="EUR", currency_conversion_rate=0.86, credits=given),
        gcp_row(sku, "2", "8", currency="USD", currency_conversion_rate=1),
        gcp_row(sku, "150", "8", currency="JPY", currency_conversion_rate="150.0"),
    ]
    found = read(tmp_path, "\n".join(map(json.dumps, rows)))

    assert [(each.kind, each.usd) for each in found] == [
        *((Kind.MACHINE, 25), (Kind.MACHINE, 75), (Kind.MACHINE, -25), (Kind.CREDIT, -5)),
        *((Kind.MACHINE, 2), (Kind.MACHINE, 1)),
    ]


def test_google_rows_are_the_same_as_json_lines_and_as_csv(tmp_path: Path) -> None:
    row = gcp_row("Spot Preemptible G2 Instance Core running in Americas", "1.5", "800")
    cells = {
        **{f"{name}.{inner}": str(each) for name, value in row.items() if isinstance(value, dict) for inner, each in value.items()},
        **{name: value if isinstance(value, str) else json.dumps(value) for name, value in row.items() if not isinstance(value, dict)},
    }
    underscored = {name.replace(".", "_"): value for name, value in cells.items()}

    [found] = read(tmp_path, json.dumps(row))

    assert (found.place, found.hours, found.cluster) == (BilledPlace(Vendor.GCP, "us-central1", "g2-standard-8", Bought.SPOT), 100, True)
    assert read(tmp_path, table([cells])) == read(tmp_path, table([underscored])) == [found]


@pytest.mark.parametrize(
    "sku, machine, family, bought, hours",
    [
        ("A3Plus Instance Core running in Iowa", "a3-megagpu-8g", "a3-*", Bought.ON_DEMAND, 1),
        ("N2D AMD Instance Core running in Americas", "n2d-standard-8", "n2d-*", Bought.ON_DEMAND, 1),
        ("N1 Predefined Instance Ram running in Americas", "n1-standard-8", "n1-*", Bought.ON_DEMAND, 0),
        ("DWS Defined Duration A3 Core running in Iowa", "a3-highgpu-8g", "a3-*", Bought.FLEX_START, 1),
        ("Nvidia H100 80GB GPU attached to DWS Defined Duration VMs running in Iowa", "a3-highgpu-8g", "a3-*", Bought.FLEX_START, 0),
        ("Nvidia Tesla A100 GPU running in Americas", "a2-highgpu-1g", "a2-*", Bought.ON_DEMAND, 0),
    ],
)
def test_a_part_on_google_cloud_is_of_its_labels_machine_or_of_a_family(  # noqa: PLR0913, PLR0917 -- a row of the table
    tmp_path: Path, sku: str, machine: str, family: str, bought: Bought, hours: int
) -> None:
    [labelled] = read(tmp_path, json.dumps(gcp_row(sku, "1", "8", machine=machine)))
    [unlabelled] = read(tmp_path, json.dumps(gcp_row(sku, "1", "8", machine="")))

    assert (labelled.place, labelled.hours) == (BilledPlace(Vendor.GCP, "us-central1", machine, bought), hours)
    assert (unlabelled.place, unlabelled.hours) == (BilledPlace(Vendor.GCP, "us-central1", family, bought), hours * 8)


def test_a_gpu_of_no_family_counts_for_the_labels_machine_only(tmp_path: Path) -> None:
    sku = "Nvidia Tesla T4 GPU running in Americas"

    assert read(tmp_path, json.dumps(gcp_row(sku, "1", machine="n1-standard-8")))[0].kind is Kind.MACHINE
    assert read(tmp_path, json.dumps(gcp_row(sku, "1", machine="")))[0].kind is Kind.SERVICE


@pytest.mark.parametrize(
    "content, problem",
    [
        ("", "empty"),
        ("PAR1\x00\x00", "Parquet"),
        ("PK\x03\x04", "workbook"),
        ("a,b,c\n1,2,3\n", "not those of any bill"),
        (table([without(cur_row(), "line_item_unblended_cost")]), "missing: line_item_unblended_cost"),
        (table([without(focus_row(), "BilledCost")]), "FOCUS export, and these columns are missing: billedcost"),
        (table([cur_row()])[:-12], "row 1: it has"),
        (table([cur_row(), cur_row()])[:-1] + ',"', "cut off"),
        (table([cur_row(), cur_row(currency_code="")]), "row 2: line_item_currency_code is empty, and reports are in USD"),
        (table([focus_row(BillingCurrency="CNY")]), "row 1: BillingCurrency is CNY, and reports are in USD. Export the bill in USD"),
        (json.dumps(gcp_row("x", "1", currency="JPY")), "row 1: currency is JPY, and reports are in USD"),
        (json.dumps(gcp_row("x", "1", currency="JPY", currency_conversion_rate=0)), "row 1: currency is JPY, and reports are in USD"),
        *((table([cur_row(unblended_cost=each)]), "not a number") for each in NO_NUMBERS),
        (table([cur_row(usage_amount="-inf")]), "row 1: line_item_usage_amount is '-inf'"),
        (json.dumps(gcp_row("x", "nan")), "not a number"),
        (json.dumps(gcp_row("x", "1", credits="[")), "credits is not JSON"),
        (json.dumps(gcp_row("x", "1"))[:-5], "row 1: it is not a JSON object"),
        (json.dumps({"cost": 1}), "service_description"),
        (json.dumps(gcp_row("x", "1")) + "\n[1]\n", "row 2: it is not a JSON object"),
        (table([cur_row(usage_start_date="yesterday")]), "'yesterday', which is not a time"),
        (table([focus_row(ProviderName="Microsoft")]), "'Microsoft'"),
        (table([focus_row(SkuPriceDetails="{")]), "skupricedetails is not JSON"),
        (table([cur_row(product_region_code="", product="[1]")]), "product is no map"),
        (table([cur_row()]).encode() + b"\xff\xfe", "not UTF-8"),
        (gzip.compress(table([cur_row()] * 500).encode())[:-40], "cut off or damaged"),
        ("service_description,sku_description,cost,currency,credits,credits_amount,usage_start_time\n", "unnested"),
        ("{" + "[" * 100_000, "row 1"),
    ],
)  # fmt: skip
def test_unusable_bills_are_refused_with_the_row(tmp_path: Path, content: str | bytes, problem: str) -> None:
    assert problem in refused(tmp_path, content)


def test_the_same_bill_twice_is_refused_packed_or_not(tmp_path: Path) -> None:
    text, seen = table([cur_row()]), dict[str, str]()
    (tmp_path / "one.csv").write_text(text)
    (tmp_path / "two.csv.gz").write_bytes(gzip.compress(text.encode()))
    list(read_bill(tmp_path / "one.csv", seen))

    with pytest.raises(BillError, match=r"the same bill as one\.csv"):
        list(read_bill(tmp_path / "two.csv.gz", seen))


@pytest.mark.slow
def test_a_bomb_of_one_line_and_one_of_many_rows_are_stopped(tmp_path: Path) -> None:
    padded = table([cur_row(line_item_operation="x" * 100_000)])

    assert "longer than 4 MiB" in refused(tmp_path, gzip.compress(b"0" * (MAX_LINE_BYTES * 8)))
    assert "200 times its size" in refused(tmp_path, gzip.compress((padded + padded.partition("\n")[2] * 900).encode()))


@pytest.mark.slow
def test_many_rows_are_read_one_by_one(tmp_path: Path) -> None:
    path, count, watched = tmp_path / "long.csv", 20_000, 2_000
    header, row, _ = table([cur_row()]).split("\n")
    with path.open("w") as file:
        file.write(f"{header}\n")
        file.writelines(f"{row}\n" for _ in range(count))
    bill = Bill(0, 2**40)

    for number, charges in enumerate(read_bill(path, {})):
        if number == count - watched:
            tracemalloc.start()
        bill.add(charges)
    grown = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert (bill.machines[SPOT].usd, bill.machines[SPOT].hours) == (count // 2, count)
    # The peak of the last rows: a few of them, not a multiple of their number.
    assert grown < watched * 100


@pytest.mark.slow
def test_a_bill_of_ever_new_names_is_stopped() -> None:
    bill = Bill(0, 2**40)
    for number in range(MAX_SUMS):
        bill.add([Entry(Kind.SERVICE, Vendor.AWS, f"product {number}", Decimal(1))])

    with pytest.raises(BillError, match="different machines and services"):
        bill.add([Entry(Kind.SERVICE, Vendor.AWS, "one more", Decimal(1))])
