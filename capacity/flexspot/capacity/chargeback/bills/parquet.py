"""Reads bills in Parquet as rows of the text that CSV would have: some thousand rows at a time, and only the columns that are used.

AWS Data Exports writes amounts as doubles, times as timestamps and tags as maps: the types in
https://docs.aws.amazon.com/cur/latest/userguide/table-dictionary-cur2.html, and the tables that AWS itself declares over such files in
github.com/aws-solutions-library-samples/cloud-intelligence-dashboards-data-collection. BigQuery writes records as structs, lists of records
as lists of structs, NUMERIC as decimals: https://docs.cloud.google.com/bigquery/docs/exporting-data (all read 2026-11-27). Not tested with
a file of a real account.

A double becomes the shortest decimal that is that double again (its repr). Up to 15 digits, that is what was written into it.

Memory is bounded in three ways. A file that declares a larger unpacked size than any bill is rejected. Undeclared sizes, such as a page
longer than its footer says, or a text that a dictionary repeats in every row, meet a memory limit of the process while pyarrow reads (Linux
only). Rows longer than a bill's are rejected before Python gets their values, where a lack of memory ends the process.

Loading this module requires the extra `parquet`.
"""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as of

from flexspot.capacity.chargeback.bills.entries import BillError
from flexspot.capacity.chargeback.bills.focus import MAX_COLUMNS, MAX_EXPANSION, BillForm, form_of, most_unpacked

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

MAX_DEPTH = 12
"""Deepest nesting of columns. A list of structs is four deep."""

MAX_MEMORY_BYTES = 512 * 2**20
"""Additional memory that pyarrow may allocate, for the footer or for a batch."""

MAX_BATCH_BYTES = 32 * 2**20
"""Size limit of a batch: 16 KiB a row."""

_IN_MICROSECONDS = pc.CastOptions(pa.timestamp("us"), allow_time_truncate=True)
_BATCH_ROWS = 2048
_READ_BYTES = 2**20


@dataclass(frozen=True)
class _Chosen:
    """A column that is read."""

    field: str
    """Field of the file."""

    inner: str
    """Field of the struct if the column is one."""

    name: str
    """Its name in rows."""


class Rows:
    """Iterates over the rows of a file, each with the form of the file. `row` is the number of the last one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.row = 0

    def __iter__(self) -> Iterator[tuple[BillForm, dict[str, str]]]:
        """Yield each row with the form of the file. Raises BillError for an unusable file and OSError for an unreadable one."""
        try:
            with pa.OSFile(str(self._path), "rb") as source:
                yield from self._batches(source)
        except BillError:
            raise
        except UnicodeDecodeError as error:
            raise BillError(f"after row {self.row}: a text is not UTF-8") from error
        except MemoryError as error:
            raise BillError(
                f"after row {self.row}: what follows needs more than {MAX_MEMORY_BYTES // 2**20} MiB of memory, implausible for a bill"
            ) from error
        except (pa.ArrowException, OSError, OverflowError, ValueError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise BillError(f"after row {self.row}: it is not readable Parquet, is cut off or damaged ({_short(error)})") from error

    def _batches(self, source: Any) -> Iterator[tuple[BillForm, dict[str, str]]]:
        with _memory_limit():
            file = pq.ParquetFile(
                source,
                coerce_int96_timestamp_unit="us",
                buffer_size=_READ_BYTES,
                pre_buffer=False,
                page_checksum_verification=True,
                schema_depth_limit=MAX_DEPTH,
                # Without the library's own types, JSON of BigQuery stays text.
                arrow_extensions_enabled=False,
            )
            _refuse_bombs(file.metadata, source.size())
            form, chosen = _chosen(file.schema_arrow)
        batches = file.iter_batches(_BATCH_ROWS, columns=[*dict.fromkeys(each.field for each in chosen)], use_threads=False)
        names = [each.name for each in chosen]
        while True:
            with _memory_limit():
                batch = next(batches, None)
            if batch is None:
                break
            if batch.nbytes > MAX_BATCH_BYTES:
                raise BillError(
                    f"after row {self.row}: the next {batch.num_rows:,} rows have {batch.nbytes >> 20:,} MiB, implausible for a bill"
                )
            columns = [_texts(_column(batch, each)) for each in chosen]
            for cells in zip(*columns, strict=True):
                self.row += 1
                yield form, dict(zip(names, cells, strict=True))
        if self.row != file.metadata.num_rows:
            raise BillError(f"it has {self.row:,} rows of {file.metadata.num_rows:,}: the file is damaged")


@contextmanager
def _memory_limit() -> Generator[None]:
    """Limit the process to MAX_MEMORY_BYTES in addition to its current memory, where the system enforces it (Linux)."""
    status = Path("/proc/self/status")
    text = status.read_text(encoding="utf-8", errors="replace") if status.exists() else ""
    if (data := re.search(r"^VmData:\s+(\d+) kB$", text, re.MULTILINE)) is None:
        yield
        return
    import resource  # noqa: PLC0415 -- it is not on Windows

    has = int(data[1]) * 2**10
    before = resource.getrlimit(resource.RLIMIT_DATA)
    most = min(each for each in (*before, has + MAX_MEMORY_BYTES) if each != resource.RLIM_INFINITY)
    resource.setrlimit(resource.RLIMIT_DATA, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def _refuse_bombs(metadata: Any, size: int) -> None:
    """Raise BillError for a file that declares more columns, or a larger unpacked size, than a bill has.

    A value counts as at least one byte: a column with a single text, or none, takes next to nothing for any number of rows.
    """
    if metadata.num_columns > MAX_COLUMNS:
        raise BillError(f"it has {metadata.num_columns:,} columns, implausible for a bill")
    declared = sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
    if max(declared, metadata.num_rows * metadata.num_columns) > most_unpacked(size):
        raise BillError(f"it unpacks to more than {MAX_EXPANSION} times its size, implausible for a bill")


def _chosen(schema: Any) -> tuple[BillForm, list[_Chosen]]:
    """Return the form of the file and the columns to read, by their names in rows. Raises BillError."""
    found: list[tuple[str, str]] = []
    for field in schema:
        if pa.types.is_struct(field.type):
            # BigQuery's records: service.description.
            found += [(field.name, inner.name) for inner in field.type]
        else:
            found.append((field.name, ""))
    form = form_of([f"{name}.{inner}" if inner else name for name, inner in found])
    used = {*form.needed, *form.also}
    # Of columns with one name the last counts, as in CSV.
    by_name: dict[str, _Chosen] = {}
    for name, inner in found:
        row_name = form.column(f"{name}.{inner}" if inner else name)
        if row_name in used:
            by_name[row_name] = _Chosen(name, inner, row_name)
    for each in by_name.values():
        field = schema.field(schema.get_all_field_indices(each.field)[-1])
        _refuse_type(field.type.field(each.inner).type if each.inner else field.type, each.name)
    return form, list(by_name.values())


def _refuse_type(kind: Any, name: str) -> None:
    """Raise BillError for a type that no bill has or that does not represent cents exactly."""
    if of.is_map(kind):
        inner = (kind.item_type,)
    elif of.is_list(kind) or of.is_large_list(kind) or of.is_dictionary(kind):
        inner = (kind.value_type,)
    elif of.is_struct(kind):
        inner = tuple(each.type for each in kind)
    else:
        plain = (
            *(of.is_string, of.is_large_string, of.is_binary, of.is_large_binary),
            *(of.is_float64, of.is_decimal128, of.is_decimal256, of.is_integer, of.is_boolean, of.is_timestamp, of.is_date, of.is_null),
        )
        if not any(fits(kind) for fits in plain):
            why = "which does not hold cents exactly" if of.is_floating(kind) else "which no bill has"
            raise BillError(f"its column {name} is of type {str(kind)[:60]}, {why}; double, decimal, timestamp, string and map are read")
        return
    for each in inner:
        _refuse_type(each, name)


def _column(batch: Any, chosen: _Chosen) -> Any:
    found = batch.column(batch.schema.get_all_field_indices(chosen.field)[-1])
    return found.flatten()[found.type.get_field_index(chosen.inner)] if chosen.inner else found


def _texts(column: Any) -> list[str]:
    """Return the text of each row's cell as CSV has it: JSON for nested values, empty for null."""
    if of.is_timestamp(column.type):
        # Without a zone and in microseconds, as Python's datetime expects: both kinds of timestamps are in UTC.
        column = column.cast(options=_IN_MICROSECONDS)
    return [_text(each) for each in column.to_pylist(maps_as_pydicts="strict")]


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Decimal):
        written = f"{value:f}"
        return written.rstrip("0").rstrip(".") if "." in written else written
    return _json(value) if isinstance(value, (dict, list)) else str(value)


_json = json.JSONEncoder(ensure_ascii=False, default=_text).encode


def _short(error: Exception) -> str:
    """Return a library's error message on one line, shortened."""
    return re.sub(r"\s+", " ", str(error) or type(error).__name__)[:160]
