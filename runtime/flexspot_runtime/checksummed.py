"""Small records with a checksum, so that a reader recognises a torn one."""

from __future__ import annotations

import hashlib
import json
from typing import Any, cast

_MAGIC = "flexspot-runtime"
_HEADER_WORDS = 4


class TornRecordError(ValueError):
    """What was read is no whole record: its writer was killed, or the storage changed it."""


def encode_record(kind: str, body: dict[str, Any]) -> bytes:
    """A line with the kind, the length in bytes and the SHA-256 of the rest, and the rest: JSON with sorted keys."""
    content = json.dumps(body, sort_keys=True, indent=1).encode()
    return f"{_MAGIC} {kind} {len(content)} {hashlib.sha256(content).hexdigest()}\n".encode() + content


def decode_record(kind: str, record: bytes) -> dict[str, Any]:
    """The body. Raises TornRecordError unless every byte is as it was written, under the same kind."""
    header, _, content = record.partition(b"\n")
    words = header.decode("ascii", errors="replace").split(" ")
    if len(words) != _HEADER_WORDS or words[:2] != [_MAGIC, kind]:
        raise TornRecordError(f"no {kind} record: it begins with {header[:40]!r}")
    if words[2] != str(len(content)) or words[3] != hashlib.sha256(content).hexdigest():
        raise TornRecordError(f"a torn {kind} record: {len(content)} bytes that do not match its first line")
    return cast("dict[str, Any]", json.loads(content))
