"""A run's figures for Prometheus, in its text format, from a small server of the standard library."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from flexspot_runtime.clock import SYSTEM_CLOCK, Clock

if TYPE_CHECKING:
    from collections.abc import Generator

    from flexspot_runtime.status import RunStatus

PREFIX = "flexspot_training_"


def render(status: RunStatus, now: float) -> str:
    """The text that Prometheus scrapes; `now` of the run's clock."""
    lines: list[str] = []
    for name, value in status.gauges(now).items():
        kind = "counter" if name.endswith("_total") else "gauge"
        lines += [f"# TYPE {PREFIX}{name} {kind}", f"{PREFIX}{name} {value:.17g}"]
    return "\n".join(lines) + "\n"


@contextmanager
def served(status: RunStatus, port: int, *, address: str = "", clock: Clock = SYSTEM_CLOCK) -> Generator[int]:
    """Serves /metrics while it is entered; yields the port, which is chosen for `port` 0. Raises OSError when the port is taken."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = render(status, clock.monotonic()).encode() if self.path == "/metrics" else b"/metrics is here\n"
            self.send_response(200 if self.path == "/metrics" else 404)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the server's own name
            """A line for every scrape would drown the trainer's."""

    server = ThreadingHTTPServer((address, port), Handler)
    thread = threading.Thread(target=server.serve_forever, name="flexspot-metrics", daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
