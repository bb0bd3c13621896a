"""What the lab knows of each program it runs, before anything is started; and kubeconfig files, by which its API server is reached."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import yaml

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


def kubeconfig(lab: LabContext, identity: str) -> str:
    """A kubeconfig for one of lab.certificates.IDENTITIES, whole in itself so that it can be copied elsewhere."""
    context = f"flexspot-{lab.home.name}"
    certificates = lab.certificates

    def inline(path: Path) -> str:
        return base64.b64encode(path.read_bytes()).decode()

    cluster = {"server": lab.api_url, "certificate-authority-data": inline(certificates.certificate("ca"))}
    user = {
        "client-certificate-data": inline(certificates.certificate(identity)),
        "client-key-data": inline(certificates.key(identity)),
    }
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": context, "cluster": cluster}],
        "users": [{"name": identity, "user": user}],
        "contexts": [{"name": context, "context": {"cluster": context, "user": identity}}],
        "current-context": context,
    }
    return yaml.safe_dump(content, sort_keys=False)
