"""The records of a checkpoint, with checksums: what a rank wrote, and the marker that makes it count."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any, cast

from flexspot_runtime.names import group_name, marker_name
from flexspot_runtime.schedule import History

_MAGIC = "flexspot-runtime"
_HEADER_WORDS = 4


class TornRecordError(ValueError):
    """An incomplete record: its writer was killed, or the storage changed it."""


def encode_record(kind: str, body: dict[str, Any]) -> bytes:
    """Return a line with the kind, the length in bytes and the SHA-256 of the rest, followed by the rest: JSON with sorted keys."""
    content = json.dumps(body, sort_keys=True, indent=1).encode()
    return f"{_MAGIC} {kind} {len(content)} {hashlib.sha256(content).hexdigest()}\n".encode() + content


def decode_record(kind: str, record: bytes) -> dict[str, Any]:
    """Return the body. Raises TornRecordError unless every byte is as it was written, under the same kind."""
    header, _, content = record.partition(b"\n")
    words = header.decode("ascii", errors="replace").split(" ")
    if len(words) != _HEADER_WORDS or words[:2] != [_MAGIC, kind]:
        raise TornRecordError(f"no {kind} record: it begins with {header[:40]!r}")
    if words[2] != str(len(content)) or words[3] != hashlib.sha256(content).hexdigest():
        raise TornRecordError(f"a torn {kind} record: {len(content)} bytes that do not match its first line")
    return cast("dict[str, Any]", json.loads(content))


_MARKER = "checkpoint-1"
_SHARD = "shard-1"


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object of a shard."""

    name: str
    """The user's name for the object, such as model.pt; unique in its shard."""

    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Shard:
    """The objects that one rank wrote."""

    rank: int
    objects: tuple[StoredObject, ...]

    def encode(self) -> bytes:
        """Return the shard as a record with its checksum."""
        return encode_record(_SHARD, asdict(self))

    @classmethod
    def decode(cls, record: bytes) -> Shard:
        """Return the shard. Raises TornRecordError."""
        return _shard(decode_record(_SHARD, record))


@dataclass(frozen=True, slots=True)
class Marker:
    """Proof that all shards of a save exist. Written last, under a unique name, and never changed."""

    step: int
    """Steps done."""

    attempt: str
    """Identifier of the start of the program that saved it."""

    serial: int
    """Number of the save in that start, from 1."""

    shards: tuple[Shard, ...]
    """One for each rank that writes, in the order of ranks."""

    completed: bool = False
    """True if all steps are done."""

    history: History = field(default_factory=History)
    """Running time and number of starts of the program, this start included."""

    saved_at_unix_seconds: float = 0.0
    """For people only: clocks jump, so no decision depends on it."""

    job: str = ""
    """Owner of the checkpoint; empty if the program had no name, and in checkpoints from before names existed."""

    @property
    def group(self) -> str:
        """The save's name."""
        return group_name(self.step, self.attempt, self.serial)

    @property
    def name(self) -> str:
        """The name of the object that contains the marker."""
        return marker_name(self.group)

    def encode(self) -> bytes:
        """Return the marker as a record with its checksum."""
        return encode_record(_MARKER, asdict(self))

    @classmethod
    def decode(cls, name: str, record: bytes) -> Marker:
        """Return the marker. Raises TornRecordError, also for a marker under another name than its own."""
        body = decode_record(_MARKER, record)
        marker = cls(
            step=body["step"],
            attempt=body["attempt"],
            serial=body["serial"],
            shards=tuple(map(_shard, body["shards"])),
            completed=body["completed"],
            history=History(**body["history"]),
            saved_at_unix_seconds=body["saved_at_unix_seconds"],
            job=body.get("job", ""),
        )
        if marker.name != name:
            raise TornRecordError(f"{name} contains the marker of another checkpoint, {marker.name}")
        return marker


def _shard(body: dict[str, Any]) -> Shard:
    return Shard(rank=body["rank"], objects=tuple(StoredObject(**each) for each in body["objects"]))
