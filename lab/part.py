"""What the lab knows of each program it runs: a value, made from ports, certificates and tools, before anything is started."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from lab.certificates import Certificates
    from lab.home import LabHome
    from lab.tools.build import Tools


@dataclass(frozen=True)
class LabContext:
    """What parts are made from."""

    home: LabHome
    certificates: Certificates
    ports: dict[str, int]
    tools: Tools

    @property
    def api_url(self) -> str:
        """The API server's address."""
        return f"https://127.0.0.1:{self.ports['kube-apiserver']}"


@dataclass(frozen=True)
class Part:
    """One program of the lab.

    `ports` are names of LabContext.ports that it listens on, the first being the one that is shown. `files` are written before it
    starts. `probe` is the address that answers 200 once it is ready. `version` is that of the module it was built from.
    """

    name: str
    version: str
    command: list[str]
    ports: tuple[str, ...]
    probe: str
    environment: dict[str, str] = field(default_factory=dict)
    files: dict[Path, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Changes when the program must be restarted to follow its settings."""
        content = [self.version, self.command, self.environment, {str(path): text for path, text in self.files.items()}]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
