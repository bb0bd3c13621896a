"""What torch asks of a file: the calls of torch 2.15's serialization.py and of its C++ reader and writer, without torch.

Judged against torch itself by `make test-torch`.
"""

from __future__ import annotations

import io
from typing import BinaryIO


def save(content: bytes, file: BinaryIO) -> None:
    """torch.save: `_open_zipfile_writer_buffer` asks for a callable `write`, writes pieces, and flushes when it is done."""
    assert callable(getattr(file, "write", None))
    for piece in (content[: len(content) // 2], content[len(content) // 2 :]):
        assert file.write(memoryview(piece)) == len(piece)
    file.flush()


def load(file: BinaryIO) -> bytes:
    """torch.load: `_check_seekable`, `_is_zipfile`, then the C++ reader, which asks the end for the size and reads pieces from places."""
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
