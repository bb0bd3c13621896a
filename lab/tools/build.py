"""Building the tools into the user's cache folder, and linking them into the checkout."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import platformdirs
from filelock import FileLock, Timeout

from lab.tools.families import Family, families
from lab.tools.go import disk_full, require_go, run_go

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lab.progress import Progress


def tool_cache() -> Path:
    """Where built tools are kept: the user's cache folder ($XDG_CACHE_HOME/flexspot/tools on Linux), shared by all checkouts."""
    return platformdirs.user_cache_path("flexspot") / "tools"


@dataclass(frozen=True)
class Tools:
    """Where built programs and their files are, through the checkout's links."""

    links: Path

    def binary(self, name: str) -> Path:
        """The program `name`."""
        return self.links / "bin" / name

    def assets(self, family: str, folder: str) -> list[Path]:
        """The files of one asset folder of a family, sorted by name."""
        return sorted((self.links / "assets" / family / folder).iterdir())


def ensure_tools(links: Path, progress: Progress, cache: Path | None = None, wanted: tuple[Family, ...] | None = None) -> Tools:
    """Builds what the cache lacks and links everything under `links`; does nothing that is already done.

    `cache` is tool_cache() and `wanted` the lab's families unless given.

    Safe to interrupt and to run twice at once: a family appears in the cache whole or not at all.
    Raises LabError when Go is missing or a build fails.
    """
    cache = cache or tool_cache()
    for family in wanted or families():
        _link(family, _ensure_family(family, cache, progress), links)
    return Tools(links)


def _ensure_family(family: Family, cache: Path, progress: Progress) -> Path:
    target = cache / f"{family.name}-{family.key}"
    if target.is_dir():
        return target
    require_go(family.name)
    step = f"{family.name} {family.version}"
    try:
        cache.mkdir(parents=True, exist_ok=True)
        lock = FileLock(cache / f"{target.name}.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            progress.begin(step, "waiting for another build of it on this machine")
            lock.acquire()
        try:
            if not target.is_dir():
                _build(family, target, step, progress)
        finally:
            lock.release()
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise disk_full(family.name) from error
        raise
    return target


def _build(family: Family, target: Path, step: str, progress: Progress) -> None:
    begun = time.monotonic()
    # What an earlier build left behind when it was killed; the lock says that nobody is using it.
    for leftover in target.parent.glob(f".{target.name}.*"):
        shutil.rmtree(leftover)
    progress.begin(step, "downloading sources")
    scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        packages = list(family.binaries.values())
        fetched = 0

        def on_download(line: str) -> None:
            nonlocal fetched
            if line.startswith("go: downloading"):
                fetched += 1
                progress.advance(step, f"downloading sources: {line.split()[2]}", fetched, 0)

        tags = [f"-tags={','.join(family.tags)}"] if family.tags else []
        if packages:
            total = len(run_go(family.name, ["list", "-mod=readonly", *tags, "-deps", *packages], family.folder, on_download))
        else:
            total = 0
            run_go(family.name, ["mod", "download", family.module], family.folder, on_download)
        source = Path(run_go(family.name, ["list", "-m", "-f", "{{.Dir}}", family.module], family.folder, on_download)[0])
        compiled = 0

        def on_compile(package: str) -> None:
            nonlocal compiled
            compiled += 1
            progress.advance(step, f"compiling {package}", min(compiled, total), total)

        flags = ["-mod=readonly", *tags, "-trimpath", "-buildvcs=false", "-v", f"-ldflags=-s -w {' '.join(family.ldflags)}"]
        flags += _patched(family, source, scratch)
        for name, package in family.binaries.items():
            run_go(family.name, ["build", *flags, "-o", str(scratch / "bin" / name), package], family.folder, on_compile)
        if family.patches:
            shutil.rmtree(scratch / "source")
            (scratch / "go.mod").unlink()
            (scratch / "go.sum").unlink()
        for script in _matching(family, source, family.scripts):
            copy = scratch / "bin" / script.name
            shutil.copyfile(script, copy)
            copy.chmod(0o755)
        _copy_assets(family, source, scratch / "assets")
        scratch.chmod(0o755)
        scratch.rename(target)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    progress.end(step, f"built in {time.monotonic() - begun:.0f} s")


def _patched(family: Family, source: Path, scratch: Path) -> list[str]:
    """Go's flag for building from a patched copy of the family's module, none without patches.

    A copy, because go refuses to overlay a file of its module cache.
    """
    if not family.patches:
        return []
    copy = scratch / "source"
    shutil.copytree(source, copy)
    for path in [copy, *copy.rglob("*")]:
        path.chmod(path.stat().st_mode | stat.S_IWUSR)
    for patch in family.patches:
        text = (copy / patch.file).read_text()
        if text.count(patch.find) != patch.count:
            raise ValueError(f"{family.name}: {patch.file} holds {patch.find!r} {text.count(patch.find)} times, not {patch.count}")
        (copy / patch.file).write_text(text.replace(patch.find, patch.replace))
    for name in ("go.mod", "go.sum"):
        shutil.copyfile(family.folder / name, scratch / name)
    run_go(family.name, ["mod", "edit", f"-replace={family.module}={copy}", str(scratch / "go.mod")], scratch, lambda _: None)
    return [f"-modfile={scratch / 'go.mod'}"]


def _copy_assets(family: Family, source: Path, target: Path) -> None:
    for folder, patterns in family.assets.items():
        (target / folder).mkdir(parents=True)
        for file in _matching(family, source, patterns):
            shutil.copyfile(file, target / folder / file.name)


def _matching(family: Family, source: Path, patterns: Sequence[str]) -> Iterator[Path]:
    for pattern in patterns:
        found = sorted(source.glob(pattern))
        if not found:
            raise ValueError(f"{family.name} {family.version} has no file {pattern}; tools.yaml asks for it")
        yield from found


def _link(family: Family, built: Path, links: Path) -> None:
    for name in (*family.binaries, *(Path(script).name for script in family.scripts)):
        _symlink(links / "bin" / name, built / "bin" / name)
    if family.assets:
        _symlink(links / "assets" / family.name, built / "assets")


def _symlink(link: Path, target: Path) -> None:
    if link.is_symlink() and link.readlink() == target:
        return
    link.parent.mkdir(parents=True, exist_ok=True)
    # Made aside and moved over, so that a link is never missing while another process looks for it.
    aside = link.with_name(f".{link.name}.{os.getpid()}")
    aside.unlink(missing_ok=True)
    aside.symlink_to(target)
    aside.replace(link)
