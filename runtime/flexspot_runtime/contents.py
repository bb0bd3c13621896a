"""What a checkpoint holds: written and read object by object, with checksums, in whatever form the user's framework has."""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from flexspot_runtime.marker import Marker, Shard, StoredObject
from flexspot_runtime.names import check_name, shard_folder

if TYPE_CHECKING:
    from collections.abc import Generator

    from flexspot_runtime.storage import Content, Sink, Source, Storage

_CHUNK_BYTES = 4 << 20


class CorruptCheckpointError(Exception):
    """A marker counts a checkpoint whose data is not what was written."""


class _HashingSink:
    """Passes bytes on and keeps their number and hash."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._hash = hashlib.sha256()
        self._size_bytes = 0

    def write(self, content: Content, /) -> int:
        size = memoryview(content).nbytes
        self._sink.write(content)
        self._hash.update(content)
        self._size_bytes += size
        return size

    def as_stored(self, name: str) -> StoredObject:
        return StoredObject(name, self._size_bytes, self._hash.hexdigest())


class CheckpointWriter:
    """Handed to the function that saves; takes objects under names of the user's, each written once from beginning to end."""

    def __init__(self, storage: Storage, group: str, rank: int) -> None:
        self._storage = storage
        self._folder = shard_folder(group, rank)
        self._objects: dict[str, StoredObject] = {}
        self.rank = rank

    @contextmanager
    def file(self, name: str) -> Generator[Sink]:
        """Something with `write`, for pickle.dump, numpy.save, torch.save. Raises ValueError for a name that is used or cannot be."""
        if check_name(name) in self._objects:
            raise ValueError(f"{name} is in this checkpoint already; give each object a name of its own")
        with self._storage.create(f"{self._folder}/{name}") as sink:
            hashing = _HashingSink(sink)
            yield hashing
        self._objects[name] = hashing.as_stored(name)

    def put(self, name: str, content: Content) -> None:
        """An object out of memory."""
        with self.file(name) as sink:
            sink.write(content)

    def put_folder(self, folder: Path | str) -> None:
        """All files of a folder, under their paths in it: for frameworks that write folders. Let them write to a scratch disk."""
        for path in sorted(Path(folder).rglob("*")):
            if path.is_file():
                with self.file(path.relative_to(folder).as_posix()) as sink, path.open("rb") as source:
                    _copy(source, sink)

    def shard(self) -> Shard:
        """What was written."""
        return Shard(self.rank, tuple(self._objects.values()))


class CheckpointReader:
    """Handed to the function that loads. Every object has been verified once; `get` and `fetch` verify what they return again.

    `step` is how many steps are done, `rank` whose shard is read.
    """

    def __init__(self, storage: Storage, marker: Marker, rank: int) -> None:
        self._storage = storage
        self.marker = marker
        self.step = marker.step
        self.rank = rank
        shard = next((each for each in marker.shards if each.rank == rank), None)
        if shard is None:
            ranks = [each.rank for each in marker.shards]
            raise ValueError(
                f"checkpoint {marker.group} has no shard of rank {rank}, only of {ranks}; it was saved by a group of another size: resume "
                "with as many processes, or read the other shards with `of_rank` and divide them anew"
            )
        self._objects = {each.name: each for each in shard.objects}

    @property
    def names(self) -> list[str]:
        """The objects of this shard."""
        return sorted(self._objects)

    def of_rank(self, rank: int) -> CheckpointReader:
        """The shard of another rank. Raises ValueError when it wrote none."""
        return CheckpointReader(self._storage, self.marker, rank)

    def get(self, name: str) -> bytes:
        """An object's bytes. Raises KeyError for an unknown name, CorruptCheckpointError when they are not what was written."""
        stored = self._stored(name)
        with self._storage.open(self._place(name)) as source:
            content = source.read()
        _check(self.marker, stored, len(content), hashlib.sha256(content).hexdigest())
        return content

    def fetch(self, folder: Path | str) -> None:
        """Copies all objects into a folder of a scratch disk. Raises CorruptCheckpointError."""
        for name, stored in self._objects.items():
            target = Path(folder, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            with self._storage.open(self._place(name)) as source, target.open("wb") as file:
                hashing = _HashingSink(file)
                _copy(source, hashing)
            copied = hashing.as_stored(name)
            _check(self.marker, stored, copied.size_bytes, copied.sha256)

    def verify(self) -> None:
        """Reads everything in this shard. Raises CorruptCheckpointError, and OSError when the storage does not answer."""
        for name, stored in self._objects.items():
            nowhere = _HashingSink(_Nowhere())
            try:
                with self._storage.open(self._place(name)) as source:
                    _copy(source, nowhere)
            except FileNotFoundError:
                raise CorruptCheckpointError(f"checkpoint {self.marker.group}: {name} of rank {self.rank} is not there") from None
            found = nowhere.as_stored(name)
            _check(self.marker, stored, found.size_bytes, found.sha256)

    def _place(self, name: str) -> str:
        return f"{shard_folder(self.marker.group, self.rank)}/{name}"

    def _stored(self, name: str) -> StoredObject:
        if name not in self._objects:
            raise KeyError(f"checkpoint {self.marker.group} has no {name}; it holds {', '.join(self.names)}")
        return self._objects[name]


class _Nowhere:
    """Takes everything and keeps nothing."""

    def write(self, content: Content, /) -> int:
        return memoryview(content).nbytes


def _check(marker: Marker, stored: StoredObject, size_bytes: int, sha256: str) -> None:
    if (size_bytes, sha256) != (stored.size_bytes, stored.sha256):
        raise CorruptCheckpointError(
            f"checkpoint {marker.group}: {stored.name} is not what was written ({size_bytes} of {stored.size_bytes} bytes, or others)"
        )


def _copy(source: Source, sink: Sink) -> None:
    while chunk := source.read(_CHUNK_BYTES):
        sink.write(chunk)
