"""`flexspot doctor`: purposes, the pieces that each needs, and their state."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib.metadata import version as installed
from importlib.util import find_spec
from tempfile import gettempdir
from typing import TYPE_CHECKING, Annotated

from rich.text import Text

from flexspot.capacity.catalog.platform import Platform
from flexspot.capacity.settings.platform import EksSettings, GkeSettings
from flexspot.capacity.values.errors import ExplainedError, SettingsError
from flexspot.infra.cli.command_line import Format, expect, option
from flexspot.infra.cli.console import out, show
from flexspot.infra.declaring.rules import checked_stack
from flexspot.infra.deployment.prerequisites import (
    backend_of,
    command_line,
    missing_pieces,
    plugin_command,
    plugin_path,
    require_access,
    require_passphrase,
    sdk_version,
)
from flexspot.infra.loading import install
from flexspot.infra.project import project_here

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from flexspot.capacity.settings.platform import PlatformSettings
    from flexspot.infra.deployment.prerequisites import CommandLine
    from flexspot.infra.project import Project
    from flexspot.lab.tools.build import Family


class PieceStanding(StrEnum):
    """State of a piece, from good to bad. A purpose has the worst state of its pieces."""

    HERE = "here"
    BUILT = "built when needed"
    NOT_ASKED = "not asked"
    MISSING = "missing"


@dataclass(frozen=True)
class Piece:
    """Something that a purpose needs."""

    name: str
    standing: PieceStanding
    said: str
    """A description of what was found."""
    remedy: str = ""
    """The next step if the piece is missing."""


def _missing(name: str, said: str, remedy: str) -> Piece:
    return Piece(name, PieceStanding.MISSING, said, remedy)


class Purpose(StrEnum):
    """Uses of Flexspot, from the fewest to the most requirements."""

    SETTINGS = "settings"
    PREVIEW = "preview"
    LAB = "lab"
    GKE = "gke"
    EKS = "eks"


_PURPOSES = {
    Purpose.SETTINGS: "check stacks, lint manifests, estimate costs",
    Purpose.PREVIEW: "preview without any cloud",
    Purpose.LAB: "rehearse on a local control plane",
    Purpose.GKE: "deploy stacks of GKE",
    Purpose.EKS: "deploy stacks of EKS",
}


@dataclass(frozen=True)
class Diagnosis:
    """A purpose and everything that it needs."""

    purpose: Purpose
    pieces: tuple[Piece, ...]

    @property
    def standing(self) -> PieceStanding:
        """The worst state of the pieces."""
        return max((each.standing for each in self.pieces), key=list(PieceStanding).index)


def diagnoses(*, ask: bool) -> list[Diagnosis]:
    """Return a diagnosis of every purpose on this machine.

    With `ask`, the clouds of the project's stacks report the owner of the credentials, and the backend is read. Otherwise the network is
    not used.
    """
    stacks: _Stacks = {}
    try:
        project = project_here()
        stacks = {name: _checked(project, name) for name in project.stack_names()}
        settings = [*_settings(project, stacks)]
    except ExplainedError as error:
        settings = [_missing("project", error.problem, error.remedy)]
    found, go = command_line(), _go()
    own = Piece("Flexspot", PieceStanding.HERE, f"{installed('flexspot')} on Python {platform.python_version()}")
    clouds = {Purpose.GKE: Platform.GKE, Purpose.EKS: Platform.EKS}
    return [
        Diagnosis(Purpose.SETTINGS, (own, *settings)),
        Diagnosis(Purpose.PREVIEW, tuple(_libraries(_PLATFORM_LIBRARIES)) or (_engine(found, go),)),
        Diagnosis(Purpose.LAB, tuple(_libraries(_PLATFORM_LIBRARIES)) or tuple(_lab(found, go))),
        *(Diagnosis(purpose, tuple(_cloud(cloud, found, stacks, ask=ask))) for purpose, cloud in clouds.items()),
    ]


def _checked(project: Project, stack: str) -> PlatformSettings | tuple[str, ...]:
    """Return the settings of a stack file, or its problems."""
    try:
        return checked_stack(project.stack_file(stack)).settings
    except SettingsError as error:
        return tuple(map(str, error.problems))
    except ExplainedError as error:
        return (error.problem,)


_Stacks = dict[str, "PlatformSettings | tuple[str, ...]"]


def _settings(project: Project, stacks: _Stacks) -> Iterator[Piece]:
    yield Piece("project", PieceStanding.HERE, f"{project.name} in {project.folder}")
    if not stacks:
        yield _missing("stack files", f"none in {project.stacks}", "write one, or run `flexspot init` in an empty folder.")
    for name, found in stacks.items():
        if isinstance(found, tuple):
            more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
            yield _missing(f"stack {name}", f"{found[0]}{more}", f"flexspot settings check -s {name}")
    if sound := [name for name, found in stacks.items() if not isinstance(found, tuple)]:
        yield Piece("stack files", PieceStanding.HERE, ", ".join(sound))


def _go() -> tuple[str | None, bool]:
    """Return the version of Go on PATH (None without one), and whether it fetches a later version by itself."""
    path = shutil.which("go")
    if path is None:
        return None, False
    asked = subprocess.run(  # noqa: S603 -- the `go` that a build would use
        [path, "env", "GOVERSION", "GOTOOLCHAIN"],
        capture_output=True,
        text=True,
        check=False,
        cwd=gettempdir(),
        env=os.environ | {"GOTOOLCHAIN": os.environ.get("GOTOOLCHAIN", "auto"), "GOWORK": "off"},
    )
    version, _, toolchain = asked.stdout.strip().partition("\n")
    return version.removeprefix("go") or None, toolchain != "local"


def _built(name: str, wanted: Sequence[Family], links_to: str, go: tuple[str | None, bool]) -> Piece:
    """Return one piece for all `wanted` programs, which are built from source."""
    from flexspot.lab.tools.build import tool_cache  # noqa: PLC0415

    (version, fetches), cache = go, tool_cache()
    absent = [each for each in wanted if not each.built_in(cache).is_dir()]
    if not absent:
        return Piece(name, PieceStanding.HERE, f"{links_to}, built before, in {cache}")
    names = ", ".join(f"{each.name} {each.version}" for each in absent)
    needed = max((each.go for each in absent), key=_numbers)
    if version is None:
        remedy = f"install Go {needed} or later from https://go.dev/dl"
        return _missing(name, f"{names} must be built, but `go` is not on PATH", remedy)
    if _numbers(version) < _numbers(needed) and not fetches:
        said = f"{names} must be built with Go {needed}, but `go` is {version} and may not download another (GOTOOLCHAIN=local)"
        return _missing(name, said, "unset GOTOOLCHAIN, or install that Go from https://go.dev/dl")
    room = room_in(cache)
    if room < _ROOM_TO_BUILD:
        left = f"{cache} has only {room / 2**30:.1f} GiB free, and a build may need {_ROOM_TO_BUILD // 2**30}"
        return _missing(name, f"{names} must be built, but {left}", "free space there, or set XDG_CACHE_HOME to a folder on a larger disk")
    return Piece(name, PieceStanding.BUILT, f"{names}; Go is {version}", _BUILD_NOW)


_ROOM_TO_BUILD = 10 * 2**30
"""Bytes that Go's caches and the programs may take together.

The error for a full disk has the same figure (flexspot/lab/tools/build.py).
"""

_BUILD_NOW = "flexspot lab tools"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:3]))


def room_in(folder: Path) -> int:
    """Return the free bytes on the disk of a folder. The folder may not exist yet."""
    return shutil.disk_usage(next(each for each in (folder, *folder.parents) if each.is_dir())).free


def _libraries(libraries: Mapping[str, str]) -> Iterator[Piece]:
    """Yield the libraries that are not installed, each with its extra."""
    for library, extra in libraries.items():
        if not _can_be_imported(library):
            yield _missing("library", f"{library} is not installed", install(extra))


def _engine(found: CommandLine | None, go: tuple[str | None, bool]) -> Piece:
    """Return the engine: the official one if its version fits, or one that is built."""
    if found is not None and found.fits:
        return Piece("pulumi", PieceStanding.HERE, f"{found.version} at {found.path}; nothing is built for a preview")
    from flexspot.lab.tools.build import family_named  # noqa: PLC0415

    family = family_named("pulumi")
    piece = _built("pulumi", [family], f"the lab's own {family.version}", go)
    why = "no official `pulumi` is on PATH"
    if found is not None:
        why = f"{found.path} is {found.version}, but the SDK needs {sdk_version()} or a later {sdk_version().major}"
    return replace(piece, said=f"{piece.said}; {why}")


def _lab(found: CommandLine | None, go: tuple[str | None, bool]) -> Iterator[Piece]:
    from flexspot.lab.tools.build import families  # noqa: PLC0415

    fits = found is not None and found.fits
    yield _engine(found, go)
    own = [each for each in families() if not (fits and each.name == "pulumi")]
    yield _built("programs of the lab", own, ", ".join(each.name for each in own if each.binaries), go)
    plugin = plugin_path("kubernetes")
    stands_in = f"the lab's stand-in, for labs only; get the official one with `{plugin_command('kubernetes')}`"
    yield Piece("Kubernetes provider", PieceStanding.HERE, f"the official plugin, {plugin}" if plugin else stands_in)
    host = shutil.which("pulumi-language-python")
    said = f"the official one, {host}" if host else "the lab's stand-in where plain `pulumi` runs; `flexspot` needs none"
    yield Piece("language host", PieceStanding.HERE, said)


_PLATFORM_LIBRARIES = {"pulumi": "platform"}
_LIBRARIES = {Platform.GKE: {"pulumi_gcp": "gke", "google.auth": "gke"}, Platform.EKS: {"pulumi_aws": "eks", "boto3": "eks"}}
"""By cloud: libraries that declare its stacks and check its credentials, with the extra that installs them."""


def _cloud(cloud: Platform, found: CommandLine | None, stacks: _Stacks, *, ask: bool) -> Iterator[Piece]:
    missing, remedies = missing_pieces(found, cloud)
    yield from (_missing("Pulumi or plugin", said, remedy) for said, remedy in zip(missing, remedies, strict=True))
    if not missing and found is not None:
        yield Piece(
            "Pulumi and plugins", PieceStanding.HERE, f"pulumi {found.version} and the provider plugins, in the versions of the SDKs"
        )
    if absent := [*_libraries(_LIBRARIES[cloud])]:
        yield from absent
        return
    for name, settings in stacks.items():
        if isinstance(settings, GkeSettings | EksSettings) and settings.cloud is cloud:
            yield _credentials(name, settings, found, ask=ask)


def _can_be_imported(library: str) -> bool:
    try:
        return find_spec(library) is not None
    except ModuleNotFoundError:
        # The parent package is not installed either.
        return False


def _credentials(stack: str, settings: GkeSettings | EksSettings, found: CommandLine | None, *, ask: bool) -> Piece:
    name = f"credentials of {stack}"
    if not ask:
        return Piece(name, PieceStanding.NOT_ASKED, "their owner was not looked up", "flexspot doctor --ask")
    try:
        access = require_access(stack, settings)
        said = f"{access.identity}, to {access.place}"
        if found is not None:
            backend = backend_of(stack, found)
            require_passphrase(stack, backend)
            said += f"; the state is in {backend}"
    except ExplainedError as error:
        return _missing(name, error.problem, error.remedy)
    return Piece(name, PieceStanding.HERE, said)


_LOOKS = {
    PieceStanding.HERE: ("✓", "green"),
    PieceStanding.BUILT: ("✓", "green"),
    PieceStanding.NOT_ASKED: ("?", "yellow"),
    PieceStanding.MISSING: ("✗", "red"),
}
"""Mark and colour of each state."""


def doctor(
    needed: Annotated[list[Purpose] | None, option("--for", "Exit with 1 unless this works here. Repeatable.")] = None,
    ask: Annotated[
        bool, option("--ask", "Ask the clouds of the project's stacks who the credentials belong to, and Pulumi where the state is kept.")
    ] = False,
    shown: Annotated[Format, option("--format", "A table, or JSON for programs.")] = "text",
) -> None:
    """Report what works on this machine, what is missing, and how to get it. Builds and changes nothing."""
    found = diagnoses(ask=ask)
    if shown == "json":
        out.print_json(json.dumps([_as_data(each) for each in found]))
    else:
        _show_diagnoses(found)
    unmet = [each for each in found if each.purpose in (needed or ()) and each.standing is PieceStanding.MISSING]
    expect(not unmet)


def _as_data(diagnosis: Diagnosis) -> dict[str, object]:
    pieces = [{"piece": each.name, "state": each.standing.value, "found": each.said, "remedy": each.remedy} for each in diagnosis.pieces]
    return {"for": diagnosis.purpose.value, "state": diagnosis.standing.value, "pieces": pieces}


def _show_diagnoses(found: list[Diagnosis]) -> None:
    for diagnosis in found:
        mark, colour = _LOOKS[diagnosis.standing]
        out.print(f"[{colour}]{mark}[/] [bold]{diagnosis.purpose.value}[/]: {_PURPOSES[diagnosis.purpose]}")
        rows = [(each.name, Text(each.standing.value, _LOOKS[each.standing][1]), each.said, each.remedy) for each in diagnosis.pieces]
        show("", ("piece", "state", "what is there", "what to do"), rows)
