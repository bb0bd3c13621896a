"""What a lab remembers between runs: the layout's version and its ports.

Processes are not remembered, they are found; see lab.processes.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, ValidationError

if TYPE_CHECKING:
    from pathlib import Path

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
