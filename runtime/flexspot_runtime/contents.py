"""Contents of a checkpoint: objects written and read one by one, with checksums, in any form that the user's framework uses.

For frameworks that write and read files, the objects are files in the sense of Python's `io`.
"""

from __future__ import annotations

import hashlib
import io
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from flexspot_runtime.marker import Marker, Shard, StoredObject
from flexspot_runtime.names import check_name, shard_folder

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from flexspot_runtime.storage import Content, ObjectReader, Sink, Storage


CHUNK_BYTES = 4 << 20


class CheckpointFile(io.BufferedIOBase):
    """An object being written from beginning to end, for torch.save, numpy.savez, pickle.dump, a zip or tar file.

    It supports `write`, `flush`, `tell`, `close` and is a context manager. It cannot be read and does not seek: a mounted bucket can do
    neither, and hashed bytes cannot be changed. `seek`, `read`, `truncate` and `fileno` raise io.UnsupportedOperation, as the protocol
    requires. Libraries with a fallback (zipfile, and so numpy.savez) detect this. For others there is `seekable=True`.

    `flush` promises nothing: the object is durable when the writer's block ends. After that, or after `close`, writing fails.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._hash = hashlib.sha256()
        self._size_bytes = 0

    def writable(self) -> bool:
        """See io.IOBase."""
        return True

    def write(self, content: Content, /) -> int:  # pyrefly: ignore[bad-override] -- Buffer, which io says, has a name from Python 3.12 on
        """Write all bytes of a buffer: bytes, a memoryview, a contiguous array."""
        self._refuse_closed()
        with memoryview(content) as view:
            if view.nbytes:
                # As bytes, whatever the item type: a sink may measure the length with len().
                with view.cast("B") as as_bytes:
                    self._sink.write(as_bytes)
                    self._hash.update(as_bytes)
                    self._size_bytes += as_bytes.nbytes
            return view.nbytes

    def tell(self) -> int:
        """Return the number of bytes written."""
        self._refuse_closed()
        return self._size_bytes

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Raise io.UnsupportedOperation, even for the current position: zipfile would otherwise assume a seekable file."""
        del offset, whence
        raise io.UnsupportedOperation(
            "a checkpoint's file is written from its beginning to its end: open it with file(name, seekable=True), a scratch file"
        )

    def as_stored(self, name: str) -> StoredObject:
        """Return the record of what was written so far, under a name in the checkpoint."""
        return StoredObject(name, self._size_bytes, self._hash.hexdigest())

    def _refuse_closed(self) -> None:
        if self.closed:
            raise ValueError("this file of a checkpoint is closed: write inside of its `with` block")


class Nowhere:
    """A sink that discards everything."""

    def write(self, content: Content, /) -> int:
        """See Sink."""
        return memoryview(content).nbytes


def copy(source: ObjectReader, sink: Sink) -> None:
    """Copy the source to the sink, to its end."""
    while chunk := source.read(CHUNK_BYTES):
        sink.write(chunk)


class CorruptCheckpointError(Exception):
    """A complete marker exists, but the checkpoint's data differs from what was written."""


class CheckpointWriter:
    """Passed to the function that saves. Takes objects under names of the user, each written once from beginning to end."""

    def __init__(self, storage: Storage, group: str, rank: int, *, discards: bool = False) -> None:
        """Create the writer of one rank.

        discards: True if everything written is discarded. Where rank 0 writes for all, the other ranks call the function, too, because it
        may contain collective operations, such as gathering a full state. The function can check this to skip expensive work.
        """
        self._storage = storage
        self._folder = shard_folder(group, rank)
        self._objects: dict[str, StoredObject] = {}
        self.rank = rank
        self.discards = discards

    @contextmanager
    def file(self, name: str, *, seekable: bool = False) -> Generator[BinaryIO]:
        """Yield a file to write, for torch.save, numpy.savez, pickle.dump; see CheckpointFile.

        seekable: yield a scratch file in the folder for temporary files, which can be read and can seek. It is copied when the block ends.

        Raises ValueError for a name that is used or invalid.
        """
        if check_name(name) in self._objects:
            raise ValueError(f"{name} is in this checkpoint already; give each object a unique name")
        if self.discards:
            stored = yield from _written(CheckpointFile(Nowhere()), seekable=seekable)
        else:
            with self._storage.create(f"{self._folder}/{name}") as sink:
                stored = yield from _written(CheckpointFile(sink), seekable=seekable)
        self._objects[name] = stored.as_stored(name)

    def put(self, name: str, content: Content) -> None:
        """Write an object from memory."""
        with self.file(name) as sink:
            sink.write(content)

    def put_folder(self, folder: Path | str) -> None:
        """Write all files of a folder, under their relative paths: for frameworks that write folders. Let them write to a scratch disk."""
        for path in sorted(Path(folder).rglob("*")):
            if path.is_file():
                with self.file(path.relative_to(folder).as_posix()) as sink, path.open("rb") as source:
                    copy(source, sink)

    def shard(self) -> Shard:
        """Return the record of what was written."""
        return Shard(self.rank, tuple(self._objects.values()))


def _written(file: CheckpointFile, *, seekable: bool) -> Generator[BinaryIO, None, CheckpointFile]:
    """Yield the file that the user writes, then return it closed."""
    with file:
        if seekable:
            with tempfile.TemporaryFile() as scratch:
                yield scratch
                scratch.seek(0)
                copy(scratch, file)
        else:
            # It behaves as a BinaryIO, but does not inherit from it; no library checks that.
            yield cast("BinaryIO", file)
    return file


class CheckpointReader:
    """Passed to the function that loads. Returns exactly what was written, or raises CorruptCheckpointError."""

    def __init__(self, storage: Storage, marker: Marker, rank: int, kept: Mapping[tuple[int, str], bytes] | None = None) -> None:
        """Create the reader of one rank's shard.

        kept: verified objects by rank and name. They stay in memory as long as the reader does, so that each is read from the storage once.
        """
        self._storage = storage
        self._kept = kept or {}
        self.marker = marker
        self.step = marker.step
        self.rank = rank
        shard = next((each for each in marker.shards if each.rank == rank), None)
        if shard is None:
            ranks = [each.rank for each in marker.shards]
            raise ValueError(
                f"checkpoint {marker.group} has no shard of rank {rank}, only of {ranks}; it was saved by a group of another size: resume "
                "with the same number of processes, or read the other shards with `of_rank` and divide them again"
            )
        self._objects = {each.name: each for each in shard.objects}

    @property
    def names(self) -> list[str]:
        """Names of the objects in this shard."""
        return sorted(self._objects)

    def of_rank(self, rank: int) -> CheckpointReader:
        """Return a reader of another rank's shard. Raises ValueError if that rank wrote none."""
        return CheckpointReader(self._storage, self.marker, rank, self._kept)

    def get(self, name: str) -> bytes:
        """Return an object's bytes. Raises KeyError for an unknown name, CorruptCheckpointError if they differ from what was written."""
        stored = self._stored(name)
        kept = self._kept.get((self.rank, name))
        if kept is not None:
            return kept
        with self._storage.open(self._place(name)) as source:
            content = source.read()
        self._check(stored, StoredObject(name, len(content), hashlib.sha256(content).hexdigest()))
        return content

    @contextmanager
    def file(self, name: str) -> Generator[BinaryIO]:
        """Yield a file to read, with `read`, `readinto`, `readline`, `seek` and `tell`, for torch.load, numpy.load, zipfile.

        An object that is not in memory is first copied to a scratch file, so that unverified data is never read.

        Raises KeyError for an unknown name, CorruptCheckpointError.
        """
        stored = self._stored(name)
        kept = self._kept.get((self.rank, name))
        if kept is not None:
            with io.BytesIO(kept) as file:
                yield file
            return
        with tempfile.TemporaryFile() as scratch:
            self._copy_verified(stored, scratch)
            scratch.seek(0)
            yield scratch

    def fetch(self, folder: Path | str) -> None:
        """Copy all objects into a folder on a scratch disk. Raises CorruptCheckpointError."""
        for name, stored in self._objects.items():
            target = Path(folder, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as file:
                self._copy_verified(stored, file)

    def verify(self, name: str, *, keep: bool = False) -> bytes | None:
        """Read and verify all of an object. Return its bytes if `keep`.

        Raises CorruptCheckpointError, and OSError when the storage does not answer.
        """
        stored = self._stored(name)
        content = io.BytesIO() if keep else None
        try:
            self._copy_verified(stored, content or Nowhere())
        except FileNotFoundError:
            raise CorruptCheckpointError(f"checkpoint {self.marker.group}: {name} of rank {self.rank} is missing") from None
        return content.getvalue() if content else None

    def _copy_verified(self, stored: StoredObject, sink: Sink) -> None:
        hashing = CheckpointFile(sink)
        kept = self._kept.get((self.rank, stored.name))
        if kept is not None:
            hashing.write(kept)
        else:
            with self._storage.open(self._place(stored.name)) as source:
                copy(source, hashing)
        self._check(stored, hashing.as_stored(stored.name))

    def _check(self, stored: StoredObject, found: StoredObject) -> None:
        if found != stored:
            raise CorruptCheckpointError(
                f"checkpoint {self.marker.group}: {stored.name} is not what was written "
                f"({found.size_bytes} of {stored.size_bytes} bytes, or others)"
            )

    def _place(self, name: str) -> str:
        return f"{shard_folder(self.marker.group, self.rank)}/{name}"

    def _stored(self, name: str) -> StoredObject:
        if name not in self._objects:
            raise KeyError(f"checkpoint {self.marker.group} has no {name}; it contains {', '.join(self.names)}")
        return self._objects[name]
