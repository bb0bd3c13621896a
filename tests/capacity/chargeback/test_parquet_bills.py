"""Bills in Parquet, with the columns and types that AWS and BigQuery write. They agree with CSV, to the cent and to the byte."""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from made_bills import cur_row, gcp_row, node, report_file, table
from made_parquet import COLUMNS, export_table, parquet_file

from flexspot.capacity.chargeback.bills.entries import Bill, BillError
from flexspot.capacity.chargeback.bills.folders import read_bill
from flexspot.capacity.chargeback.reconciling import reconcile
from flexspot.capacity.chargeback.saved_report import read_report
from flexspot.infra.cli.money.saved_reports import reconcile_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from flexspot.capacity.chargeback.bills.entries import Entry

PROPERTY = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

AMOUNTS = st.one_of(
    st.decimals(-(10**6), 10**6, places=10, allow_nan=False).map(str),
    st.floats(-1e9, 1e9, allow_nan=False).filter(lambda each: each == 0 or abs(each) > 1e-25).map(repr),
    st.sampled_from(["0", "-0.0", "1e-07", "0.1", "0.30000000000000004", "123456789.01"]),
)
TAGS = st.dictionaries(st.sampled_from(["aws_eks_cluster_name", "user_team", "user_ö\u2028"]), st.text(max_size=8), max_size=3)
HOURS = st.integers(0, 24 * 31 - 1).map(lambda hour: f"2026-10-{1 + hour // 24:02}T{hour % 24:02}:00:00.000Z")
USAGE = ["SpotUsage:g6.xlarge", "USW2-BoxUsage:p4d.24xlarge", "USE1-EKS-Auto:c6g.large-management-hours", "EBS:VolumeUsage.gp3", ""]
LAYOUTS = st.fixed_dictionaries(
    {
        "row_group_size": st.integers(1, 9),
        "data_page_size": st.sampled_from([64, 2**20]),
        "dictionary_pagesize_limit": st.sampled_from([60, 2**20]),
        "use_dictionary": st.booleans(),
        "compression": st.sampled_from(["none", "snappy", "gzip", "zstd"]),
        "data_page_version": st.sampled_from(["1.0", "2.0"]),
        "store_schema": st.booleans(),
        "write_page_checksum": st.booleans(),
        "version": st.sampled_from(["1.0", "2.4", "2.6"]),
    }
)


def json_or_nothing(value: dict[str, str]) -> str:
    return json.dumps(value) if value else ""


CUR_ROWS = st.lists(
    st.builds(
        cur_row,
        line_item_type=st.sampled_from(["Usage", "SavingsPlanCoveredUsage", "SavingsPlanNegation", "Tax", "Credit", "EdpDiscount"]),
        usage_start_date=HOURS,
        usage_type=st.sampled_from(USAGE),
        usage_amount=AMOUNTS,
        unblended_cost=AMOUNTS,
        net_unblended_cost=st.one_of(st.just(""), AMOUNTS),
        product=st.dictionaries(st.sampled_from(["region", "region_code", "group"]), st.text("ab-1", max_size=6)).map(json_or_nothing),
        product_region_code=st.sampled_from(["us-east-1", ""]),
        resource_tags=TAGS.map(json_or_nothing),
        identity_line_item_id=st.sampled_from(["", "a", "b"]),
    ),
    min_size=1,
    max_size=12,
)


def read(path: Path) -> list[Entry]:
    return [each for row in read_bill(path, {}) for each in row]


def reconciled(folder: Path, bill_file: Path) -> str:
    month = read_report(report_file(folder, node(hours=40), node("p4d.24xlarge", "900.00", 30, capacity_type="on-demand")))
    bill = Bill(month.period.start, month.period.end)
    for row in read_bill(bill_file, {}):
        bill.add(row)
    return reconcile_json(reconcile(month, bill), Decimal(2))


@pytest.mark.slow
@PROPERTY
@given(rows=CUR_ROWS, layout=LAYOUTS)
def test_parquet_reconciles_as_the_csv_of_the_same_rows_does_to_the_byte(
    tmp_path: Path, rows: list[dict[str, str]], layout: dict[str, Any]
) -> None:
    text = tmp_path / "bill.csv"
    text.write_text(table([{name: each.get(name, "") for name in COLUMNS} for each in rows]), encoding="utf-8")
    packed = parquet_file(tmp_path / "bill.parquet", export_table(rows), **layout)

    assert reconciled(tmp_path, packed) == reconciled(tmp_path, text)


def test_what_bigquery_exports_says_the_same_as_its_json_lines(tmp_path: Path) -> None:
    credit = {"name": "CUD", "full_name": "", "type": "COMMITTED_USAGE_DISCOUNT", "amount": -0.7}
    rows = [
        gcp_row("Spot Preemptible G2 Instance Core running in Americas", "1.5", "800"),
        gcp_row("G2 Instance Core running in Americas", "2.1", "8", credits=[credit], labels=[]),
        gcp_row("Network Internet Egress", "0.3", machine="", location=None),
    ]
    lines = tmp_path / "bill.json"
    lines.write_text("".join(f"{json.dumps(each)}\n" for each in rows))
    made = pa.Table.from_pylist([{key: _timed(key, value) for key, value in each.items()} for each in rows])

    assert made.schema.field("usage_start_time").type == pa.timestamp("us", tz="UTC")
    for decimals in (False, True):
        if decimals:
            # A view of the export may have its costs as NUMERIC.
            place = made.schema.get_field_index("cost")
            made = made.set_column(place, "cost", made.column("cost").cast(pa.decimal128(38, 9)))
        found = read(parquet_file(tmp_path / "bill.parquet", made))
        assert found == read(lines)
        assert [each.usd for each in found][-1] == Decimal("0.3")


def _timed(key: str, value: Any) -> Any:
    return datetime.fromisoformat(value.removesuffix(" UTC")).replace(tzinfo=UTC) if key.endswith("_time") else value


WHEN = datetime(2026, 10, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    "name, column",
    [
        ("line_item_usage_start_date", pa.array([WHEN], pa.timestamp("s"))),
        ("line_item_usage_start_date", pa.array([WHEN], pa.timestamp("us", tz="UTC"))),
        ("line_item_usage_start_date", pa.array([WHEN], pa.timestamp("ns", tz="America/New_York"))),
        ("line_item_usage_start_date", pa.array([date(2026, 10, 5)])),
        ("line_item_unblended_cost", pa.array([Decimal("0.5")], pa.decimal256(60, 38))),
        ("line_item_product_code", pa.array([b"AmazonEC2"])),
        ("line_item_product_code", pa.array(["AmazonEC2"]).dictionary_encode()),
        ("line_item_usage_end_date", pa.array([None], pa.null())),
        ("product", pa.array([[("a", None)]], pa.map_(pa.string(), pa.string()))),
    ],
)
def test_columns_of_other_types_have_the_same_values(tmp_path: Path, name: str, column: pa.Array) -> None:
    whole = export_table([cur_row()])
    [expected] = read(parquet_file(tmp_path / "expected", whole))
    [found] = read(parquet_file(tmp_path / "bill", whole.set_column(whole.schema.get_field_index(name), name, column)))

    assert (found.usd, found.hours, found.start, found.what) == (expected.usd, expected.hours, expected.start, expected.what)


def test_text_that_is_declared_as_json_is_text(tmp_path: Path) -> None:
    whole = export_table([cur_row()])
    tags = pa.array(['{"aws_eks_cluster_name": "a"}'], pa.json_())
    made = whole.set_column(whole.schema.get_field_index("resource_tags"), "resource_tags", tags)

    assert read(parquet_file(tmp_path / "bill", made, store_schema=False))[0].cluster


def test_times_as_hive_wrote_them_are_read(tmp_path: Path) -> None:
    whole = export_table([cur_row()])

    assert read(parquet_file(tmp_path / "bill", whole, use_deprecated_int96_timestamps=True)) == read(parquet_file(tmp_path / "b", whole))


@pytest.mark.slow
def test_a_long_row_group_is_read_some_thousand_rows_at_a_time(tmp_path: Path) -> None:
    count = 40_000
    whole = export_table([cur_row(product=json.dumps({"group": "x" * 400}))]).take(pa.array([0] * count))
    path = parquet_file(tmp_path / "long", whole, row_group_size=count)
    held, before = whole.nbytes, pa.total_allocated_bytes()
    del whole
    rows: Iterator[list[Entry]] = read_bill(path, {})
    next(rows)
    most = max(pa.total_allocated_bytes() for _ in rows)

    assert held > 16_000_000
    assert most - (before - held) < held / 3


CHANGES: list[tuple[Callable[[pa.Table], pa.Table], str]] = [
    (lambda whole: whole.drop_columns(["line_item_unblended_cost"]), "columns are missing: line_item_unblended_cost"),
    (lambda _: pa.table({"a": [1]}), "not those of any bill"),
    (lambda whole: _set(whole, "line_item_unblended_cost", pa.array([0.5], pa.float32())), "type float, which does not hold cents exactly"),
    (
        lambda whole: _set(whole, "line_item_unblended_cost", pa.array([5], pa.duration("s"))),
        "line_item_unblended_cost is of type duration",
    ),
    (lambda whole: _set(whole, "product", pa.array([b"abcd"], pa.binary(4))), "product is of type fixed_size_binary"),
    (lambda whole: _set(whole, "line_item_unblended_cost", pa.array([[1.5]])), "row 1: line_item_unblended_cost is '[1.5]'"),
    (lambda whole: _set(whole, "line_item_unblended_cost", pa.array([float("nan")])), "row 1: line_item_unblended_cost is 'nan'"),
    (lambda whole: _set(whole, "line_item_unblended_cost", pa.array([float("-inf")])), "'-inf', which is not a number"),
    (lambda whole: _set(whole, "line_item_usage_amount", pa.array([True])), "'true', which is not a number"),
    (lambda whole: _set(whole, "line_item_usage_start_date", pa.array([1.5])), "'1.5', which is not a time"),
    (lambda whole: _set(whole, "line_item_usage_start_date", pa.array([2**62], pa.timestamp("ms"))), "out of bounds timestamp"),
    (lambda whole: _set(whole, "line_item_product_code", pa.array([b"\xff\xfe"])), "a text is not UTF-8"),
    (lambda whole: whole.append_column("line_item_unblended_cost", pa.array([0.5])), "line_item_unblended_cost is there more than once"),
    (lambda _: pa.table({f"c{number}": [1] for number in range(2_001)}), "2,001 columns, implausible for a bill"),
    (lambda whole: whole.append_column("product_region", _deep(12)), "nested"),
]


def _set(whole: pa.Table, name: str, column: pa.Array) -> pa.Table:
    return whole.set_column(whole.schema.get_field_index(name), name, column)


def _deep(depth: int) -> pa.Array:
    kind: pa.DataType = pa.int64()
    for _ in range(depth):
        kind = pa.struct([("a", kind)])
    return pa.array([None], kind)


@pytest.mark.parametrize("change, problem", CHANGES)
def test_unusable_parquet_is_refused_with_the_column_or_row(tmp_path: Path, change: Callable[[pa.Table], pa.Table], problem: str) -> None:
    path = parquet_file(tmp_path / "bill", change(export_table([cur_row(product_region_code="")])))
    with pytest.raises(BillError, match=re.escape(problem)):
        read(path)
