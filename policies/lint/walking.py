"""Which files below the paths that somebody named are read."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from policies.lint.file_reading import Skipped

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator, Sequence


ENDINGS: Final = (".yaml", ".yml", ".json", ".md", ".markdown")

_PASSED_OVER: Final = frozenset({"node_modules", "__pycache__"})
"""Folders of others' code, beside all whose name begins with a dot."""


@dataclass
class Walk:
    """A walk over files and folders, each file once however many links lead to it.

    `excluded` are patterns of paths relative to `root`, with * for any text, / included; they do not hold for files that are named.
    """

    skipped: Counter[Skipped]
    excluded: Sequence[str] = ()
    root: str = "."
    unreadable: dict[str, str] = field(default_factory=dict[str, str])
    """Folders that could not be listed, each with the reason."""
    _seen: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])

    def files(self, paths: Sequence[str]) -> Iterator[str]:
        """The files, in the order named, those of a folder by name, before those of the folders in it."""
        for path in paths:
            if os.path.isdir(path):  # noqa: PTH112 -- pathlib takes several times as long over thousands of files
                yield from self._below(path)
            elif self._first_sight(os.stat(path)):  # noqa: PTH116 -- likewise
                yield os.path.normpath(path)

    def _below(self, top: str) -> Iterator[str]:
        # A list and no recursion: folders may be nested deeper than Python's calls.
        waiting = [top]
        while waiting:
            folder = waiting.pop()
            try:
                with os.scandir(folder) as listing:
                    entries = sorted(listing, key=lambda entry: entry.name)
            except OSError as error:
                self.unreadable[os.path.normpath(folder)] = error.strerror or type(error).__name__
                continue
            folders = [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
            for entry in entries:
                if entry.name.lower().endswith(ENDINGS) and not entry.is_dir(follow_symlinks=False) and self._wanted(entry):
                    yield os.path.normpath(entry.path)
            waiting += [each.path for each in reversed(folders) if not each.name.startswith(".") and each.name not in _PASSED_OVER]

    def _wanted(self, entry: os.DirEntry[str]) -> bool:
        try:
            found = entry.stat()
        except OSError:
            self.skipped[Skipped.LINK] += 1
            return False
        if not stat.S_ISREG(found.st_mode):
            self.skipped[Skipped.LINK if stat.S_ISDIR(found.st_mode) else Skipped.NOT_A_FILE] += 1
            return False
        if self.excluded and self._is_excluded(entry.path):
            self.skipped[Skipped.EXCLUDED] += 1
            return False
        return self._first_sight(found)

    def _is_excluded(self, path: str) -> bool:
        relative = os.path.relpath(path, self.root).replace(os.sep, "/")
        return any(fnmatchcase(relative, pattern) for pattern in self.excluded)

    def _first_sight(self, found: os.stat_result) -> bool:
        known = (found.st_dev, found.st_ino)
        if known in self._seen:
            return False
        self._seen.add(known)
        return True
