"""Where one lab keeps its files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lab.errors import ExitCode, LabError

if TYPE_CHECKING:
    from pathlib import Path

DEFAULT_NAME = "default"


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
        """What must be the same after a restart; see lab.state."""
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
