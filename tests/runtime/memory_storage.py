"""Storage in memory in which any operation can fail. It is like a disk (partial writes are visible) or like a bucket."""

from __future__ import annotations

import io
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

    from flexspot_runtime.storage import Content, ObjectReader, Sink


class KilledError(BaseException):
    """Ends the program as SIGKILL does: nothing that follows runs, except this test's Python code."""


@dataclass
class MemoryStorage:
    like_a_bucket: bool = False
    objects: dict[str, bytes] = field(default_factory=dict[str, bytes])
    operations: int = 0
    """Number of operations so far; each piece written is one."""

    fails_at: int | None = None
    """Number of the operation that fails."""

    fails_for: int = 1
    """Number of consecutive operations that fail."""

    failure: type[BaseException] = OSError
    dead: bool = False

    def _operate(self) -> None:
        if self.dead:
            # The program is dead: operations in its `except` blocks have no effect.
            raise KilledError
        self.operations += 1
        if self.fails_at is not None and self.fails_at <= self.operations < self.fails_at + self.fails_for:
            self.dead = self.failure is KilledError
            raise self.failure("planted")

    @contextmanager
    def create(self, name: str) -> Generator[Sink]:
        self._operate()
        if name in self.objects:
            raise FileExistsError(name)
        upload = _Upload(self, name)
        if not self.like_a_bucket:
            self.objects[name] = b""
        yield upload
        self._operate()
        self.objects[name] = upload.content

    @contextmanager
    def open(self, name: str) -> Generator[ObjectReader]:
        self._operate()
        if name not in self.objects:
            raise FileNotFoundError(name)
        yield io.BytesIO(self.objects[name])

    def publish(self, name: str, content: bytes) -> None:
        self._operate()
        self.objects[name] = content

    def names(self, folder: str) -> list[str]:
        self._operate()
        return sorted(name for name in self.objects if name.startswith(f"{folder}/"))

    def delete(self, name: str) -> None:
        self._operate()
        if name not in self.objects:
            raise FileNotFoundError(name)
        del self.objects[name]

    def seen_by(self, name: str, content: bytes) -> None:
        """Append a piece to an object that is being written."""
        self._operate()
        if not self.like_a_bucket:
            self.objects[name] = content

    def survivor(self) -> MemoryStorage:
        """Return the storage that the next start finds."""
        return MemoryStorage(self.like_a_bucket, dict(self.objects))


class _Upload:
    def __init__(self, storage: MemoryStorage, name: str) -> None:
        self._storage = storage
        self._name = name
        self.content = b""

    def write(self, content: Content, /) -> int:
        half = len(content) // 2
        for piece in (bytes(content[:half]), bytes(content[half:])):
            self.content += piece
            self._storage.seen_by(self._name, self.content)
        return len(content)
