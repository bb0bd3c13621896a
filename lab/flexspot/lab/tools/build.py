"""Build the tools, each family from its pinned Go module, with progress, interruption and explained errors."""

from __future__ import annotations

import errno
import hashlib
import os
import platform
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections import deque
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import platformdirs
from pydantic import Field

from flexspot.capacity.catalog.data_files import Record, read_records
from flexspot.lab.progress import ExitCode, LabError, interrupts_wait, locked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from flexspot.lab.progress import Progress


_EVIDENCE_LINES = 20


def require_go(family: str) -> str:
    """Return the path of the `go` command. Raises LabError if there is none."""
    go = shutil.which("go")
    if go is None:
        raise LabError(
            f"cannot build {family}: there is no Go toolchain (no `go` on PATH).",
            "install Go 1.26 or later (https://go.dev/dl, or your package manager) and run the same command again."
            + (" Or put a `pulumi` on PATH that fits the SDK: `flexspot doctor` says which." if family == "pulumi" else ""),
            exit_code=ExitCode.BAD_USAGE,
        )
    return go


def run_go(family: str, arguments: Sequence[str], folder: Path, on_line: Callable[[str], None]) -> list[str]:
    """Run `go ARGUMENTS` in `folder` and return the lines of its standard output.

    Passes each line of standard error to `on_line` as it comes. When interrupted, the whole process group is killed first. Raises LabError
    with the last lines of standard error when go fails.
    """
    go = require_go(family)
    # A user's own GOWORK and CGO_ENABLED would build something other than what is pinned.
    environment = os.environ | {"CGO_ENABLED": "0", "GOWORK": "off"}
    recent: deque[str] = deque(maxlen=_EVIDENCE_LINES)
    with ExitStack() as stack:
        # Standard output goes to a file: a pipe that is not read while standard error is read would fill up and block go.
        output = stack.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8"))
        with interrupts_wait():
            process = stack.enter_context(
                subprocess.Popen(  # noqa: S603 -- the program is go, the arguments are our own
                    [go, *arguments],
                    cwd=folder,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.PIPE,
                    text=True,
                    start_new_session=True,
                )
            )
            stack.push(partial(_end_group_on_error, process.pid))
        for line in process.stderr or ():
            recent.append(line.rstrip())
            on_line(line.rstrip())
        status = process.wait()
        output.seek(0)
        printed = output.read().splitlines()
    if status != 0:
        raise _failure(family, arguments, status, tuple(recent))
    return printed


def _end_group_on_error(group: int, kind: type[BaseException] | None, *_: object) -> None:
    if kind is not None:
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


def _failure(family: str, arguments: Sequence[str], status: int, evidence: tuple[str, ...]) -> LabError:
    said = "\n".join(evidence).lower()
    if "no space left on device" in said:
        return disk_full(family, evidence)
    if "requires go >=" in said:
        remedy = "install the Go version named above, or unset GOTOOLCHAIN so that go may fetch it."
    elif any(sign in said for sign in ("dial tcp", "no such host", "connection refused", "i/o timeout", "tls handshake")):
        remedy = "check the connection to the Go module proxy (`go env GOPROXY`) and run the same command again; finished parts are kept."
    elif status < 0:
        remedy = f"the compiler was ended by signal {-status}; with little memory, set GOFLAGS=-p=1, then run the same command again."
    else:
        remedy = (
            f"run the same command again; if it fails the same way, run `go clean -cache`, or build by hand in flexspot/lab/tools/{family}."
        )
    return LabError(f"building {family} failed: `go {arguments[0]}` ended with {status}. Its last lines:", remedy, evidence=evidence)


def disk_full(family: str, evidence: tuple[str, ...] = ()) -> LabError:
    """Return the error for a full disk, with the folders that a build writes to."""
    return LabError(
        f"building {family} failed: no space left on the disk.",
        "free about 10 GiB where go keeps its files (`go env GOCACHE GOMODCACHE`) and run the same command again; finished parts are kept.",
        evidence=evidence,
    )


MODULES = Path(__file__).parent


class Patch(Record):
    """A text replacement in one source file of the family's module. It must match exactly `count` times."""

    file: str
    find: str
    replace: str
    count: Annotated[int, Field(ge=1)]


class Family(Record):
    """Programs built from one Go module."""

    name: str
    module: str
    binaries: dict[str, str] = Field(default_factory=dict)
    """Name of each program, and its Go package. A family without any consists of files alone."""

    ldflags: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    """Go's build tags."""
    assets: dict[str, list[str]] = Field(default_factory=dict)
    """Folder names, and glob patterns inside the module."""

    patches: tuple[Patch, ...] = ()
    scripts: tuple[str, ...] = ()
    """Programs of the module that need no building, placed next to the built ones."""
    on_request: Annotated[bool, Field(exclude=True)] = False
    """True if no lab needs it: it is built only on request."""
    folder: Annotated[Path, Field(exclude=True)] = MODULES
    """Folder with the family's go.mod and go.sum; set when tools.yaml is read."""

    @property
    def version(self) -> str:
        """Pinned version of the family's module in its go.mod, such as v1.36.1."""
        pin = re.search(rf"^(?:require )?\s*{re.escape(self.module)} (v\S+)", (self.folder / "go.mod").read_text(), re.MULTILINE)
        if pin is None:
            raise ValueError(f"{self.folder / 'go.mod'} does not require {self.module}")
        return pin[1]

    @property
    def key(self) -> str:
        """Hash of everything that determines the built files.

        These are the module files, the source of our own program next to them, this family's entry, the operating system and processor.
        """
        digest = hashlib.sha256()
        for part in (
            (self.folder / "go.mod").read_bytes(),
            (self.folder / "go.sum").read_bytes(),
            *(source.read_bytes() for source in sorted(self.folder.glob("*.go"))),
            self.model_dump_json(exclude_defaults=True).encode(),
            f"{platform.system()}/{platform.machine()}".encode(),
        ):
            digest.update(hashlib.sha256(part).digest())
        return digest.hexdigest()[:16]

    @property
    def go(self) -> str:
        """Lowest version of Go that builds it, from its go.mod, such as 1.26.6."""
        return re.findall(r"^go (\S+)", (self.folder / "go.mod").read_text(), re.MULTILINE)[0]

    def built_in(self, cache: Path) -> Path:
        """Return the folder of the built family in a cache."""
        return cache / f"{self.name}-{self.key}"


class _FamilyFile(Record):
    families: tuple[Family, ...]


def read_families(path: Path) -> tuple[Family, ...]:
    """Return the families of a tools.yaml, whose module files are in folders next to it. Raises DataFileError if it violates its schema."""
    return tuple(family.model_copy(update={"folder": path.parent / family.name}) for family in read_records(path, _FamilyFile).families)


@cache
def all_families() -> tuple[Family, ...]:
    """Return every family, in the order in which they are built: the quick ones first, those on request last."""
    return read_families(MODULES / "tools.yaml")


def families() -> tuple[Family, ...]:
    """Return the families that a lab needs, without those on request."""
    return tuple(family for family in all_families() if not family.on_request)


def family_named(name: str) -> Family:
    """Return the family `name`, on request or not. Raises KeyError if there is none."""
    return {family.name: family for family in all_families()}[name]


def tool_cache() -> Path:
    """Return the folder of built tools: the user's cache folder ($XDG_CACHE_HOME/flexspot/tools on Linux), shared by all projects."""
    return platformdirs.user_cache_path("flexspot") / "tools"


@dataclass(frozen=True)
class Tools:
    """Paths of built programs and their files, through the project's links."""

    links: Path

    def binary(self, name: str) -> Path:
        """Return the path of the program `name`."""
        return self.links / "bin" / name

    def assets(self, family: str, folder: str) -> list[Path]:
        """Return the files of one asset folder of a family, sorted by name."""
        return sorted((self.links / "assets" / family / folder).iterdir())


def ensure_tools(links: Path, progress: Progress, cache: Path | None = None, wanted: tuple[Family, ...] | None = None) -> Tools:
    """Build what the cache lacks and link everything under `links`. Does nothing that is already done.

    `cache` defaults to tool_cache() and `wanted` to the lab's families.

    Safe to interrupt and to run twice at once: a family appears in the cache as a whole or not at all. Raises LabError when Go is missing
    or a build fails.
    """
    cache = cache or tool_cache()
    # Determined before anything is built: go may complete a family's go.sum, which is part of its key.
    targets = [(family, family.built_in(cache)) for family in wanted or families()]
    missing = [(family, target) for family, target in targets if not target.is_dir()]
    for number, (family, target) in enumerate(missing, 1):
        _ensure_family(family, target, progress, f"{family.name} {family.version} ({number} of {len(missing)})")
    for family, target in targets:
        _link(family, target, links)
    return Tools(links)


def _ensure_family(family: Family, target: Path, progress: Progress, step: str) -> None:
    cache = target.parent
    require_go(family.name)
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with locked(cache / f"{target.name}.lock", progress, step, "waiting for another build of it on this machine"):
            if not target.is_dir():
                _build(family, target, step, progress)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise disk_full(family.name) from error
        raise


def _build(family: Family, target: Path, step: str, progress: Progress) -> None:
    started = time.monotonic()
    # Remains of an earlier build that was killed. The lock ensures that no process uses them.
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
    progress.end(step, f"built in {time.monotonic() - started:.0f} s")


def _patched(family: Family, source: Path, scratch: Path) -> list[str]:
    """Return Go's flag for building from a patched copy of the family's module, none without patches.

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
            raise ValueError(
                f"{family.name}: the patch expects {patch.find!r} in {patch.file} {patch.count} times, but found {text.count(patch.find)}"
            )
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
    # Created aside and moved over, so that a link is never missing while another process reads it.
    aside = link.with_name(f".{link.name}.{os.getpid()}")
    aside.unlink(missing_ok=True)
    aside.symlink_to(target)
    aside.replace(link)
