"""Folders as exports deliver them: finds the files that are the bill of a month, and skips older editions.

AWS Data Exports delivers `data/BILLING_PERIOD=2026-10/NAME-00001.snappy.parquet` and further parts, which a refresh overwrites. An export
that keeps its refreshes delivers each into a separate folder there, `2026-11-02T03:04:05.678Z-ID`. NAME-Manifest.json in
`metadata/BILLING_PERIOD=2026-10` lists the files of the newest refresh as `dataFiles`. Parts that a smaller refresh no longer needs are
overwritten with empty ones: https://docs.aws.amazon.com/cur/latest/userguide/dataexports-export-delivery.html. A legacy report has
`20261001-20261101/ID/NAME-00001.csv.gz`, and `reportKeys` in its manifest: understanding-report-versions.html there (read 2026-11-27).
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import re
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain, pairwise
from typing import IO, TYPE_CHECKING, Any

from flexspot.capacity.chargeback.bills import gcp
from flexspot.capacity.chargeback.bills.entries import BillError
from flexspot.capacity.chargeback.bills.focus import GOOGLE, MAX_EXPANSION, BillForm, form_of, most_unpacked

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from flexspot.capacity.chargeback.bills.entries import Entry
    from flexspot.capacity.chargeback.bills.parquet import Rows


MAX_LINE_BYTES = 4 * 2**20
"""Longest line of a bill in bytes; a longer one would fill the memory."""


def is_parquet(path: Path) -> bool:
    """Return whether a file begins like a Parquet file, encrypted or not. Raises OSError."""
    with path.open("rb") as raw:
        return raw.read(4) in {b"PAR1", b"PARE"}


def read_bill(path: Path, seen: dict[str, str]) -> Iterator[list[Entry]]:
    """Yield the entries of each row of a bill.

    `seen` holds the fingerprints of the files read before and gets this one's if it has rows: parts that an export empties are all equal.
    Raises BillError, which names the row, for an unusable bill, OSError for an unreadable file, and ImportError for Parquet without the
    extra that reads it.
    """
    rows = 0
    with path.open("rb") as raw:
        if is_parquet(path):
            # Its library is an extra, takes a tenth of a second to load, and only Parquet needs it.
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
    """The bytes of a file, unpacked if they are compressed, in lines of bounded length."""

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
                raise BillError(f"after row {self.row}: it unpacks to more than {MAX_EXPANSION} times its size, implausible for a bill")
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


MAX_PARTS = 100_000
MAX_MANIFEST_BYTES = 16 * 2**20

ENDINGS = (".snappy.parquet", ".parquet", ".csv.gz", ".csv", ".json.gz", ".json", ".jsonl.gz", ".jsonl")
"""File name endings of parts of bills. Without its ending, a part is NAME-00001 (AWS) or NAME-000000000000 (BigQuery)."""

_MANIFEST = re.compile(r".*manifest\.json", re.IGNORECASE)
_NO_PARTS = re.compile(r"[._].*|.*\.(?:sql|yml|yaml|md|txt)|.*manifest\.json", re.IGNORECASE)
_STATUS = "cost_and_usage_data_status"
"""A folder of legacy reports for Athena: it contains a table of one row, which is not a bill."""

_PERIOD = re.compile(r"(?:billing_period=(\d{4})-(\d\d)|(\d{4})(\d\d)01-\d{6}01)", re.IGNORECASE)
_YEAR, _MONTH = re.compile(r"year=(\d{4})", re.IGNORECASE), re.compile(r"month=(\d{1,2})", re.IGNORECASE)
_REFRESH = re.compile(r"\d{4}-\d\d-\d\dT\d\d.?\d\d.?\d\d(?:\.\d+)?Z-.+")
AWS_DIGITS = 5
_PART = re.compile(r"(?P<name>.+)-(?P<number>\d{5}|\d{12})")


@dataclass(frozen=True, order=True)
class _FilePart:
    """A file and its place in an export."""

    folder: tuple[str, ...]
    """Folder of the edition."""

    export: str
    """Name of the export, taken from the file name."""

    first: int
    """Number of the export's first part."""

    number: int | None
    """Number of this part."""

    path: Path


def read_delivery(path: Path, seen: dict[str, str], start: int, end: int) -> Iterator[list[Entry]]:
    """Yield the entries of each row of a bill: a file, or all parts in a folder.

    `start` and `end` are those of the report's period, in seconds of Unix time. Raises BillError, which names the part, and OSError.
    """
    rows = 0
    for part in parts_of(path, start, end):
        try:
            for row in read_bill(part, seen):
                rows += 1
                yield row
        except BillError as error:
            raise error if part == path else BillError(f"{part.relative_to(path)}: {error}") from error
    if not rows:
        raise BillError("it has no rows")


def parts_of(path: Path, start: int, end: int) -> list[Path]:
    """Return the files of a bill: the path itself, or the files of the newest edition in a folder that belong to a month of the period.

    Raises BillError if that cannot be determined, and OSError.
    """
    if not path.is_dir():
        return [path]
    files = sorted(_files(path))
    months = {each: _month(each.relative_to(path).parts) or _month(path.resolve().parts) for each in files}
    within = [each for each in files if (month := months[each]) is None or _overlaps(month, start, end)]
    parts = [each for each in within if not _NO_PARTS.fullmatch(each.name)]
    if not parts:
        raise BillError("it is a folder without a bill of the report's period" if files else "it is an empty folder")
    if strange := next((each for each in parts if not each.name.lower().endswith(ENDINGS)), None):
        raise BillError(f"{strange.relative_to(path)} is not part of a bill: parts end in {', '.join(ENDINGS)}; give its files one by one")
    manifests = _topmost([each for each in within if _MANIFEST.fullmatch(each.name)])
    chosen: list[Path] = []
    for month in sorted({months[each] for each in parts}, key=str):
        here = [each for each in parts if months[each] == month]
        telling = [each for each in manifests if months[each] == month]
        if len(telling) > 1:
            shown = ", ".join(each.relative_to(path).as_posix() for each in telling[:4])
            raise BillError(f"it has several exports of a month ({shown}); give the folder of one of them")
        chosen += _listed(path, telling[0], here) if telling else _newest([_part(path, each) for each in here])
    return chosen


def _files(folder: Path) -> Iterator[Path]:
    """Yield all files in a folder. Links to folders are not followed, so that nothing is read twice or in a loop."""
    count = 0
    for each in folder.rglob("*"):
        if each.is_file() and _STATUS not in each.parts:
            count += 1
            if count > MAX_PARTS:
                raise BillError(f"it is a folder with more than {MAX_PARTS:,} files, implausible for a bill")
            yield each


def _month(parts: Iterable[str]) -> tuple[int, int] | None:
    """Return the month for which folders or files are named."""
    year = month = None
    for each in parts:
        if found := _PERIOD.fullmatch(each):
            year, month = (int(group) for group in found.groups() if group)
        elif found := _YEAR.fullmatch(each):
            year = int(found[1])
        elif found := _MONTH.fullmatch(each):
            month = int(found[1])
    return (year, month) if year and month and month <= 12 else None  # noqa: PLR2004 -- months of a year


def _overlaps(month: tuple[int, int], start: int, end: int) -> bool:
    """Return whether a billing month, which is in UTC, overlaps the period."""
    first = datetime(*month, 1, tzinfo=UTC)
    following = (first + timedelta(days=31)).replace(day=1)
    return first.timestamp() < end and following.timestamp() > start


def _part(root: Path, path: Path) -> _FilePart:
    stem = path.name[: -len(next(each for each in ENDINGS if path.name.lower().endswith(each)))]
    match = _PART.fullmatch(stem)
    folder = path.relative_to(root).parts[:-1]
    if match is None:
        return _FilePart(folder, "", 0, None, path)
    # AWS counts its parts from 1 in five digits, BigQuery from 0 in twelve.
    return _FilePart(folder, match["name"], 1 if len(match["number"]) == AWS_DIGITS else 0, int(match["number"]), path)


def _newest(parts: list[_FilePart]) -> list[Path]:
    """Return the parts of the newest edition of a month. Raises BillError if a part is missing or the edition cannot be determined."""
    folders = sorted({each.folder for each in parts})
    if len(folders) > 1:
        if len({each[:-1] for each in folders}) > 1 or not all(each and _REFRESH.fullmatch(each[-1]) for each in folders):
            shown = ", ".join("/".join(each) or "." for each in folders[:4])
            raise BillError(f"it has a month in several folders ({shown}), and nothing says which of them counts; give one of them")
        # Folder names begin with the time of the refresh.
        parts = [each for each in parts if each.folder == folders[-1]]
    exports = sorted({each.export for each in parts})
    if len(exports) > 1:
        shown = ", ".join(each or "files without a number" for each in exports[:4])
        raise BillError(f"it has parts of several exports ({shown}); put each into a folder of its own")
    numbers = sorted(each.number for each in parts if each.number is not None)
    if numbers:
        if (twice := next((one for one, other in pairwise(numbers) if one == other), None)) is not None:
            raise BillError(f"it has part {twice} of {exports[0]!r} more than once; keep one form of the export")
        absent = next((expected for expected, number in enumerate(numbers, parts[0].first) if expected != number), None)
        if absent is not None:
            raise BillError(f"part {absent} of {exports[0]!r} is missing; download the folder again")
    return [each.path for each in sorted(parts, key=lambda each: (each.number or 0, each.path))]


def _topmost(manifests: list[Path]) -> list[Path]:
    """Return the manifests of the newest refresh: each refresh that is kept has its own manifest in a folder below."""
    folders = {each.parent for each in manifests}
    return [each for each in manifests if folders.isdisjoint(each.parent.parents)]


def _listed(root: Path, manifest: Path, parts: list[Path]) -> list[Path]:
    """Return the parts that the manifest of a refresh lists. Raises BillError for a listed part that does not exist."""
    # The location of the export in S3 does not matter, but all folders below data do: they name the month and the refresh.
    by_key = {_below_data(each.relative_to(root).parts): each for each in parts}
    found: list[Path] = []
    for key in _keys(root, manifest):
        tail = f"/{key}"
        match = next((each for name, each in by_key.items() if tail.endswith(f"/{name}")), None)
        if match is None:
            raise BillError(f"its manifest lists {key.rpartition('/')[2][:120]!r}, which is missing; download the folder again")
        found.append(match)
    return list(dict.fromkeys(found))


def _below_data(parts: tuple[str, ...]) -> str:
    last = max((place for place, each in enumerate(parts) if each == "data"), default=-1)
    return "/".join(parts[last + 1 :])


def _keys(root: Path, manifest: Path) -> list[str]:
    """Return the names of the objects in S3 that a manifest lists.

    AWS does not document the manifest's form: entries have been seen as addresses and as objects that contain one.
    """
    with manifest.open("rb") as file:
        read = file.read(MAX_MANIFEST_BYTES)
    try:
        # A truncated manifest is not JSON.
        content = json.loads(read)
        listed = next(content[each] for each in ("dataFiles", "reportKeys") if each in content)
        keys = [each if isinstance(each, str) else each.get("s3Uri") or each["key"] for each in listed]
        return [str(each).removeprefix("s3://") for each in keys]
    except (ValueError, RecursionError, TypeError, KeyError, AttributeError, StopIteration) as error:
        raise BillError(f"{manifest.relative_to(root)} is not a manifest that lists the parts of a bill") from error
