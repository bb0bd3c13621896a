"""Truncated, damaged or malicious Parquet is refused with a reason before it fills the memory."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from made_bills import cur_row
from made_parquet import export_table, parquet_file

from flexspot.capacity.chargeback.bills import parquet
from flexspot.capacity.chargeback.bills.entries import BillError
from flexspot.capacity.chargeback.bills.folders import is_parquet, read_bill

if TYPE_CHECKING:
    from pathlib import Path

FUZZED = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
NEEDED = [
    "line_item_line_item_type",
    "line_item_product_code",
    "line_item_usage_type",
    "line_item_usage_amount",
    "line_item_unblended_cost",
]
NEEDED += ["line_item_currency_code", "line_item_usage_start_date", "product_region_code", "product", "resource_tags"]


def small(count: int = 1, **values: str) -> pa.Table:
    """Return the columns with content."""
    row = cur_row(product='{"group": "a"}', **values)
    return export_table([row]).select(NEEDED).take(pa.array([0] * count))


@pytest.fixture(scope="module")
def whole() -> bytes:
    written = io.BytesIO()
    pq.write_table(small(40), written, compression="snappy", row_group_size=25, write_page_checksum=True)
    return written.getvalue()


def refused(folder: Path, content: bytes | pa.Table, name: str = "bill", **layout: Any) -> str:
    path = folder / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        parquet_file(path, content, **layout)
    with pytest.raises(BillError) as refused_file:
        list(read_bill(path, {}))
    assert "\n" not in str(refused_file.value)
    return str(refused_file.value)


@pytest.mark.parametrize("kept", [4, 8, 11, 12, 300, -1, -4, -8, -200])
def test_a_file_that_is_cut_off_is_refused(tmp_path: Path, whole: bytes, kept: int) -> None:
    assert "cut off" in refused(tmp_path, whole[:kept])


def test_a_file_whose_footer_is_encrypted_is_refused(tmp_path: Path, whole: bytes) -> None:
    assert "encrypted" in refused(tmp_path, b"PARE" + whole[4:-4] + b"PARE")


@pytest.mark.parametrize("length", [2**24 + 1, 2**31, 2**32 - 1])
def test_an_invalid_footer_or_one_longer_than_its_file_is_refused(tmp_path: Path, length: int) -> None:
    footer = bytes(length) if length < 2**25 else b"\xff" * 40

    assert "it is not readable Parquet" in refused(tmp_path, b"PAR1" + footer + length.to_bytes(4, "little") + b"PAR1")


@pytest.mark.slow
@FUZZED
@given(changes=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=4))
@example(changes=[(0.999, 255)])
def test_changed_bytes_are_read_or_refused_and_nothing_else(tmp_path: Path, whole: bytes, changes: list[tuple[float, int]]) -> None:
    content = bytearray(whole)
    for place, byte in changes:
        content[int(place * len(content))] = byte
    path = tmp_path / "bill"
    path.write_bytes(content)
    if not is_parquet(path):
        return
    try:
        rows = list(read_bill(path, {}))
    except BillError:
        return
    assert len(rows) == 40


def test_a_value_counts_as_a_byte_at_least(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # At most its own size.
    monkeypatch.setattr(parquet, "most_unpacked", int)

    assert "200 times its size" in refused(tmp_path, pa.table(dict.fromkeys(NEEDED[:8], pa.nulls(1_500, pa.string()))))


@pytest.mark.slow
def test_one_long_text_for_every_row_takes_no_more_memory_than_is_allowed(tmp_path: Path) -> None:
    count = 8_000
    text = pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), pa.array(["x" * 900_000]))
    long = small(count).set_column(1, NEEDED[1], text)

    assert "what follows needs more than 512 MiB of memory" in refused(tmp_path, long, store_schema=False)
    # The limit is removed again.
    assert len(list(read_bill(parquet_file(tmp_path / "fine", small()), {}))) == 1


def varint(number: int, length: int) -> bytes:
    """Return a number as Thrift writes it in a footer, in this number of bytes."""
    return bytes((number << 1) >> 7 * place & 127 | 128 * (place < length - 1) for place in range(length))


@pytest.mark.slow
def test_rows_that_are_longer_than_their_footer_declares_are_refused(tmp_path: Path) -> None:
    long = small().set_column(1, NEEDED[1], pa.array(["x" * 80 * 2**20]))
    path = parquet_file(tmp_path / "long", long, compression="zstd", use_dictionary=False)
    declared = pq.ParquetFile(path).metadata.row_group(0).total_byte_size
    content = path.read_bytes()
    assert "200 times its size" in refused(tmp_path, content)

    lying = content.replace(varint(declared, 4), varint(1, 4))
    assert lying != content
    assert "the next 1 rows have 80 MiB" in refused(tmp_path, lying)
