"""Where credentials are looked at, played on loopback: Google's token server and Resource Manager, and moto's AWS."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from moto.server import ThreadedMotoServer

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

IDENTITY = "deployer@acme-ai-dev.iam.gserviceaccount.com"
MOTO_ACCOUNT = "123456789012"
"""The account of every access key that moto does not know."""

_TOKEN = "a-token-of-the-tests"  # noqa: S105 -- made up


@contextmanager
def google(projects: dict[str, str]) -> Generator[str]:
    """Serves tokens and `projects`, the state of each by its id; yields the address. Of others it says 403, as Google does."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self._answer(200, {"access_token": _TOKEN, "expires_in": 3600, "token_type": "Bearer"})

        def do_GET(self) -> None:
            project = self.path.removeprefix("/v3/projects/")
            if self.headers.get("Authorization") != f"Bearer {_TOKEN}":
                self._answer(401, {"error": {"code": 401, "status": "UNAUTHENTICATED"}})
            elif project not in projects:
                self._answer(403, {"error": {"code": 403, "status": "PERMISSION_DENIED"}})
            else:
                self._answer(200, {"name": "projects/415104041262", "projectId": project, "state": projects[project]})

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the base class' own name
            """Nobody reads it."""

        def _answer(self, status: int, content: dict[str, Any]) -> None:
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def write_service_account(file: Path, address: str) -> None:
    """A key file of a service account, whose tokens come from `address`."""
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


@contextmanager
def aws() -> Generator[str]:
    """Serves moto's AWS; yields the address."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()
