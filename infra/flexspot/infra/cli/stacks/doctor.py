"""The words of `flexspot doctor`: purposes, the pieces that each needs, and how it stands with them."""

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

import typer
from rich.text import Text

from flexspot.capacity.catalog.platform import Platform
from flexspot.capacity.settings.platform import EksSettings, GkeSettings
from flexspot.capacity.values.errors import ExitCode, ExplainedError, SettingsError
from flexspot.infra.cli.command_line import Format
from flexspot.infra.cli.console import out
from flexspot.infra.cli.tables import show
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
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from flexspot.capacity.settings.platform import PlatformSettings
    from flexspot.infra.deployment.prerequisites import CommandLine
    from flexspot.infra.project import Project
    from flexspot.lab.tools.build import Family


class PieceStanding(StrEnum):
    """How it stands with a piece, from good to bad; a purpose stands as the worst of its pieces."""

    HERE = "here"
    BUILT = "built when needed"
    NOT_ASKED = "not asked"
    MISSING = "missing"


@dataclass(frozen=True)
class Piece:
    """Something that a purpose needs. `said` is what was found, `remedy` the next step where it is missing."""

    name: str
    standing: PieceStanding
    said: str
    remedy: str = ""


class Purpose(StrEnum):
    """What people do with Flexspot, from what needs least to what needs most."""

    SETTINGS = "settings"
    PREVIEW = "preview"
    LAB = "lab"
    GKE = "gke"
    EKS = "eks"

    @property
    def words(self) -> str:
        """What it is, for a heading."""
        return _PURPOSES[self]


_PURPOSES = {
    Purpose.SETTINGS: "check stacks, lint manifests, say what they cost",
    Purpose.PREVIEW: "preview without any cloud",
    Purpose.LAB: "rehearse on a control plane of one's own",
    Purpose.GKE: "deploy stacks of GKE",
    Purpose.EKS: "deploy stacks of EKS",
}


@dataclass(frozen=True)
class Diagnosis:
    """A purpose and all that it needs."""

    purpose: Purpose
    pieces: tuple[Piece, ...]

    @property
    def standing(self) -> PieceStanding:
        """The worst of the pieces."""
        return max((each.standing for each in self.pieces), key=list(PieceStanding).index)


def diagnoses(*, ask: bool) -> list[Diagnosis]:
    """What every purpose has on this machine.

    With `ask`, the clouds of the project's stacks are asked whose the credentials are, and the backend is looked at; otherwise nothing
    goes over the network.
    """
    project = _project_or_why()
    stacks = [] if isinstance(project, ExplainedError) else [_stack(project, name) for name in project.stack_names()]
    builder, found = _GoBuilder.of_this_machine(), command_line()
    clouds = {Purpose.GKE: Platform.GKE, Purpose.EKS: Platform.EKS}
    return [
        Diagnosis(Purpose.SETTINGS, (_python(), *_settings(project, stacks))),
        Diagnosis(Purpose.PREVIEW, tuple(_preview(found, builder))),
        Diagnosis(Purpose.LAB, tuple(_lab(found, builder))),
        *(Diagnosis(purpose, tuple(_cloud(cloud, found, stacks, ask=ask))) for purpose, cloud in clouds.items()),
    ]


@dataclass(frozen=True)
class _CheckedStack:
    """A stack file: its settings, or what is wrong with them."""

    name: str
    settings: PlatformSettings | None
    problems: tuple[str, ...] = ()


def _project_or_why() -> Project | ExplainedError:
    try:
        return project_here()
    except ExplainedError as error:
        return error


def _stack(project: Project, name: str) -> _CheckedStack:
    try:
        return _CheckedStack(name, checked_stack(project.stack_file(name)).settings)
    except SettingsError as error:
        return _CheckedStack(name, None, tuple(map(str, error.problems)))
    except ExplainedError as error:
        return _CheckedStack(name, None, (error.problem,))


def _python() -> Piece:
    return Piece("Flexspot", PieceStanding.HERE, f"{installed('flexspot')} on Python {platform.python_version()}")


def _settings(project: Project | ExplainedError, stacks: list[_CheckedStack]) -> Iterator[Piece]:
    if isinstance(project, ExplainedError):
        yield Piece("project", PieceStanding.MISSING, project.problem, project.remedy)
        return
    yield Piece("project", PieceStanding.HERE, f"{project.name} in {project.folder}")
    if not stacks:
        yield Piece(
            "stack files",
            PieceStanding.MISSING,
            f"none in {project.stacks}",
            "write one, or begin with `flexspot init` in an empty folder.",
        )
    for each in stacks:
        if each.problems:
            more = f" (and {len(each.problems) - 1} more)" if len(each.problems) > 1 else ""
            said, remedy = f"{each.problems[0]}{more}", f"flexspot settings check -s {each.name}"
            yield Piece(f"stack {each.name}", PieceStanding.MISSING, said, remedy)
    if sound := [each.name for each in stacks if not each.problems]:
        yield Piece("stack files", PieceStanding.HERE, ", ".join(sound))


@dataclass(frozen=True)
class _GoBuilder:
    """What builds programs from source: the version of Go on PATH, None without one, and whether it fetches a later one by itself."""

    go: str | None
    fetches: bool

    @staticmethod
    def of_this_machine() -> _GoBuilder:
        path = shutil.which("go")
        if path is None:
            return _GoBuilder(None, fetches=False)
        asked = subprocess.run(  # noqa: S603 -- the `go` that a build would use
            [path, "env", "GOVERSION", "GOTOOLCHAIN"],
            capture_output=True,
            text=True,
            check=False,
            cwd=gettempdir(),
            env=os.environ | {"GOTOOLCHAIN": os.environ.get("GOTOOLCHAIN", "auto"), "GOWORK": "off"},
        )
        version, _, toolchain = asked.stdout.strip().partition("\n")
        return _GoBuilder(version.removeprefix("go") or None, fetches=toolchain != "local")

    def piece(self, name: str, wanted: Iterable[Family], links_to: str) -> Piece:
        """How it stands with programs that are built from source, whose pieces are named together."""
        from flexspot.lab.tools.build import tool_cache  # noqa: PLC0415

        wanted, cache = tuple(wanted), tool_cache()
        absent = [each for each in wanted if not each.built_in(cache).is_dir()]
        if not absent:
            return Piece(name, PieceStanding.HERE, f"{links_to}, built before, in {cache}")
        names = ", ".join(f"{each.name} {each.version}" for each in absent)
        needed = max((each.go for each in absent), key=_numbers)
        if self.go is None:
            return Piece(
                name,
                PieceStanding.MISSING,
                f"{names}: to be built, and there is no `go` on PATH",
                f"install Go {needed} or later from https://go.dev/dl",
            )
        if _numbers(self.go) < _numbers(needed) and not self.fetches:
            said = f"{names}: to be built with Go {needed}, and `go` is {self.go} and may fetch no other (GOTOOLCHAIN=local)"
            return Piece(name, PieceStanding.MISSING, said, "unset GOTOOLCHAIN, or install that Go from https://go.dev/dl")
        room = room_in(cache)
        if room < _ROOM_TO_BUILD:
            said = (
                f"{names}: to be built, and {cache} has {room / 2**30:.1f} GiB left of the {_ROOM_TO_BUILD // 2**30} that a build may take"
            )
            return Piece(name, PieceStanding.MISSING, said, "free some room there, or set XDG_CACHE_HOME to a larger disk")
        return Piece(name, PieceStanding.BUILT, f"{names}; Go is {self.go}", _BUILD_NOW)


_ROOM_TO_BUILD = 10 * 2**30
"""Bytes that Go's caches and the programs may take together, as the error for a full disk says (flexspot/lab/tools/build.py)."""

_BUILD_NOW = "flexspot lab tools"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:3]))


def room_in(folder: Path) -> int:
    """Bytes that are free on the disk of a folder, which need not be there yet."""
    return shutil.disk_usage(next(each for each in (folder, *folder.parents) if each.is_dir())).free


def _official(found: CommandLine | None) -> str:
    """Why the official command line is not taken, in words that go on after a name."""
    if found is None:
        return "no official `pulumi` is on PATH"
    return f"{found.path} is {found.version}, and the SDK needs {sdk_version()} or a later {sdk_version().major}"


def _libraries(libraries: Mapping[str, str]) -> Iterator[Piece]:
    """The libraries, each with its extra, that are not installed."""
    for library, extra in libraries.items():
        if not _can_be_imported(library):
            yield Piece("library", PieceStanding.MISSING, f"{library} is not installed", install(extra))


def _preview(found: CommandLine | None, builder: _GoBuilder) -> list[Piece]:
    return [*_libraries(_PLATFORM_LIBRARIES)] or [_engine(found, builder)]


def _engine(found: CommandLine | None, builder: _GoBuilder) -> Piece:
    """The engine: the official one where it fits, else one that is built."""
    if found is not None and found.fits:
        return Piece("pulumi", PieceStanding.HERE, f"{found.version} at {found.path}; nothing is built for a preview")
    from flexspot.lab.tools.build import family_named  # noqa: PLC0415

    piece = builder.piece("pulumi", [family_named("pulumi")], f"the lab's own {family_named('pulumi').version}")
    return replace(piece, said=f"{piece.said}; {_official(found)}")


def _lab(found: CommandLine | None, builder: _GoBuilder) -> Iterator[Piece]:
    if missing := [*_libraries(_PLATFORM_LIBRARIES)]:
        yield from missing
        return
    from flexspot.lab.tools.build import families  # noqa: PLC0415

    fits = found is not None and found.fits
    yield _engine(found, builder)
    own = [each for each in families() if not (fits and each.name == "pulumi")]
    yield builder.piece("programs of the lab", own, ", ".join(each.name for each in own if each.binaries))
    if plugin := plugin_path("kubernetes"):
        yield Piece("Kubernetes provider", PieceStanding.HERE, f"the official plugin, {plugin}")
    else:
        said = f"the lab's own stands in, for labs alone; get the official one with `{plugin_command('kubernetes')}`"
        yield Piece("Kubernetes provider", PieceStanding.HERE, said)
    host = shutil.which("pulumi-language-python")
    said = f"the official one, {host}" if host else "the lab's own stands in where plain `pulumi` runs; `flexspot` needs none"
    yield Piece("language host", PieceStanding.HERE, said)


_PLATFORM_LIBRARIES = {"pulumi": "platform"}
_LIBRARIES = {Platform.GKE: {"pulumi_gcp": "gke", "google.auth": "gke"}, Platform.EKS: {"pulumi_aws": "eks", "boto3": "eks"}}
"""By cloud: the libraries that its stacks are declared and its credentials are looked at with, and the extra that brings them."""


def _cloud(cloud: Platform, found: CommandLine | None, stacks: list[_CheckedStack], *, ask: bool) -> Iterator[Piece]:
    missing, remedies = missing_pieces(found, cloud)
    for said, remedy in zip(missing, remedies, strict=True):
        yield Piece("official piece", PieceStanding.MISSING, said, remedy)
    if not missing and found is not None:
        yield Piece("official pieces", PieceStanding.HERE, f"pulumi {found.version} and the provider plugins, in the versions of the SDKs")
    if absent := [*_libraries(_LIBRARIES[cloud])]:
        yield from absent
        return
    for each in stacks:
        if isinstance(each.settings, GkeSettings | EksSettings) and each.settings.cloud is cloud:
            yield _credentials(each.name, each.settings, found, ask=ask)


def _can_be_imported(library: str) -> bool:
    try:
        return find_spec(library) is not None
    except ModuleNotFoundError:
        # What it is part of is not there either.
        return False


def _credentials(stack: str, settings: GkeSettings | EksSettings, found: CommandLine | None, *, ask: bool) -> Piece:
    name = f"credentials of {stack}"
    if not ask:
        return Piece(name, PieceStanding.NOT_ASKED, "nobody was asked whose they are", "flexspot doctor --ask")
    try:
        access = require_access(stack, settings)
        said = f"{access.identity}, to {access.place}"
        if found is not None:
            backend = backend_of(stack, found)
            require_passphrase(stack, backend)
            said += f"; the state is in {backend}"
    except ExplainedError as error:
        return Piece(name, PieceStanding.MISSING, error.problem, error.remedy)
    return Piece(name, PieceStanding.HERE, said)


_LOOKS = {
    PieceStanding.HERE: ("✓", "green"),
    PieceStanding.BUILT: ("✓", "green"),
    PieceStanding.NOT_ASKED: ("?", "yellow"),
    PieceStanding.MISSING: ("✗", "red"),
}
"""By standing: its mark and its colour."""


def doctor(
    needed: Annotated[list[Purpose] | None, typer.Option("--for", help="Exit with 1 unless this works here. Repeatable.")] = None,
    ask: Annotated[
        bool,
        typer.Option(
            "--ask", help="Ask the clouds of the project's stacks who the credentials belong to, and Pulumi where the state is kept."
        ),
    ] = False,
    shown: Annotated[Format, typer.Option("--format", help="A table, or JSON for programs.")] = Format.TEXT,
) -> None:
    """Report what works on this machine, what is missing, and how to get it. Builds and changes nothing."""
    found = diagnoses(ask=ask)
    if shown is Format.JSON:
        out.print_json(json.dumps([_as_data(each) for each in found]))
    else:
        _show_diagnoses(found)
    unmet = [each for each in found if each.purpose in (needed or ()) and each.standing is PieceStanding.MISSING]
    if unmet:
        raise typer.Exit(ExitCode.UNMET)


def _as_data(diagnosis: Diagnosis) -> dict[str, object]:
    pieces = [{"piece": each.name, "state": each.standing.value, "found": each.said, "remedy": each.remedy} for each in diagnosis.pieces]
    return {"for": diagnosis.purpose.value, "state": diagnosis.standing.value, "pieces": pieces}


def _show_diagnoses(found: list[Diagnosis]) -> None:
    for diagnosis in found:
        mark, colour = _LOOKS[diagnosis.standing]
        out.print(f"[{colour}]{mark}[/] [bold]{diagnosis.purpose.value}[/]: {diagnosis.purpose.words}")
        rows = [(each.name, Text(each.standing.value, _LOOKS[each.standing][1]), each.said, each.remedy) for each in diagnosis.pieces]
        show("", ("piece", "state", "what is there", "what to do"), rows)
