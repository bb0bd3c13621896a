"""What torch asks of a file: the calls of torch 2.15's serialization.py and of its C++ reader and writer, without torch.

Judged against torch itself by `make test-torch`.
"""

from __future__ import annotations

import io
import pickle
from typing import Any, BinaryIO


def save(content: bytes, file: BinaryIO) -> None:
    """torch.save: `_open_zipfile_writer_buffer` asks for a callable `write`, writes pieces, and flushes when it is done."""
    assert callable(getattr(file, "write", None))
    for piece in (content[: len(content) // 2], content[len(content) // 2 :]):
        assert file.write(memoryview(piece)) == len(piece)
    file.flush()


def legacy_save(value: Any, file: BinaryIO) -> None:
    """`_legacy_save`: pickles one after the other, then storages; those of a real file go by its descriptor, so it asks for one."""
    pickle.dump(119547037146038801333356, file, protocol=2)
    pickle.dump(value, file, protocol=2)
    file.flush()
    assert not _should_read_directly(file)
    file.write(b"storage")


def _should_read_directly(file: BinaryIO) -> bool:
    try:
        return file.fileno() >= 0
    except (AttributeError, io.UnsupportedOperation):
        return False


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
