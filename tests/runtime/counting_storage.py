"""A folder that counts the bytes read of data, by the thread's rank."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from flexspot_runtime import LocalFolder
from flexspot_runtime.names import DATA

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from flexspot_runtime.storage import ObjectReader


class CountingFolder(LocalFolder):
    """Counts `read_bytes` by object name, without markers and records of shards."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.read_bytes: dict[str, int] = {}
        self.threads: set[str] = set()
        self._lock = threading.Lock()

    @contextmanager
    def open(self, name: str) -> Generator[ObjectReader]:
        with super().open(name) as source:
            yield _Counted(self, name, source) if name.startswith(DATA) and not name.endswith(".json") else source

    def count(self, name: str, size_bytes: int) -> None:
        with self._lock:
            self.read_bytes[name] = self.read_bytes.get(name, 0) + size_bytes
            self.threads.add(threading.current_thread().name)


class _Counted:
    def __init__(self, storage: CountingFolder, name: str, source: ObjectReader) -> None:
        self._storage = storage
        self._name = name
        self._source = source

    def read(self, size: int = -1, /) -> bytes:
        content = self._source.read(size)
        self._storage.count(self._name, len(content))
        return content
