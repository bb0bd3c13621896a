"""Frameworks write and read a checkpoint's objects as files: the real numpy and tarfile, and torch's protocol."""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING
from uuid import uuid4

import numpy as np
import pytest
import torch_protocol
from flexspot_runtime import Checkpointer, CheckpointReader, CheckpointWriter, CorruptCheckpointError, LocalFolder
from flexspot_runtime.fsspec_storage import FsspecStorage
from memory_storage import MemoryStorage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any, BinaryIO

    from flexspot_runtime.storage import Storage

NUMBERS = np.arange(60_000.0).reshape(3, -1)

# In memory until it is loaded, or read again.
AHEAD = [2 << 30, 0]


@pytest.fixture(params=["folder", "bucket"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return LocalFolder(tmp_path) if request.param == "folder" else FsspecStorage(f"memory://{uuid4()}/team")


def saved(storage: Storage, write: Callable[[CheckpointWriter], None], read_ahead_bytes: int = 2 << 30) -> CheckpointReader:
    """Return a reader of what was just saved."""
    Checkpointer(storage).save(1, write)
    return again(storage, read_ahead_bytes)


def again(storage: Storage, read_ahead_bytes: int = 2 << 30) -> CheckpointReader:
    checkpointer = Checkpointer(storage, read_ahead_bytes=read_ahead_bytes)
    marker = checkpointer.newest_valid()
    assert marker
    return checkpointer.reader(marker)


@pytest.mark.parametrize("ahead", AHEAD)
@pytest.mark.parametrize("seekable", [False, True])
def test_torch_saves_into_it_and_loads_from_it(storage: Storage, ahead: int, *, seekable: bool) -> None:
    def write(writer: CheckpointWriter) -> None:
        with writer.file("model.pt", seekable=seekable) as file:
            torch_protocol.save(NUMBERS.tobytes(), file)

    with saved(storage, write, ahead).file("model.pt") as file:
        assert torch_protocol.load(file) == NUMBERS.tobytes()


@pytest.mark.parametrize("ahead", AHEAD)
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_numpy_saves_archives_into_it_and_loads_them(storage: Storage, save: Callable[..., None], ahead: int) -> None:
    def write(writer: CheckpointWriter) -> None:
        with writer.file("state.npz") as file:
            save(file, weights=NUMBERS, steps=np.array(7))

    with saved(storage, write, ahead).file("state.npz") as file, np.load(file) as loaded:
        assert np.array_equal(loaded["weights"], NUMBERS)
        assert loaded["steps"] == 7


def test_archives_are_written_as_to_a_pipe(storage: Storage) -> None:
    def write(writer: CheckpointWriter) -> None:
        with writer.file("a.tar") as file, tarfile.open(fileobj=file, mode="w") as archive:
            member = tarfile.TarInfo("one")
            member.size = 3
            archive.addfile(member, io.BytesIO(b"123"))

    with saved(storage, write).file("a.tar") as file, tarfile.open(fileobj=file) as archive:
        assert archive.getnames() == ["one"]


def test_formats_that_seek_get_a_scratch_file(storage: Storage) -> None:
    def write(writer: CheckpointWriter) -> None:
        with writer.file("patched", seekable=True) as file:
            file.write(b"????body")
            file.seek(0)
            file.write(b"head")
            file.seek(2)
            assert file.read(4) == b"adbo"

    assert saved(storage, write).get("patched") == b"headbody"


def asked(ask: Callable[[BinaryIO], object]) -> None:
    def write(writer: CheckpointWriter) -> None:
        with writer.file("x") as file:
            file.write(b"ab")
            ask(file)

    Checkpointer(MemoryStorage()).save(1, write)


@pytest.mark.parametrize(
    "method,arguments",
    [
        ("seek", [0]),
        # Also for the current position: zipfile would otherwise assume a seekable file, and seek back later to write sizes.
        ("seek", [2]),
        ("seek", [0, io.SEEK_CUR]),
        ("read", []),
        ("readinto", [bytearray(2)]),
        ("truncate", [0]),
        ("fileno", []),
    ],
)
def test_unsupported_operations_raise_pythons_own_error(method: str, arguments: list[object]) -> None:
    """The save raises it, too, although it is an OSError: retrying would never succeed."""
    with pytest.raises(io.UnsupportedOperation):
        asked(lambda file: getattr(file, method)(*arguments))


def write_text(file: Any) -> None:
    file.write("text")


def test_it_reports_its_capabilities() -> None:
    def ask(file: BinaryIO) -> None:
        assert (file.writable(), file.readable(), file.seekable(), file.isatty(), file.closed) == (True, False, False, False, False)
        assert isinstance(file, io.BufferedIOBase)
        assert file.tell() == 2
        file.writelines([b"c", b"de"])
        assert file.write(b"") == 0
        assert file.write(NUMBERS.data) == NUMBERS.nbytes
        assert file.tell() == 5 + NUMBERS.nbytes
        with pytest.raises(TypeError):
            write_text(file)

    asked(ask)


def test_nothing_is_written_after_it_was_closed() -> None:
    kept: list[BinaryIO] = []

    def write(writer: CheckpointWriter) -> None:
        with writer.file("closed") as file:
            # pyarrow closes the file that it is given.
            file.write(b"all")
            file.close()
            kept.append(file)
        with writer.file("left") as file:
            kept.append(file)

    storage = MemoryStorage()
    assert saved(storage, write).get("closed") == b"all"
    for file in kept:
        assert file.closed
        with pytest.raises(ValueError, match="is closed: write inside of its `with` block"):
            file.write(b"more")


def test_a_file_is_handed_out_only_when_all_of_it_is_right() -> None:
    """The object was damaged after it was verified, and none of it is in memory."""
    storage = MemoryStorage()
    reader = saved(storage, lambda writer: writer.put("weights", b"right"), read_ahead_bytes=0)
    [name] = [name for name in storage.objects if name.endswith("weights")]
    storage.objects[name] = b"wrong"

    with pytest.raises(CorruptCheckpointError, match="weights is not what was written"), reader.file("weights"):
        pass
    with pytest.raises(KeyError, match="it contains weights"), reader.file("momentum"):
        pass
