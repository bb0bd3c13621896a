"""Results under names that the task determines: a task that is done twice has one result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexspot_runtime.names import check_name
from flexspot_runtime.storage import is_there, read_whole

if TYPE_CHECKING:
    from flexspot_runtime.storage import Storage


class Results:
    """One object for each key. Putting one again replaces it, whole: readers never see a part of one. Methods raise OSError.

    A key is a name with letters, digits, `. _ = + -` and slashes; others raise ValueError.
    """

    def __init__(self, storage: Storage, folder: str = "results") -> None:
        self.storage = storage
        self.folder = check_name(folder)

    def has(self, key: str) -> bool:
        """Whether there is a result."""
        return is_there(self.storage, self._name(key))

    def put(self, key: str, content: bytes) -> None:
        """Stores a result; durable when it returns."""
        self.storage.publish(self._name(key), content)

    def get(self, key: str) -> bytes:
        """The result. Raises FileNotFoundError."""
        return read_whole(self.storage, self._name(key))

    def keys(self) -> list[str]:
        """Of all results, sorted."""
        return [name.removeprefix(f"{self.folder}/") for name in self.storage.names(self.folder)]

    def _name(self, key: str) -> str:
        return f"{self.folder}/{check_name(key)}"
