"""Reads bills out of files, a row at a time: what they are is told by their columns, and nothing in them is trusted."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import zlib
from dataclasses import dataclass
from itertools import chain
from typing import IO, TYPE_CHECKING, Any

from capacity.catalog.exchange_rates import US_DOLLARS
from capacity.chargeback.bills import aws, focus, gcp
from capacity.chargeback.bills.entries import BillError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from capacity.chargeback.bills.entries import Entry

MAX_LINE_BYTES = 4 * 2**20
"""No line of a bill is longer; one that is would fill the memory."""

MAX_COLUMNS = 2000
"""Legacy reports have some hundreds, by tags."""

MAX_EXPANSION = 200
"""How many times its size a compressed bill may unpack to, from 64 MiB on. Real ones are 10 to 40 times; deflate can do 1,000."""

_ALWAYS_ALLOWED = 64 * 2**20


@dataclass(frozen=True)
class Form:
    """A kind of bill: by which columns it is known, and what a row of it says."""

    name: str
    needed: tuple[str, ...]
    column: Callable[[str], str]
    entries: Callable[[Mapping[str, str], str], Iterator[Entry]]


FORMS = (
    Form("AWS Cost and Usage Report", aws.NEEDED, aws.column, aws.entries),
    Form("FOCUS export", focus.NEEDED, focus.column, focus.entries),
    Form("Google Cloud billing export", gcp.NEEDED, gcp.column, gcp.entries),
)


def read_bill(path: Path, seen: dict[str, str], currency: str = US_DOLLARS) -> Iterator[list[Entry]]:
    """The entries of each row of a bill, whose amounts must be in `currency`.

    `seen` holds the fingerprints of the files read before and gets this one's. Raises BillError, which names the row, for what cannot be
    used, and OSError for what cannot be read.
    """
    with path.open("rb") as raw:
        counted = _Bytes(raw, path.stat().st_size)
        try:
            yield from _rows(counted, currency)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise BillError(f"after row {counted.row}: the file is cut off or damaged ({error})") from error
        except UnicodeDecodeError as error:
            raise BillError(f"after row {counted.row}: the file is no UTF-8 text") from error
    fingerprint = counted.digest.hexdigest()
    if fingerprint in seen:
        raise BillError(f"it is the same bill as {seen[fingerprint]}: each may be given once")
    seen[fingerprint] = path.name


class _Bytes:
    """The bytes of a file, unpacked where they are packed; lines of bounded length."""

    def __init__(self, raw: IO[bytes], size: int) -> None:
        start = raw.read(4)
        raw.seek(0)
        self.digest = hashlib.sha256()
        self.row = 0
        self._stream: IO[bytes] | gzip.GzipFile = gzip.GzipFile(fileobj=raw) if start[:2] == b"\x1f\x8b" else raw
        self._most = max(_ALWAYS_ALLOWED, size * MAX_EXPANSION)
        self._read = 0
        if start == b"PAR1":
            raise BillError("it is a Parquet file; export the bill as CSV, or CSV in gzip")
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


def _rows(counted: _Bytes, currency: str) -> Iterator[list[Entry]]:
    lines = counted.lines()
    first = next(lines, "")
    if not first.strip():
        raise BillError("it is empty")
    found = _json_rows(counted, first, lines) if first.lstrip().startswith("{") else _csv_rows(counted, first, lines)
    for form, row in found:
        try:
            yield list(form.entries(row, currency))
        except BillError as error:
            raise BillError(f"row {counted.row}: {error}") from error


def _csv_rows(counted: _Bytes, first: str, lines: Iterable[str]) -> Iterator[tuple[Form, dict[str, str]]]:
    reader = csv.reader(chain((first,), lines), strict=True)
    try:
        header = next(reader)
        form = _form(header)
        names = [form.column(each) for each in header]
        for cells in reader:
            counted.row += 1
            if not cells:
                continue
            if len(cells) != len(names):
                raise BillError(f"row {counted.row}: it has {len(cells)} columns of {len(names)}: the file is cut off or damaged")
            yield form, dict(zip(names, cells, strict=True))
    except csv.Error as error:
        raise BillError(f"after row {counted.row}: it is no CSV, or is cut off ({error})") from error


def _form(header: list[str]) -> Form:
    """What a file with these columns is. Raises BillError, with what is missing for what it is most like."""
    if len(header) > MAX_COLUMNS:
        raise BillError(f"it has {len(header)} columns, as no bill has")
    best, missing = FORMS[0], list(FORMS[0].needed)
    for form in FORMS:
        names = [form.column(each) for each in header]
        lacking = [each for each in form.needed if each not in names]
        if not lacking:
            if repeated := sorted({each for each in form.needed if names.count(each) > 1}):
                raise BillError(f"its column {repeated[0]} is there more than once")
            if form.entries is gcp.entries and "credits_amount" in names:
                raise BillError("its credits are unnested, which repeats a row's cost for each of them; export credits as one JSON column")
            return form
        if len(lacking) / len(form.needed) < len(missing) / len(best.needed):
            best, missing = form, lacking
    if len(missing) == len(best.needed):
        names = ", ".join(form.name for form in FORMS)
        raise BillError(f"its columns are those of no bill that can be read ({names}); the first line must name the columns")
    raise BillError(f"it looks like a {best.name}, and these columns are missing: {', '.join(missing)}")


def _json_rows(counted: _Bytes, first: str, lines: Iterable[str]) -> Iterator[tuple[Form, dict[str, str]]]:
    form = FORMS[2]
    for line in chain((first,), lines):
        if not line.strip():
            continue
        counted.row += 1
        row = gcp.flat(_object(counted, line))
        if missing := [each for each in form.needed if each not in row and each != "credits"]:
            raise BillError(f"row {counted.row}: it is no row of a {form.name}: {', '.join(missing)} missing")
        yield form, row


def _object(counted: _Bytes, line: str) -> dict[str, Any]:
    try:
        found = json.loads(line, parse_float=str, parse_int=str, parse_constant=str)
    except (ValueError, RecursionError) as error:
        raise BillError(f"row {counted.row}: it is no JSON object on a line of its own, or is cut off") from error
    if not isinstance(found, dict):
        raise BillError(f"row {counted.row}: it is no JSON object on a line of its own")
    return found
