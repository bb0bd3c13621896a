"""An HTTP server on loopback for one test."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Generator, Mapping


@dataclass(frozen=True)
class Request:
    """A received request."""

    method: str
    path: str
    headers: Mapping[str, str]
    """Headers by name in lower case."""
    body: str


@dataclass(frozen=True)
class Reply:
    """A reply. Its Content-Length is added."""

    status: int
    content: bytes = b""
    kind: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@contextmanager
def serving(reply: Callable[[Request], Reply], tls: ssl.SSLContext | None = None) -> Generator[str]:
    """Answer every request with `reply` while the context lasts, over TLS if `tls` is given. Yield the address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Head and body in one packet: otherwise each reply waits for the acknowledgement of its head.
        wbufsize = -1

        def do_GET(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            body = self.rfile.read(int(headers.get("content-length", "0"))).decode()
            answer = reply(Request(self.command, self.path, headers, body))
            self.send_response(answer.status)
            for name, value in {"Content-Type": answer.kind, "Content-Length": str(len(answer.content)), **answer.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.content)

        do_POST = do_PUT = do_PATCH = do_GET  # noqa: N815 -- the server looks for these names

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the base class's own name
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    # A test must not wait for an answer to a client that has gone.
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
