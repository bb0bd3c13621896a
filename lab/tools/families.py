"""The tool families: which programs come from which pinned Go module."""

from __future__ import annotations

import hashlib
import platform
import re
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field

from capacity.catalog.data_files import Record, read_records

MODULES = Path(__file__).parent


class Patch(Record):
    """A text replacement in one source file of the family's module; it must match exactly `count` times."""

    file: str
    find: str
    replace: str
    count: Annotated[int, Field(ge=1)]


class Family(Record):
    """Programs built from one Go module; `assets` maps a folder name to glob patterns inside that module.

    A family without `binaries` is files alone.
    """

    name: str
    module: str
    binaries: dict[str, str] = Field(default_factory=dict)
    ldflags: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    """Go's build tags."""
    assets: dict[str, list[str]] = Field(default_factory=dict)
    patches: tuple[Patch, ...] = ()
    scripts: tuple[str, ...] = ()
    """Programs of the module that need no building, put beside the built ones."""
    on_request: Annotated[bool, Field(exclude=True)] = False
    """No part of a lab: built only where it is asked for."""
    folder: Annotated[Path, Field(exclude=True)] = MODULES
    """Where the family's go.mod and go.sum are; set when tools.yaml is read."""

    @property
    def version(self) -> str:
        """The pinned version of the family's module, such as v1.36.1, as its go.mod has it."""
        pin = re.search(rf"^(?:require )?\s*{re.escape(self.module)} (v\S+)", (self.folder / "go.mod").read_text(), re.MULTILINE)
        if pin is None:
            raise ValueError(f"{self.folder / 'go.mod'} does not require {self.module}")
        return pin[1]

    @property
    def key(self) -> str:
        """A hash of all that decides the built files: the module files, this family's entry, the operating system and processor."""
        digest = hashlib.sha256()
        for part in (
            (self.folder / "go.mod").read_bytes(),
            (self.folder / "go.sum").read_bytes(),
            self.model_dump_json(exclude_defaults=True).encode(),
            f"{platform.system()}/{platform.machine()}".encode(),
        ):
            digest.update(hashlib.sha256(part).digest())
        return digest.hexdigest()[:16]


class _FamilyFile(Record):
    families: tuple[Family, ...]


def read_families(path: Path) -> tuple[Family, ...]:
    """The families of a tools.yaml, whose module files are in folders beside it. Raises DataFileError when it breaks its schema."""
    return tuple(family.model_copy(update={"folder": path.parent / family.name}) for family in read_records(path, _FamilyFile).families)


@cache
def all_families() -> tuple[Family, ...]:
    """Every family, in the order in which they are built: the quick ones first, those on request last."""
    return read_families(MODULES / "tools.yaml")


def families() -> tuple[Family, ...]:
    """The families that a lab needs, without those on request."""
    return tuple(family for family in all_families() if not family.on_request)


def family_named(name: str) -> Family:
    """The family `name`, on request or not. Raises KeyError when there is none."""
    return {family.name: family for family in all_families()}[name]
