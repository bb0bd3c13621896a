"""Files of a lab, and its state between runs."""

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
    """The folder of one lab, `.lab/NAME`, and the paths in it. It contains private keys, so only its owner may read it."""

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
        """All files of this lab."""
        return self.root / self.name

    @property
    def lock(self) -> Path:
        """Lock during a start or stop of the lab. Next to the folder, so that it outlives a deleted lab."""
        return self.root / f"{self.name}.lock"

    @property
    def state(self) -> Path:
        """File with the LabState, which survives a restart."""
        return self.folder / "state.json"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.folder / "kubeconfig"

    @property
    def certificates(self) -> Path:
        """The lab's certificate authority and the certificates that it signed."""
        return self.folder / "certificates"

    def settings(self, part: str) -> Path:
        """Return the folder of the files that a part reads."""
        return self.folder / "settings" / part

    def data(self, part: str) -> Path:
        """Return the folder that a part writes to."""
        return self.folder / "data" / part

    def log(self, part: str) -> Path:
        """Return the file with a part's output since its last start; that of the run before has the suffix `.1`."""
        return self.folder / "logs" / f"{part}.log"


def lab_names(root: Path) -> list[str]:
    """Return the names of the labs that have a folder under `root`."""
    return sorted(folder.name for folder in root.glob("*") if (folder / "state.json").is_file())


VERSION = 1
"""Version of the folder's layout. Raise it when a lab with the older layout cannot be continued."""


class LabState(BaseModel):
    """Content of state.json."""

    model_config = ConfigDict(extra="forbid")

    version: int = VERSION
    ports: dict[str, int] = {}
    fixed_api_port: int | None = None
    installed: str = ""
    """Digest of the manifests that were last applied to the API server."""

    def save(self, path: Path) -> None:
        """Write the state atomically."""
        aside = path.with_suffix(".tmp")
        aside.write_text(self.model_dump_json(indent=2) + "\n", encoding="utf-8")
        aside.replace(path)


class StaleStateError(Exception):
    """The folder was written by another version, or its state cannot be read. The text states which."""


def load_state(path: Path) -> LabState | None:
    """Return the state at `path`, or None if there is none. Raises StaleStateError when this version cannot continue it."""
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
