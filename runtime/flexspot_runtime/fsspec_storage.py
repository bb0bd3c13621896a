"""Storage in a bucket without a mount, through fsspec: gs://BUCKET/FOLDER with gcsfs, s3://BUCKET/FOLDER with s3fs. Extra: `fsspec`."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol, cast

import fsspec

from flexspot_runtime.names import check_name

if TYPE_CHECKING:
    from collections.abc import Generator

    from flexspot_runtime.storage import Content, ObjectReader, Sink


class _File(Protocol):
    closed: bool

    def read(self, size: int = -1, /) -> bytes: ...
    def write(self, content: Content, /) -> int: ...
    def close(self) -> None: ...
    def discard(self) -> None: ...


class _FileSystem(Protocol):
    def open(self, path: str, mode: str) -> _File: ...
    def pipe_file(self, path: str, value: bytes) -> None: ...
    def find(self, path: str) -> list[str]: ...
    def rm_file(self, path: str) -> None: ...
    def exists(self, path: str) -> bool: ...
    def invalidate_cache(self) -> None: ...


class FsspecStorage:
    """A folder of a bucket, without a mount. An object exists, whole, once its upload has ended, and not before.

    options: those of the file system, such as `endpoint_url`.

    Exceptions of the cloud's client are raised as OSError. Tested with fsspec's own file systems. gcsfs and s3fs have the same interface
    and were not tried on a live bucket.
    """

    def __init__(self, url: str, **options: Any) -> None:
        made = cast("tuple[_FileSystem, str]", fsspec.url_to_fs(url, **options))
        self._files, root = made
        self._root = root.rstrip("/")

    @contextmanager
    def create(self, name: str) -> Generator[Sink]:
        """See Storage. Raises FileExistsError if the name exists."""
        path = self._path(name)
        with _as_oserror():
            # Drop the cache: other processes write, too.
            self._files.invalidate_cache()
            if self._files.exists(path):
                raise FileExistsError(f"{path} already exists")
            file = self._files.open(path, "wb")
        try:
            yield _Upload(file)
        except BaseException:
            _abort(file)
            raise
        with _as_oserror():
            file.close()

    @contextmanager
    def open(self, name: str) -> Generator[ObjectReader]:
        """See Storage."""
        with _as_oserror():
            file = self._files.open(self._path(name), "rb")
        try:
            yield _Download(file)
        finally:
            file.close()

    def publish(self, name: str, content: bytes) -> None:
        """See Storage."""
        with _as_oserror():
            self._files.pipe_file(self._path(name), content)

    def names(self, folder: str) -> list[str]:
        """See Storage."""
        with _as_oserror():
            self._files.invalidate_cache()
            found = self._files.find(self._path(folder))
        return sorted(path.removeprefix(f"{self._root}/") for path in found)

    def delete(self, name: str) -> None:
        """See Storage."""
        with _as_oserror():
            self._files.rm_file(self._path(name))

    def _path(self, name: str) -> str:
        return f"{self._root}/{check_name(name)}"


class _Upload:
    def __init__(self, file: _File) -> None:
        self._file = file

    def write(self, content: Content, /) -> int:
        with _as_oserror():
            return self._file.write(content)


class _Download:
    def __init__(self, file: _File) -> None:
        self._file = file

    def read(self, size: int = -1, /) -> bytes:
        with _as_oserror():
            return self._file.read(size)


@contextmanager
def _as_oserror() -> Generator[None]:
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        raise OSError(f"the storage failed: {type(error).__name__}: {error}") from error


def _abort(file: _File) -> None:
    """Abort an upload. Closing it, also by the garbage collector, would create an object from the part that was sent."""
    with suppress(Exception):
        file.discard()
    with suppress(Exception):
        file.closed = True
