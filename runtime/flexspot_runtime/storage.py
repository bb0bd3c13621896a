"""Interface of the storage for checkpoints and results, and its implementation in a folder or a mounted bucket."""

from __future__ import annotations

import errno
import os
import secrets
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from flexspot_runtime.names import CHECKPOINT_VARIABLE, check_name

if TYPE_CHECKING:
    from collections.abc import Generator
    from contextlib import AbstractContextManager


Content = bytes | bytearray | memoryview


class Sink(Protocol):
    """An object being written from beginning to end, without seeking or reading. Users write to a CheckpointFile on top of it."""

    def write(self, content: Content, /) -> int:
        """Append the content. Return the number of bytes written, which is all of them."""
        ...


class ObjectReader(Protocol):
    """An object being read from its beginning."""

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes: at most `size`, all if `size` is negative, and none at the end."""
        ...


class Storage(Protocol):
    """Objects with names such as `data/0042/model`. Every method raises OSError, and FileNotFoundError for an object that does not exist.

    There is no rename and no append, and only `publish` overwrites. Mountpoint for S3 has neither, and on a flat GCS bucket a rename is a
    copy and a deletion. The guarantee is an order instead. When `create` has ended without an error, the object is whole and durable. An
    object created after it cannot exist without it.
    """

    def create(self, name: str) -> AbstractContextManager[Sink]:
        """Create an object. It is durable when the block ends without an error; after an error, or a kill, it is torn or missing.

        Raises FileExistsError, where the storage can detect it, if the name exists.
        """
        ...

    def open(self, name: str) -> AbstractContextManager[ObjectReader]:
        """Yield a reader of an object."""
        ...

    def publish(self, name: str, content: bytes) -> None:
        """Create or replace a small object. Readers see the old one or the new one, also after a kill."""
        ...

    def names(self, folder: str) -> list[str]:
        """Return all names that begin with the folder and a slash, sorted. Return none if there is no such folder."""
        ...

    def delete(self, name: str) -> None:
        """Delete an object."""
        ...


def read_whole(storage: Storage, name: str) -> bytes:
    """Return a small object's bytes."""
    with storage.open(name) as source:
        return source.read()


def is_there(storage: Storage, name: str) -> bool:
    """Return whether an object exists."""
    try:
        with storage.open(name) as source:
            source.read(1)
    except FileNotFoundError:
        return False
    return True


_UNSUPPORTED = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM})
"""Errors of file systems that do not support a call."""

_PARTIAL = ".partial"


class LocalFolder:
    """A folder, by default CHECKPOINT_DIR, which is the job's own folder in a pod that Flexspot rendered.

    A given folder must exist. A missing one is a volume that is not mounted, and writing under it would fill the container's disk. For the
    same reason the first folder in the path of CHECKPOINT_DIR must exist. The rest of that path is created, since nothing else does.

    An object is durable once three calls have succeeded: fsync of the file, close, and fsync of its folder. On a disk the first and the
    third are needed. Mountpoint for S3 uploads at fsync, after which nothing more can be written. GCS FUSE with streaming writes uploads at
    close, whatever fsync returned. So an error of any of the three is an error of the write. A mounted bucket has no folders to sync, so a
    file system that does not support this one call is trusted. Sources: doc/SEMANTICS.md of awslabs/mountpoint-s3, docs/semantics.md of
    GoogleCloudPlatform/gcsfuse; neither was mounted here. An NFS server must not export `async`.

    Raises FileNotFoundError when the folder does not exist, ValueError when none is given and CHECKPOINT_DIR is not set.
    """

    def __init__(self, folder: Path | str | None = None) -> None:
        self.folder = _job_folder() if folder is None else Path(folder)
        if not self.folder.is_dir():
            raise FileNotFoundError(f"{folder} is not a folder: mount the volume for checkpoints there, or create the folder first")

    @contextmanager
    def create(self, name: str) -> Generator[Sink]:
        """See Storage. Raises FileExistsError if the name exists."""
        path = self._path(name)
        synced = self._make_parents(path)
        try:
            with path.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
        except FileExistsError:
            raise
        except BaseException:
            # Free the space for the next attempt. Remains of a killed process are swept later.
            with suppress(OSError):
                path.unlink()
            self._remove_empty_parents(path)
            raise
        for folder in (path.parent, *synced):
            _sync_folder(folder)

    @contextmanager
    def open(self, name: str) -> Generator[ObjectReader]:
        """See Storage."""
        with self._path(name).open("rb") as file:
            yield file

    def publish(self, name: str, content: bytes) -> None:
        """See Storage. Renames; where that is not supported, others see a file once it is closed, and it is written in place."""
        path = self._path(name)
        partial = f"{name}.{secrets.token_hex(4)}{_PARTIAL}"
        with self.create(partial) as sink:
            sink.write(content)
        try:
            self._path(partial).replace(path)
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
            with path.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            self.delete(partial)
        _sync_folder(path.parent)

    def names(self, folder: str) -> list[str]:
        """See Storage."""
        found: list[str] = []
        for parent, _, files in os.walk(self._path(folder), onerror=_unless_absent):
            relative = Path(parent).relative_to(self.folder).as_posix()
            found += [f"{relative}/{file}" for file in files if not file.endswith(_PARTIAL)]
        return sorted(found)

    def delete(self, name: str) -> None:
        """See Storage. Also deletes folders that become empty, except those directly below the root."""
        path = self._path(name)
        path.unlink()
        self._remove_empty_parents(path)

    def _path(self, name: str) -> Path:
        return self.folder / check_name(name)

    def _remove_empty_parents(self, path: Path) -> None:
        # Keep folders below the root: another process may be about to write there.
        for parent in path.relative_to(self.folder).parents[:-2]:
            try:
                (self.folder / parent).rmdir()
            except OSError:
                # Not empty, or a bucket's folder, which disappears with its last object.
                return

    def _make_parents(self, path: Path) -> list[Path]:
        """Create the parent folders. Return the folders in which one was created."""
        missing = [parent for parent in path.parents if parent.is_relative_to(self.folder) and not parent.exists()]
        path.parent.mkdir(parents=True, exist_ok=True)
        return [parent.parent for parent in missing]


def _job_folder() -> Path:
    name = os.environ.get(CHECKPOINT_VARIABLE, "")
    if not name:
        raise ValueError(f"{CHECKPOINT_VARIABLE} is not set: set it to the job's folder for checkpoints, or give LocalFolder a folder")
    folder = Path(name).absolute()
    mounted = next((parent for parent in folder.parents if len(parent.parts) == 2), folder)  # noqa: PLR2004 -- the root and a name
    if not mounted.is_dir():
        raise FileNotFoundError(f"{CHECKPOINT_VARIABLE} is {name}, and {mounted} does not exist: mount the volume for checkpoints")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _unless_absent(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
    finally:
        os.close(descriptor)
