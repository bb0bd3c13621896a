"""Reads bills out of files, a row at a time: their columns tell which kind of bill they are, and nothing in them is trusted."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import zlib
from itertools import chain
from typing import IO, TYPE_CHECKING, Any

from flexspot.capacity.chargeback.bills import gcp
from flexspot.capacity.chargeback.bills.entries import BillError
from flexspot.capacity.chargeback.bills.forms import GOOGLE, MAX_EXPANSION, BillForm, form_of, most_unpacked

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from flexspot.capacity.chargeback.bills.entries import Entry
    from flexspot.capacity.chargeback.bills.parquet import Rows


MAX_LINE_BYTES = 4 * 2**20
"""No line of a bill is longer; one that is would fill the memory."""


def is_parquet(path: Path) -> bool:
    """Whether a file begins as one of Parquet does, encrypted or not. Raises OSError."""
    with path.open("rb") as raw:
        return raw.read(4) in {b"PAR1", b"PARE"}


def read_bill(path: Path, seen: dict[str, str]) -> Iterator[list[Entry]]:
    """The entries of each row of a bill.

    `seen` holds the fingerprints of the files read before and gets this one's, if it has rows: parts that an export empties are all the
    same. Raises BillError, which names the row, for what cannot be used, OSError for what cannot be read, and ImportError for Parquet
    without the extra that reads it.
    """
    rows = 0
    with path.open("rb") as raw:
        if is_parquet(path):
            # Its library is an extra, takes a tenth of a second to load, and is needed for this alone.
            from flexspot.capacity.chargeback.bills.parquet import Rows  # noqa: PLC0415

            table = Rows(path)
            digest, found = hashlib.file_digest(raw, "sha256"), _entries(table, table)
        elif path.suffix == ".parquet" and path.stat().st_size:
            raise BillError("it does not begin as Parquet does, whatever its name says; download it again")
        else:
            counted = _Bytes(raw, path.stat().st_size)
            digest, found = counted.digest, _text_rows(counted)
        for row in found:
            rows += 1
            yield row
    fingerprint = digest.hexdigest()
    if rows and fingerprint in seen:
        raise BillError(f"it is the same bill as {seen[fingerprint]}: each may be given once")
    if rows:
        seen[fingerprint] = path.name


class _Bytes:
    """The bytes of a file, unpacked where they are packed; lines of bounded length."""

    def __init__(self, raw: IO[bytes], size: int) -> None:
        start = raw.read(4)
        raw.seek(0)
        self.digest = hashlib.sha256()
        self.row = 0
        self._stream: IO[bytes] | gzip.GzipFile = gzip.GzipFile(fileobj=raw) if start[:2] == b"\x1f\x8b" else raw
        self._most = most_unpacked(size)
        self._read = 0
        if start[:2] == b"PK":
            raise BillError("it is a ZIP archive or a workbook; give the CSV file in it")

    def lines(self) -> Iterator[str]:
        first = True
        while line := self._stream.readline(MAX_LINE_BYTES + 1):
            if len(line) > MAX_LINE_BYTES:
                raise BillError(f"after row {self.row}: a line is longer than {MAX_LINE_BYTES // 2**20} MiB")
            self._read += len(line)
            if self._read > self._most:
                raise BillError(f"after row {self.row}: it unpacks to more than {MAX_EXPANSION} times its size, as no bill does")
            self.digest.update(line)
            yield line.decode("utf-8-sig" if first else "utf-8")
            first = False


def _text_rows(counted: _Bytes) -> Iterator[list[Entry]]:
    try:
        lines = counted.lines()
        first = next(lines, "")
        if not first.strip():
            raise BillError("it is empty")
        found = _json_rows(counted, first, lines) if first.lstrip().startswith("{") else _csv_rows(counted, first, lines)
        yield from _entries(found, counted)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BillError(f"after row {counted.row}: the file is cut off or damaged ({error})") from error
    except UnicodeDecodeError as error:
        raise BillError(f"after row {counted.row}: the file is not UTF-8 text") from error


def _entries(found: Iterable[tuple[BillForm, dict[str, str]]], counted: _Bytes | Rows) -> Iterator[list[Entry]]:
    for form, row in found:
        try:
            yield list(form.entries(row))
        except BillError as error:
            raise BillError(f"row {counted.row}: {error}") from error


def _csv_rows(counted: _Bytes, first: str, lines: Iterable[str]) -> Iterator[tuple[BillForm, dict[str, str]]]:
    reader = csv.reader(chain((first,), lines), strict=True)
    try:
        header = next(reader)
        form = form_of(header)
        names = [form.column(each) for each in header]
        for cells in reader:
            counted.row += 1
            if not cells:
                continue
            if len(cells) != len(names):
                raise BillError(f"row {counted.row}: it has {len(cells)} columns of {len(names)}: the file is cut off or damaged")
            yield form, dict(zip(names, cells, strict=True))
    except csv.Error as error:
        raise BillError(f"after row {counted.row}: it is not CSV, or is cut off ({error})") from error


def _json_rows(counted: _Bytes, first: str, lines: Iterable[str]) -> Iterator[tuple[BillForm, dict[str, str]]]:
    form = GOOGLE
    for line in chain((first,), lines):
        if not line.strip():
            continue
        counted.row += 1
        row = gcp.flat(_object(counted, line))
        if missing := [each for each in form.needed if each not in row and each != "credits"]:
            raise BillError(f"row {counted.row}: it is not a row of a {form.name}: {', '.join(missing)} missing")
        yield form, row


def _object(counted: _Bytes, line: str) -> dict[str, Any]:
    try:
        found = json.loads(line, parse_float=str, parse_int=str, parse_constant=str)
    except (ValueError, RecursionError) as error:
        raise BillError(f"row {counted.row}: it is not a JSON object on a line of its own, or is cut off") from error
    if not isinstance(found, dict):
        raise BillError(f"row {counted.row}: it is not a JSON object on a line of its own")
    return found
