"""Reads bills in Parquet, some thousand rows at a time and only the columns that say something, as rows of the text that CSV would have.

AWS Data Exports writes amounts as doubles, times as timestamps and tags as maps: the types in
https://docs.aws.amazon.com/cur/latest/userguide/table-dictionary-cur2.html, and the tables that AWS itself declares over such files in
github.com/aws-solutions-library-samples/cloud-intelligence-dashboards-data-collection. BigQuery writes records as structs, lists of records
as lists of structs, NUMERIC as decimals: https://docs.cloud.google.com/bigquery/docs/exporting-data (all read 2026-11-27). No file of an
account of our own has been read.

A double becomes the shortest decimal that is that double again (its repr), which is what was written into it, up to 15 digits.

Loading this takes the extra `parquet`.
"""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as of

from capacity.chargeback.bills.entries import BillError
from capacity.chargeback.bills.forms import MAX_COLUMNS, MAX_EXPANSION, Form, form_of, most_unpacked
from capacity.chargeback.bills.parquet_pages import ENCRYPTED, MAGIC, pages

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from decimal import Decimal

MAX_FOOTER_BYTES = 16 * 2**20
MAX_DEPTH = 12
"""How deep columns may be nested. A list of structs is four deep."""

MAX_ROW_GROUPS = 100_000
MAX_ENTRIES = 32 * 2**20
"""How many entries the maps of a column may have in a row group, all of which may be of one row."""

MAX_MEMORY_BYTES = 512 * 2**20
"""How much more memory the rows of a batch may take. A dictionary gives any number of rows one long text, which no header tells."""

_BATCH_ROWS = 8192
_MAX_BATCH_ENTRIES = 4_000_000
_READ_BYTES = 2**20
_TAIL = 8

_json = json.JSONEncoder(ensure_ascii=False).encode
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_A_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


@dataclass(frozen=True)
class _Chosen:
    """A column that is read: the field of the file, the struct's own field where it is one, and the name that a row has for it."""

    field: str
    inner: str
    name: str


class Rows:
    """The rows of a file, each with the form that the file has; `row` is the number of the last one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.row = 0

    def __iter__(self) -> Iterator[tuple[Form, dict[str, str]]]:
        """Raises BillError for what is no such file or cannot be used, and OSError for what cannot be read."""
        with self._path.open("rb") as raw:
            _refuse_frame(raw)
            yield from self._read(raw)

    def _read(self, raw: IO[bytes]) -> Iterator[tuple[Form, dict[str, str]]]:
        try:
            with pa.OSFile(str(self._path), "rb") as source:
                yield from self._batches(source, raw)
        except BillError:
            raise
        except UnicodeDecodeError as error:
            raise BillError(f"after row {self.row}: a text is not UTF-8") from error
        except MemoryError as error:
            raise BillError(
                f"after row {self.row}: the next rows need more than {MAX_MEMORY_BYTES // 2**20} MiB, as no bill's do"
            ) from error
        except (pa.ArrowException, OSError, OverflowError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise BillError(f"after row {self.row}: it is not readable Parquet, or is damaged ({_short(error)})") from error

    def _batches(self, source: Any, raw: IO[bytes]) -> Iterator[tuple[Form, dict[str, str]]]:
        # A footer's lists and texts are no longer than the footer; the limits are the library's own against what claims to be.
        limits = {"thrift_string_size_limit": MAX_FOOTER_BYTES, "thrift_container_size_limit": 2**20, "schema_depth_limit": MAX_DEPTH}
        # Without the library's own types, JSON of BigQuery is the text that it is.
        told = pq.ParquetFile(source, arrow_extensions_enabled=False, **limits)
        if told.metadata.num_columns > MAX_COLUMNS:
            raise BillError(f"it has {told.metadata.num_columns:,} columns, as no bill has")
        form, chosen = _chosen(told.schema_arrow)
        _refuse_bombs(told.metadata, raw, _leaves(told, {each.field for each in chosen}))
        file = pq.ParquetFile(
            source,
            metadata=told.metadata,
            coerce_int96_timestamp_unit="us",
            buffer_size=_READ_BYTES,
            pre_buffer=False,
            page_checksum_verification=True,
            arrow_extensions_enabled=False,
            **limits,
        )
        batches = file.iter_batches(_BATCH_ROWS, columns=[*dict.fromkeys(each.field for each in chosen)], use_threads=False)
        names = [each.name for each in chosen]
        while True:
            with _held_memory():
                if (batch := next(batches, None)) is None:
                    break
                columns = [_texts(_column(batch, each), each.name) for each in chosen]
            for cells in zip(*columns, strict=True):
                self.row += 1
                yield form, dict(zip(names, cells, strict=True))
        if self.row != told.metadata.num_rows:
            raise BillError(f"it has {self.row:,} rows of {told.metadata.num_rows:,}: the file is damaged")


@contextmanager
def _held_memory() -> Generator[None]:
    """Lets the process take no more than MAX_MEMORY_BYTES beyond what it has, where the system can hold it to that (Linux)."""
    status = Path("/proc/self/status")
    told = status.read_text(encoding="utf-8", errors="replace") if status.exists() else ""
    if (data := re.search(r"^VmData:\s+(\d+) kB$", told, re.MULTILINE)) is None:
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


def _refuse_frame(raw: IO[bytes]) -> None:
    """Raises BillError for a file that does not end as such files do."""
    size = raw.seek(0, 2)
    if size < 2 * len(MAGIC) + 4:
        raise BillError("it is a Parquet file that is cut off")
    raw.seek(size - _TAIL)
    tail = raw.read(_TAIL)
    if tail[4:] == ENCRYPTED:
        raise BillError("it is an encrypted Parquet file; export the bill without encryption of columns")
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != MAGIC or length > size - _TAIL:
        raise BillError("it is a Parquet file that is cut off: its end is missing")
    if length > MAX_FOOTER_BYTES:
        raise BillError(f"its footer has {length:,} bytes, as no bill's has; {MAX_FOOTER_BYTES:,} are allowed")


def _chosen(schema: Any) -> tuple[Form, list[_Chosen]]:
    """What the file is, and which of its columns are read, by the names that rows have. Raises BillError."""
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
    """Raises BillError for a type whose values no bill has, or that does not hold cents."""
    if of.is_map(kind):
        inner = (kind.key_type, kind.item_type)
    elif of.is_list(kind) or of.is_large_list(kind):
        inner = (kind.value_type,)
    elif of.is_struct(kind):
        inner = tuple(each.type for each in kind)
    elif of.is_dictionary(kind):
        inner = (kind.value_type,)
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


def _leaves(file: Any, fields: set[str]) -> set[str]:
    """The paths of what is read of these fields."""
    paths = (file.schema.column(number).path for number in range(file.metadata.num_columns))
    return {path for path in paths if any(path == each or path.startswith(f"{each}.") for each in fields)}


def _refuse_bombs(metadata: Any, raw: IO[bytes], paths: set[str]) -> None:
    """Raises BillError for a file that unpacks to more than a bill does, before anything of it is unpacked.

    A value counts as a byte at least: a column of one text, or of none, takes next to nothing for any number of rows.
    """
    size = raw.seek(0, 2)
    most, unpacked = most_unpacked(size), 0
    if metadata.num_row_groups > MAX_ROW_GROUPS:
        raise BillError(f"it has {metadata.num_row_groups:,} row groups, as no bill has")
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for chunk in map(group.column, range(group.num_columns)):
            if chunk.path_in_schema not in paths:
                continue
            first = min(filter(None, (chunk.dictionary_page_offset, chunk.data_page_offset)), default=0)
            length = chunk.total_compressed_size
            if first < len(MAGIC) or length < 0 or first + length > size:
                raise BillError("the file is cut off or damaged (a column is outside of it)")
            entries = 0
            for page, values in pages(raw, first, length):
                entries += values
                unpacked += max(page, values)
                if unpacked > most:
                    raise BillError(f"it unpacks to more than {MAX_EXPANSION} times its size, as no bill does")
            if entries > MAX_ENTRIES and "." in chunk.path_in_schema:
                raise BillError(f"its column {chunk.path_in_schema[:60]!r} has {entries:,} entries in a row group, as no bill has")


def _column(batch: Any, chosen: _Chosen) -> Any:
    found = batch.column(batch.schema.get_all_field_indices(chosen.field)[-1])
    return found.flatten()[found.type.get_field_index(chosen.inner)] if chosen.inner else found


def _texts(column: Any, name: str) -> list[str]:
    """The text of each row's cell, as CSV has it: JSON for what is nested, nothing for null."""
    if of.is_map(column.type) or of.is_list(column.type) or of.is_large_list(column.type) or of.is_struct(column.type):
        return ["" if each is None else _json(each) for each in _nested(column, name)]
    return ["" if each is None else each for each in _plain(column, name)]


def _nested(column: Any, name: str) -> list[Any]:
    """Maps as dicts, lists as lists, structs as dicts, in which every value is text or None."""
    if of.is_map(column.type):
        first, count, spans = _spans(column, name)
        keys, items = (_nested(each.slice(first, count), name) for each in (column.keys, column.items))
        return [None if span is None else dict(zip(map(str, keys[span]), items[span], strict=True)) for span in spans]
    if of.is_list(column.type) or of.is_large_list(column.type):
        first, count, spans = _spans(column, name)
        values = _nested(column.values.slice(first, count), name)
        return [None if span is None else values[span] for span in spans]
    if of.is_struct(column.type):
        fields = [each.name for each in column.type]
        rows = zip(*(_nested(each, name) for each in column.flatten()), strict=True)
        return [
            dict(zip(fields, row, strict=True)) if there else None for row, there in zip(rows, column.is_valid().to_pylist(), strict=True)
        ]
    return _plain(column, name)


def _spans(column: Any, name: str) -> tuple[int, int, list[slice | None]]:
    """Which values of a map or a list these rows have: the first, how many, and the part of them that is each row's.

    Raises BillError where they are too many.
    """
    offsets = column.offsets.to_pylist()
    first, count = offsets[0], offsets[-1] - offsets[0]
    if count > _MAX_BATCH_ENTRIES:
        raise BillError(f"{name} has {count:,} entries in {len(column):,} rows, as no bill has")
    there = column.is_valid().to_pylist()
    spans = (slice(start - first, end - first) for start, end in pairwise(offsets))
    return first, count, [span if valid else None for span, valid in zip(spans, there, strict=True)]


def _plain(column: Any, name: str) -> list[Any]:
    """Text, or None, for each value."""
    kind = column.type
    if of.is_dictionary(kind):
        column = column.dictionary_decode()
        kind = column.type
    if of.is_string(kind) or of.is_large_string(kind):
        return list(column.to_pylist())
    if of.is_binary(kind) or of.is_large_binary(kind):
        return [None if each is None else each.decode() for each in column.to_pylist()]
    if of.is_timestamp(kind):
        return [None if each is None else _moment(each, _A_SECOND[kind.unit], name) for each in column.cast(pa.int64()).to_pylist()]
    written: Callable[[Any], str] = repr if of.is_float64(kind) else _decimal if of.is_decimal(kind) else _word
    return [None if each is None else written(each) for each in column.to_pylist()]


@lru_cache(maxsize=4096)
def _moment(ticks: int, a_second: int, name: str) -> str:
    """A time as text, in UTC: that is what timestamps without a zone are in, too."""
    seconds, rest = divmod(ticks, a_second)
    try:
        found = _EPOCH + timedelta(seconds=seconds, microseconds=rest * 10**6 // a_second)
    except OverflowError:
        raise BillError(f"{name} has a time that no calendar has") from None
    return found.isoformat()


def _decimal(value: Decimal) -> str:
    written = format(value, "f")
    return written.rstrip("0").rstrip(".") if "." in written else written


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _short(error: Exception) -> str:
    """What a library says, in a line without what only its makers need."""
    return re.sub(r"\s+", " ", str(error) or type(error).__name__)[:160]
