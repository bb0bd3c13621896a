"""How much a Parquet file unpacks to, told by the header of each page before anything is unpacked.

A page says how large it becomes, and the reader allocates that. The footer says it too, but nothing holds the one to the other. Headers are
structs of Thrift's compact protocol: https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md, PageHeader in
https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift (read 2026-11-27).
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Final, cast

from capacity.chargeback.bills.entries import BillError

if TYPE_CHECKING:
    from collections.abc import Iterator

MAGIC: Final = b"PAR1"
"""Ends a file, and begins it."""

ENCRYPTED: Final = b"PARE"
"""Begins and ends a file whose footer is encrypted."""

MAX_PAGE_BYTES = 64 * 2**20
"""What a page may unpack to. Writers end a page at 1 MiB, or after the value that passes it."""

_HEADER_BYTES = 2**10
_MAX_HEADER_BYTES = 2**20
_MAX_DEPTH = 8

_UNPACKED, _PACKED = 2, 3
_DATA, _DATA_V2 = 5, 8
_VALUES = 1

_STRUCT, _MAP, _LIST, _SET, _BINARY, _DOUBLE, _BYTE = 12, 11, 9, 10, 8, 7, 3
_BOOLEANS, _INTEGERS = (1, 2), (4, 5, 6)


def pages(stream: IO[bytes], start: int, length: int) -> Iterator[tuple[int, int]]:
    """Of each page of a column chunk: the bytes that it unpacks to, and of how many of the column's values it is. Raises BillError."""
    at, end = start, start + length
    while at < end:
        header, size = _header(stream, at, end)
        packed, unpacked = header.get(_PACKED), header.get(_UNPACKED)
        if not isinstance(packed, int) or not isinstance(unpacked, int) or packed < 0 or unpacked < 0:
            raise BillError("the file is damaged (a page has no size)")
        if unpacked > MAX_PAGE_BYTES:
            raise BillError(f"one of its pages unpacks to {unpacked:,} bytes, as no bill does; {MAX_PAGE_BYTES:,} are allowed")
        at += size + packed
        if at > end:
            raise BillError("the file is cut off or damaged (a page does not end where its column does)")
        yield unpacked, _values(header)


def _values(header: dict[int, object]) -> int:
    for kind in (_DATA, _DATA_V2):
        inner = header.get(kind)
        if isinstance(inner, dict):
            count = cast("dict[int, object]", inner).get(_VALUES)
            if isinstance(count, int) and count >= 0:
                return count
    return 0


def _header(stream: IO[bytes], at: int, end: int) -> tuple[dict[int, object], int]:
    """A page's header, and how long it is."""
    size = _HEADER_BYTES
    while True:
        stream.seek(at)
        read = stream.read(min(size, end - at))
        thrift = _Thrift(read)
        try:
            return thrift.struct(0), thrift.at
        except IndexError:
            # It is longer than what was read, or it is none.
            if len(read) < size or size >= _MAX_HEADER_BYTES:
                raise BillError("the file is cut off or damaged (a page has no header)") from None
            size *= 8


class _Thrift:
    """Reads the compact protocol. Numbers and structs are kept, all else is skipped. Raises IndexError where the bytes end."""

    def __init__(self, read: bytes) -> None:
        self._read = read
        self.at = 0

    def struct(self, depth: int) -> dict[int, object]:
        """Its fields by their number."""
        if depth > _MAX_DEPTH:
            raise BillError("the file is damaged (the header of a page is nested too deeply)")
        fields, number = dict[int, object](), 0
        while head := self._byte():
            kind, more = head & 15, head >> 4
            number = number + more if more else self._integer()
            fields[number] = kind == _BOOLEANS[0] if kind in _BOOLEANS else self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> object:
        if kind in _INTEGERS:
            return self._integer()
        if kind == _STRUCT:
            return self.struct(depth + 1)
        if kind in {_LIST, _SET}:
            head = self._byte()
            for _ in range(self._varint() if head >> 4 == 15 else head >> 4):  # noqa: PLR2004 -- 15: the number is in the next bytes
                self._element(head & 15, depth)
        elif kind == _MAP:
            count = self._varint()
            kinds = self._byte() if count else 0
            for _ in range(count):
                self._element(kinds >> 4, depth)
                self._element(kinds & 15, depth)
        elif kind == _BINARY:
            self._skip(self._varint())
        elif kind == _DOUBLE:
            self._skip(8)
        elif kind == _BYTE:
            self._skip(1)
        else:
            raise BillError("the file is damaged (the header of a page has fields of no known type)")
        return None

    def _element(self, kind: int, depth: int) -> None:
        """Of a list or a map, in which booleans take a byte and lists in lists count as depth."""
        if depth > _MAX_DEPTH:
            raise BillError("the file is damaged (the header of a page is nested too deeply)")
        if kind in _BOOLEANS:
            self._skip(1)
        else:
            self._value(kind, depth + 1)

    def _byte(self) -> int:
        found = self._read[self.at]
        self.at += 1
        return found

    def _skip(self, count: int) -> None:
        if self.at + count > len(self._read):
            raise IndexError
        self.at += count

    def _varint(self) -> int:
        found, shift = 0, 0
        while True:
            byte = self._byte()
            found |= (byte & 127) << shift
            if byte < 128:  # noqa: PLR2004 -- the highest bit says that there is more
                return found
            shift += 7
            if shift > 63:  # noqa: PLR2004 -- bits of the longest number
                raise BillError("the file is damaged (the header of a page has a number that is too long)")

    def _integer(self) -> int:
        found = self._varint()
        return (found >> 1) ^ -(found & 1)
