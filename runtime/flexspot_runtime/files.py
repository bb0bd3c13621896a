"""The objects of a checkpoint as files in the sense of Python's `io`, for frameworks that write and read files."""

from __future__ import annotations

import hashlib
import io
from typing import TYPE_CHECKING

from flexspot_runtime.marker import StoredObject

if TYPE_CHECKING:
    from flexspot_runtime.storage import Content, Sink, Source

CHUNK_BYTES = 4 << 20


class CheckpointFile(io.BufferedIOBase):
    """An object that is being written, from its beginning to its end, for torch.save, numpy.savez, pickle.dump, a zip or tar file.

    It has `write`, `flush`, `tell`, `close` and is a context manager. It is not read and does not seek: a mounted bucket can do neither,
    and what was hashed cannot be changed. `seek`, `read`, `truncate` and `fileno` raise io.UnsupportedOperation, as the protocol says, and
    libraries that can do without (zipfile, so numpy.savez) find out by that. For one that cannot, there is `seekable=True`.

    `flush` promises nothing: the object is durable when the writer's block ends. After that, or after `close`, it takes no more.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._hash = hashlib.sha256()
        self._size_bytes = 0

    def writable(self) -> bool:
        """See io.IOBase."""
        return True

    def write(self, content: Content, /) -> int:  # pyrefly: ignore[bad-override] -- Buffer, which io says, has a name from Python 3.12 on
        """Takes all bytes of what has bytes: bytes, a memoryview, an array that is contiguous."""
        self._refuse_closed()
        with memoryview(content) as view:
            if view.nbytes:
                # As bytes, whatever they stand for: a sink may ask for their number by len().
                with view.cast("B") as as_bytes:
                    self._sink.write(as_bytes)
                    self._hash.update(as_bytes)
                    self._size_bytes += as_bytes.nbytes
            return view.nbytes

    def tell(self) -> int:
        """So many bytes were written."""
        self._refuse_closed()
        return self._size_bytes

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Raises io.UnsupportedOperation, also for where it stands: zipfile would take it for a file that can go back."""
        del offset, whence
        raise io.UnsupportedOperation(
            "a checkpoint's file is written from its beginning to its end: open it with file(name, seekable=True), a scratch file"
        )

    def as_stored(self, name: str) -> StoredObject:
        """What was written so far, under a name of the checkpoint's."""
        return StoredObject(name, self._size_bytes, self._hash.hexdigest())

    def _refuse_closed(self) -> None:
        if self.closed:
            raise ValueError("this file of a checkpoint is closed: write inside of its `with` block")


class Nowhere:
    """Takes everything and keeps nothing."""

    def write(self, content: Content, /) -> int:
        """See Sink."""
        return memoryview(content).nbytes


def copy(source: Source, sink: Sink) -> None:
    """To the end of the source."""
    while chunk := source.read(CHUNK_BYTES):
        sink.write(chunk)
