"""The guarantees of Storage, tested on every implementation."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import pytest
from flexspot_runtime import Checkpointer, LocalFolder
from flexspot_runtime.fsspec_storage import FsspecStorage
from flexspot_runtime.storage import Content, Storage, is_there, read_whole


class PlantedError(Exception):
    pass


def file_system_of(storage: FsspecStorage) -> object:
    """Return the file system, so that a test can replace a cloud's client."""
    return storage._files  # noqa: SLF001 -- as above


def refuse_renames(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse renames, as Mountpoint for S3 does."""

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(os, "rename", refuse)
    monkeypatch.setattr(os, "replace", refuse)


@pytest.fixture(params=["folder", "folder without rename", "fsspec folder", "fsspec bucket"])
def storage(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Storage:
    if request.param == "folder without rename":
        refuse_renames(monkeypatch)
    if request.param == "fsspec bucket":
        return FsspecStorage(f"memory://{uuid4()}/team")
    return FsspecStorage(f"file://{tmp_path}", auto_mkdir=True) if request.param == "fsspec folder" else LocalFolder(tmp_path)


def create(storage: Storage, name: str, *pieces: Content) -> None:
    with storage.create(name) as sink:
        for piece in pieces:
            sink.write(piece)


def test_what_was_created_is_read_in_pieces_until_nothing_is_left(storage: Storage) -> None:
    create(storage, "data/one/weights", b"ab", bytearray(b"cd"), memoryview(b"e"))

    with storage.open("data/one/weights") as source:
        assert [source.read(2), source.read(2), source.read(2), source.read(2)] == [b"ab", b"cd", b"e", b""]


def test_a_taken_name_is_refused(storage: Storage) -> None:
    create(storage, "data/weights", b"old")

    with pytest.raises(FileExistsError):
        create(storage, "data/weights", b"new")
    assert read_whole(storage, "data/weights") == b"old"


def test_names_are_those_in_the_folder(storage: Storage) -> None:
    for name in ("data/b/2", "data/a/1", "other/3"):
        create(storage, name, b"")

    assert storage.names("data") == ["data/a/1", "data/b/2"]
    assert storage.names("absent") == []


def test_what_was_published_is_there_and_replaced(storage: Storage) -> None:
    for content in (b"one", b"two"):
        storage.publish("results/key", content)

    assert read_whole(storage, "results/key") == b"two"
    assert storage.names("results") == ["results/key"]


def test_what_was_deleted_or_never_there_is_not_found(storage: Storage) -> None:
    create(storage, "data/weights", b"x")
    storage.delete("data/weights")

    assert not is_there(storage, "data/weights")
    with pytest.raises(FileNotFoundError):
        read_whole(storage, "data/weights")
    with pytest.raises(FileNotFoundError):
        storage.delete("data/weights")


def test_a_write_that_was_given_up_makes_room(tmp_path: Path) -> None:
    def give_up() -> None:
        with LocalFolder(tmp_path).create("data/weights") as sink:
            sink.write(b"half")
            raise PlantedError

    with pytest.raises(PlantedError):
        give_up()

    assert LocalFolder(tmp_path).names("data") == []


@dataclass
class Upload:
    """An upload like those of s3fs and gcsfs: closing creates an object from what was sent, and so does the garbage collector."""

    closed: bool = False
    events: list[str] = field(default_factory=list[str])

    def write(self, content: bytes) -> int:
        self.events.append("write")
        return len(content)

    def close(self) -> None:
        self.events.append("object made")

    def discard(self) -> None:
        self.events.append("discarded")


def test_an_upload_that_was_given_up_makes_no_object(monkeypatch: pytest.MonkeyPatch) -> None:
    storage, upload = FsspecStorage(f"memory://{uuid4()}"), Upload()

    def open_upload(*_: object) -> Upload:
        return upload

    monkeypatch.setattr(file_system_of(storage), "open", open_upload)

    def give_up() -> None:
        with storage.create("data/weights") as sink:
            sink.write(b"half")
            raise PlantedError

    with pytest.raises(PlantedError):
        give_up()

    assert (upload.events, upload.closed) == (["write", "discarded"], True)


def test_checkpoints_are_saved_found_and_swept(storage: Storage) -> None:
    checkpointer = Checkpointer(storage, keep=2)
    for step in (1, 2, 3):
        checkpointer.save(step, lambda writer, step=step: writer.put("weights", b"%d" % step))

    found = Checkpointer(storage).newest_valid()
    assert found
    assert checkpointer.reader(found).get("weights") == b"3"
    assert len(storage.names("markers")) == 2


def test_a_folder_that_is_not_there_is_a_volume_that_is_not_mounted(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="mount the volume for checkpoints there"):
        LocalFolder(tmp_path / "checkpoints")


def test_a_rename_that_fails_for_another_reason_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "replace", fail)

    with pytest.raises(OSError, match="Input/output error"):
        LocalFolder(tmp_path).publish("progress.json", b"")


def test_a_folder_that_cannot_be_synced_is_a_mounted_bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = os.fsync

    def files_only(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").is_dir():
            raise OSError(errno.EINVAL, "Invalid argument")
        synced(descriptor)

    monkeypatch.setattr(os, "fsync", files_only)
    create(LocalFolder(tmp_path), "data/weights", b"x")

    assert read_whole(LocalFolder(tmp_path), "data/weights") == b"x"


def test_a_file_that_cannot_be_synced_is_an_error_and_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)

    with pytest.raises(OSError, match="Input/output error"):
        create(LocalFolder(tmp_path), "data/weights", b"x")
    assert LocalFolder(tmp_path).names("data") == []


def test_data_and_its_folders_are_durable_before_the_marker_is_created(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power cut must not reverse this order."""
    order: list[str] = []
    synced, opened = os.fsync, Path.open

    def note_sync(descriptor: int) -> None:
        order.append(f"sync {Path(f'/proc/self/fd/{descriptor}').readlink().relative_to(tmp_path)}")
        synced(descriptor)

    def note_open(path: Path, mode: str = "r") -> object:
        order.append(f"{mode} {path.relative_to(tmp_path)}")
        return opened(path, mode)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(Path, "open", note_open)
    marker = Checkpointer(LocalFolder(tmp_path)).save(1, lambda writer: writer.put("weights", b"x"))

    marker_opened = order.index(f"xb {marker.name}")
    data = f"data/{marker.group}/rank-00000"
    assert order[0] == f"xb {data}/weights"
    assert set(order[1:marker_opened]) == {f"sync {data}/weights", f"sync {data}", f"sync data/{marker.group}", "sync data", "sync ."}
    assert set(order[marker_opened + 1 : marker_opened + 4]) == {f"sync {marker.name}", "sync markers", "sync ."}


def test_errors_of_a_clouds_client_are_oserrors(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = FsspecStorage(f"memory://{uuid4()}")
    files = file_system_of(storage)

    def fail(*_: object, **__: object) -> None:
        raise PlantedError("503 slow down")

    for method in ("open", "find", "pipe_file", "rm_file"):
        monkeypatch.setattr(files, method, fail)
    for call in (
        lambda: create(storage, "a", b""),
        lambda: read_whole(storage, "a"),
        lambda: storage.names("a"),
        lambda: storage.publish("a", b""),
        lambda: storage.delete("a"),
    ):
        with pytest.raises(OSError, match="PlantedError: 503 slow down"):
            call()


def test_a_folder_that_cannot_be_listed_is_an_error(tmp_path: Path) -> None:
    """Otherwise it would look empty, and the program would start over."""
    (tmp_path / "markers").write_text("")

    with pytest.raises(NotADirectoryError):
        LocalFolder(tmp_path).names("markers")
