"""Where one lab keeps its files, and what it remembers between runs."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, ValidationError

from flexspot.lab.progress import ExitCode, LabError

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class LabHome:
    """The folder of one lab, `.lab/NAME`, and the places in it. Holds private keys, so only its owner may read it."""

    root: Path
    name: str

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?", self.name):
            raise LabError(
                f"{self.name!r} is not a name for a lab.",
                "use 1 to 32 lower-case letters, digits and inner hyphens, such as `default` or `pr-12`.",
                exit_code=ExitCode.BAD_USAGE,
            )

    @property
    def folder(self) -> Path:
        """Everything of this lab."""
        return self.root / self.name

    @property
    def lock(self) -> Path:
        """Held while a lab is started or stopped. Beside the folder, so that it outlives a deleted lab."""
        return self.root / f"{self.name}.lock"

    @property
    def state(self) -> Path:
        """What must be the same after a restart; see flexspot.lab.home."""
        return self.folder / "state.json"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's way in."""
        return self.folder / "kubeconfig"

    @property
    def certificates(self) -> Path:
        """The lab's own authority and what it signed."""
        return self.folder / "certificates"

    def settings(self, part: str) -> Path:
        """The folder for the files that a part reads."""
        return self.folder / "settings" / part

    def data(self, part: str) -> Path:
        """The folder that a part writes to."""
        return self.folder / "data" / part

    def log(self, part: str) -> Path:
        """What a part printed since it was last started; `.1` beside it is the run before."""
        return self.folder / "logs" / f"{part}.log"


def lab_names(root: Path) -> list[str]:
    """The names of the labs that have a folder under `root`."""
    return sorted(folder.name for folder in root.glob("*") if (folder / "state.json").is_file())


VERSION = 1
"""The version of the folder's layout. Raise it when a lab of the older layout cannot be carried on."""


class LabState(BaseModel):
    """Content of state.json. `installed` is the digest of the manifests that were last applied to the API server."""

    model_config = ConfigDict(extra="forbid")

    version: int = VERSION
    ports: dict[str, int] = {}
    fixed_api_port: int | None = None
    installed: str = ""

    def save(self, path: Path) -> None:
        """Writes the state whole or not at all."""
        aside = path.with_suffix(".tmp")
        aside.write_text(self.model_dump_json(indent=2) + "\n", encoding="utf-8")
        aside.replace(path)


class StaleStateError(Exception):
    """The folder was written by another version, or its state cannot be read; the text says which."""


def load_state(path: Path) -> LabState | None:
    """The state at `path`, None when there is none. Raises StaleStateError when this version cannot carry it on."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        content = json.loads(text)
        version = content.get("version")
        if version == VERSION:
            return LabState.model_validate(content)
    except (json.JSONDecodeError, AttributeError, ValidationError) as error:
        raise StaleStateError("its state.json cannot be read") from error
    raise StaleStateError(f"its folder has layout {version}, this version of flexspot has layout {VERSION}")
