"""The calls of torch 2.15's serialization.py and of its C++ reader and writer on a file, without torch.

Compared with torch itself by `make test-torch`.
"""

from __future__ import annotations

import io
from typing import BinaryIO


def save(content: bytes, file: BinaryIO) -> None:
    """Save like torch.save: `_open_zipfile_writer_buffer` requires a callable `write`, writes pieces, and flushes at the end."""
    assert callable(getattr(file, "write", None))
    for piece in (content[: len(content) // 2], content[len(content) // 2 :]):
        assert file.write(memoryview(piece)) == len(piece)
    file.flush()


def load(file: BinaryIO) -> bytes:
    """Load like torch.load: `_check_seekable`, `_is_zipfile`, then the C++ reader, which seeks to the end for the size and reads pieces."""
    file.seek(file.tell())
    start = file.tell()
    file.read(4)
    file.seek(start)
    file.seek(0, io.SEEK_END)
    size = file.tell()
    buffer = bytearray(size)
    file.seek(0)
    assert hasattr(file, "readinto")
    assert file.readinto(buffer) == size
    assert callable(getattr(file, "readline", None))
    return bytes(buffer)
