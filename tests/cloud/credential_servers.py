"""Servers on loopback that check credentials: Google's token server and Resource Manager, and moto's AWS."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from loopback_server import Reply, Request, serving

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

IDENTITY = "deployer@acme-ai-dev.iam.gserviceaccount.com"
MOTO_ACCOUNT = "123456789012"
"""Account of every access key that moto does not know."""

_TOKEN = "a-token-of-the-tests"  # noqa: S105 -- made up


@contextmanager
def google(projects: dict[str, str], disabled: dict[str, set[str]] | None = None) -> Generator[str]:
    """Serve tokens, the state of each of `projects` by id, and their APIs except the `disabled` ones. Yield the address.

    Answer 403 for other projects, as Google does. The answer about APIs has the form of Service Usage's batchGet in its discovery document.
    """

    def answer(asked: Request) -> tuple[int, dict[str, Any]]:
        if asked.method == "POST":
            return 200, {"access_token": _TOKEN, "expires_in": 3600, "token_type": "Bearer"}
        if asked.headers.get("authorization") != f"Bearer {_TOKEN}":
            return 401, {"error": {"code": 401, "status": "UNAUTHENTICATED"}}
        if asked.path.startswith("/v1/projects/"):
            return _services(asked.path, disabled or {})
        project = asked.path.removeprefix("/v3/projects/")
        if project not in projects:
            return 403, {"error": {"code": 403, "status": "PERMISSION_DENIED"}}
        return 200, {"name": "projects/415104041262", "projectId": project, "state": projects[project]}

    def reply(asked: Request) -> Reply:
        status, content = answer(asked)
        return Reply(status, json.dumps(content).encode())

    with serving(reply) as address:
        yield address


def _services(path: str, disabled: dict[str, set[str]]) -> tuple[int, dict[str, Any]]:
    target = urlsplit(path)
    project = target.path.removeprefix("/v1/projects/").removesuffix("/services:batchGet")
    off, services = disabled.get(project, set()), []
    for name in parse_qs(target.query)["names"]:
        api = name.rpartition("/")[2]
        state = "DISABLED" if api in off else "ENABLED"
        services.append({"name": f"projects/415104041262/services/{api}", "parent": "projects/415104041262", "state": state})
    return 200, {"services": services}


def write_service_account(file: Path, address: str) -> None:
    """Write a key file of a service account whose tokens come from `address`."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    text = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    content = {
        "type": "service_account",
        "project_id": "acme-ai-dev",
        "private_key_id": "0" * 40,
        "private_key": text.decode(),
        "client_email": IDENTITY,
        "client_id": "1",
        "token_uri": f"{address}/token",
    }
    file.touch(mode=0o600)
    file.write_text(json.dumps(content), encoding="utf-8")
