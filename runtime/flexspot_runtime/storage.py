"""What the library asks of the place where checkpoints and results are kept, so little that a mounted bucket can do it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

Content = bytes | bytearray | memoryview


class Sink(Protocol):
    """Where an object is written, from beginning to end: no seeking, no reading. pickle, numpy.save and torch.save need no more."""

    def write(self, content: Content, /) -> int:
        """Appends; how many bytes were taken, which is all of them."""
        ...


class Source(Protocol):
    """Where an object is read from its beginning."""

    def read(self, size: int = -1, /) -> bytes:
        """The next bytes, at most `size` unless it is negative; none at the end."""
        ...


class Storage(Protocol):
    """Objects under names such as `data/0042/model`. Every method raises OSError, and FileNotFoundError for what is not there.

    There is no rename and no append, and nothing is overwritten but by `publish`: Mountpoint for S3 has neither, and on a flat GCS bucket a
    rename is a copy and a deletion. What is promised instead is an order: when `create` has ended without an error the object is whole and
    durable, and what is created after it cannot be there without it.
    """

    def create(self, name: str) -> AbstractContextManager[Sink]:
        """A new object. Durable when the block ends without an error; after an error, or a kill, it is torn or not there.

        Raises FileExistsError, where the storage can tell, for a name that is taken.
        """
        ...

    def open(self, name: str) -> AbstractContextManager[Source]:
        """An object's bytes."""
        ...

    def publish(self, name: str, content: bytes) -> None:
        """A small object, new or in the place of one. Readers see the one of before or the new one, and after a kill likewise."""
        ...

    def names(self, folder: str) -> list[str]:
        """All names that begin with the folder and a slash, sorted; none when there is no such folder."""
        ...

    def delete(self, name: str) -> None:
        """Removes an object."""
        ...


def read_whole(storage: Storage, name: str) -> bytes:
    """A small object's bytes."""
    with storage.open(name) as source:
        return source.read()


def is_there(storage: Storage, name: str) -> bool:
    """Whether an object exists."""
    try:
        with storage.open(name) as source:
            source.read(1)
    except FileNotFoundError:
        return False
    return True
