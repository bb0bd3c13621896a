"""What the library asks of the place where checkpoints and results are kept, and the same in a folder or a mounted bucket."""

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
    """Where an object is written, from beginning to end: no seeking, no reading. What users write to is a CheckpointFile over it."""

    def write(self, content: Content, /) -> int:
        """Appends; how many bytes were taken, which is all of them."""
        ...


class ObjectReader(Protocol):
    """Where an object is read from its beginning."""

    def read(self, size: int = -1, /) -> bytes:
        """The next bytes, at most `size` unless it is negative; none at the end."""
        ...


class Storage(Protocol):
    """Objects under names such as `data/0042/model`. Every method raises OSError, and FileNotFoundError for what is not there.

    There is no rename and no append, and nothing is overwritten but by `publish`: Mountpoint for S3 has neither, and on a flat GCS bucket a
    rename is a copy and a deletion. What is promised instead is an order: when `create` has ended without an error the object is whole and
    durable, and what is created after it cannot be there without it.
    """

    def create(self, name: str) -> AbstractContextManager[Sink]:
        """A new object. Durable when the block ends without an error; after an error, or a kill, it is torn or not there.

        Raises FileExistsError, where the storage can tell, for a name that is taken.
        """
        ...

    def open(self, name: str) -> AbstractContextManager[ObjectReader]:
        """An object's bytes."""
        ...

    def publish(self, name: str, content: bytes) -> None:
        """A small object, new or in the place of one. Readers see the one of before or the new one, and after a kill likewise."""
        ...

    def names(self, folder: str) -> list[str]:
        """All names that begin with the folder and a slash, sorted; none when there is no such folder."""
        ...

    def delete(self, name: str) -> None:
        """Removes an object."""
        ...


def read_whole(storage: Storage, name: str) -> bytes:
    """A small object's bytes."""
    with storage.open(name) as source:
        return source.read()


def is_there(storage: Storage, name: str) -> bool:
    """Whether an object exists."""
    try:
        with storage.open(name) as source:
            source.read(1)
    except FileNotFoundError:
        return False
    return True


_UNSUPPORTED = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM})
"""What file systems answer to a call that they do not have."""

_PARTIAL = ".partial"


class LocalFolder:
    """A folder; by default the one that CHECKPOINT_DIR names, which is the job's own in a pod that Flexspot rendered.

    A folder that is given must be there: an absent one is a volume that is not mounted, and writing under it would fill the container's
    disk. For the same reason CHECKPOINT_DIR is made when it is absent, for nobody else does, but not the first folder of its path.

    An object is durable once three calls have succeeded: fsync of the file, close, and fsync of its folder. On a disk the first and the
    third do it; Mountpoint for S3 uploads at fsync, after which nothing more is written; GCS FUSE with streaming writes uploads at close,
    whatever fsync said. So an error of any of the three is an error of the write. A mounted bucket has no folders to sync, and a file
    system that does not know that one call is taken at its word. Sources: doc/SEMANTICS.md of awslabs/mountpoint-s3, docs/semantics.md of
    GoogleCloudPlatform/gcsfuse; neither was mounted here. An NFS server must not export `async`.

    Raises FileNotFoundError when the folder is not there, ValueError when none is given and CHECKPOINT_DIR is not set.
    """

    def __init__(self, folder: Path | str | None = None) -> None:
        self.folder = _made_folder_of_job() if folder is None else Path(folder)
        if not self.folder.is_dir():
            raise FileNotFoundError(f"{folder} is not a folder: mount the volume for checkpoints there, or make the folder first")

    @contextmanager
    def create(self, name: str) -> Generator[Sink]:
        """See Storage. Raises FileExistsError for a name that is taken."""
        path = self._path(name)
        made = self._make_parents(path)
        try:
            with path.open("xb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
        except FileExistsError:
            raise
        except BaseException:
            # Room for the next try; what is left after a kill is swept later.
            with suppress(OSError):
                path.unlink()
            self._remove_empty_parents(path)
            raise
        for folder in (path.parent, *made):
            _sync_folder(folder)

    @contextmanager
    def open(self, name: str) -> Generator[ObjectReader]:
        """See Storage."""
        with self._path(name).open("rb") as file:
            yield file

    def publish(self, name: str, content: bytes) -> None:
        """See Storage. By a rename; where there is none, a file is seen by others when it is closed, and is written in its place."""
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
        """See Storage. Folders that hold nothing more go, too, but for those right in the root."""
        path = self._path(name)
        path.unlink()
        self._remove_empty_parents(path)

    def _path(self, name: str) -> Path:
        return self.folder / check_name(name)

    def _remove_empty_parents(self, path: Path) -> None:
        # Those in the root stay: another process may be about to write there.
        for parent in path.relative_to(self.folder).parents[:-2]:
            try:
                (self.folder / parent).rmdir()
            except OSError:
                # Not empty, or a bucket's, which goes by itself.
                return

    def _make_parents(self, path: Path) -> list[Path]:
        """Makes the folders above; the folders in which one was made."""
        missing = [parent for parent in path.parents if parent.is_relative_to(self.folder) and not parent.exists()]
        path.parent.mkdir(parents=True, exist_ok=True)
        return [parent.parent for parent in missing]


def _made_folder_of_job() -> Path:
    name = os.environ.get(CHECKPOINT_VARIABLE, "")
    if not name:
        raise ValueError(f"{CHECKPOINT_VARIABLE} is not set: set it to the job's folder for checkpoints, or give LocalFolder a folder")
    folder = Path(name).absolute()
    mounted = next((parent for parent in folder.parents if len(parent.parts) == 2), folder)  # noqa: PLR2004 -- the root and a name
    if not mounted.is_dir():
        raise FileNotFoundError(f"{CHECKPOINT_VARIABLE} is {name}, and {mounted} is not there: mount the volume for checkpoints")
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
