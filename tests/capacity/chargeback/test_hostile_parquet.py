"""Parquet that is cut, damaged or meant to harm: it is refused with a reason, before it fills the memory."""

from __future__ import annotations

import io
import struct
from typing import TYPE_CHECKING, Any

import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from made_bills import cur_row
from made_parquet import export_table, parquet_file

from capacity.chargeback.bills import parquet
from capacity.chargeback.bills.entries import BillError
from capacity.chargeback.bills.files import is_parquet, read_bill
from capacity.chargeback.bills.parquet_pages import MAX_PAGE_BYTES, pages

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
    """The columns that say something."""
    row = cur_row(product='{"group": "a"}', **values)
    return export_table("cur_2", [row]).select(NEEDED).take(pa.array([0] * count))


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
    with pytest.raises(BillError) as told:
        list(read_bill(path, {}))
    assert "\n" not in str(told.value)
    return str(told.value)


@pytest.mark.parametrize("kept", [4, 8, 11, 12, 300, -1, -4, -8, -200])
def test_a_file_that_is_cut_off_is_refused(tmp_path: Path, whole: bytes, kept: int) -> None:
    assert "cut off" in refused(tmp_path, whole[:kept])


def test_a_file_whose_footer_is_encrypted_is_refused(tmp_path: Path, whole: bytes) -> None:
    assert "encrypted" in refused(tmp_path, b"PARE" + whole[4:-4] + b"PARE")


def test_a_footer_that_is_too_long_or_none_is_refused(tmp_path: Path, whole: bytes) -> None:
    length = parquet.MAX_FOOTER_BYTES + 1

    assert "its footer has" in refused(tmp_path, b"PAR1" + bytes(length) + struct.pack("<I", length) + b"PAR1")
    assert "it is not readable Parquet" in refused(tmp_path, b"PAR1" + b"\xff" * 40 + struct.pack("<I", 40) + b"PAR1")
    assert "damaged" in refused(tmp_path, whole[:4] + bytes(len(whole) - 8 - _footer(whole)) + whole[-8 - _footer(whole) :])


def _footer(content: bytes) -> int:
    return int(struct.unpack("<I", content[-8:-4])[0])


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


@FUZZED
@given(header=st.binary(max_size=60), length=st.integers(0, 200))
@example(header=b"\x19\xfb\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", length=80)
@example(header=b"\x1c" * 60, length=60)
@example(header=b"\x19\x19" * 30, length=60)
@example(header=b"\x15\x00\x15\x01\x15\x00\x00", length=7)
def test_bytes_that_are_no_pages_are_refused_and_nothing_else(header: bytes, length: int) -> None:
    try:
        found = list(pages(io.BytesIO(header), 0, length))
    except BillError:
        return
    assert all(unpacked >= 0 and values >= 0 for unpacked, values in found)


def test_pages_are_those_that_the_library_wrote(tmp_path: Path) -> None:
    made = small(5_000)
    for version in ("1.0", "2.0"):
        path = parquet_file(tmp_path / version, made, data_page_size=512, data_page_version=version, write_page_index=True)
        metadata, found = pq.ParquetFile(path).metadata, 0
        with path.open("rb") as raw:
            for chunk in map(metadata.row_group(0).column, range(metadata.num_columns)):
                first = chunk.dictionary_page_offset or chunk.data_page_offset
                whole_chunk = list(pages(raw, first, chunk.total_compressed_size))
                inside = [values for _, values in whole_chunk[1 if chunk.has_dictionary_page else 0 :]]
                assert sum(inside) == chunk.num_values
                assert 0 < sum(unpacked for unpacked, _ in whole_chunk) <= chunk.total_uncompressed_size
                found += len(whole_chunk)
        assert found > 3 * metadata.num_columns


@pytest.mark.slow
def test_a_page_that_unpacks_to_too_much_is_refused_before_it_is(tmp_path: Path) -> None:
    long = small().set_column(1, NEEDED[1], pa.array(["x" * (MAX_PAGE_BYTES + 1)]))
    before = pa.total_allocated_bytes()

    assert "one of its pages unpacks to 67,1" in refused(tmp_path, long, compression="zstd", use_dictionary=False)
    assert pa.total_allocated_bytes() - before < MAX_PAGE_BYTES + 2**20


@pytest.mark.slow
def test_a_file_that_unpacks_to_two_hundred_times_its_size_is_refused(tmp_path: Path) -> None:
    padded = small(80).set_column(1, NEEDED[1], pa.array(["x" * 2**20] * 80))

    assert "200 times its size" in refused(tmp_path, padded, compression="zstd", use_dictionary=False, write_batch_size=1)


@pytest.mark.slow
def test_a_value_counts_as_a_byte_at_least(tmp_path: Path) -> None:
    nothing = {name: pa.nulls(12_000_000, pa.string()) for name in NEEDED[:8] if name != NEEDED[1]}

    assert "200 times its size" in refused(tmp_path, pa.table({NEEDED[1]: pa.nulls(12_000_000, pa.string())} | nothing))


@pytest.mark.slow
def test_one_long_text_for_every_row_takes_no_more_memory_than_is_allowed(tmp_path: Path) -> None:
    count = 8_000
    text = pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), pa.array(["x" * 900_000]))
    long = small(count).set_column(1, NEEDED[1], text)

    assert "the next rows need more than 512 MiB" in refused(tmp_path, long, store_schema=False)
    # The limit is lifted again.
    assert len(list(read_bill(parquet_file(tmp_path / "fine", small()), {}))) == 1


def test_maps_with_more_entries_than_a_bill_has_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tags = pa.array([[("a", "b")] * 30] * 10, pa.map_(pa.string(), pa.string()))
    made = small(10).set_column(9, "resource_tags", tags)

    monkeypatch.setattr(parquet, "_MAX_BATCH_ENTRIES", 299)
    assert "resource_tags has 300 entries in 10 rows" in refused(tmp_path, made)
    monkeypatch.setattr(parquet, "MAX_ENTRIES", 299)
    assert "has 300 entries in a row group" in refused(tmp_path, made)
    monkeypatch.setattr(parquet, "MAX_ROW_GROUPS", 9)
    assert "10 row groups" in refused(tmp_path, made, row_group_size=1)
