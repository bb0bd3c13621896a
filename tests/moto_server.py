"""Moto's AWS, served by this process. It keeps resources of earlier tests, so it is reset first."""

from __future__ import annotations

import logging
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING

from moto.server import ThreadedMotoServer

if TYPE_CHECKING:
    from collections.abc import Generator


@contextmanager
def moto_server() -> Generator[str]:
    """Yield the address of an empty AWS."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        address = f"http://{host}:{port}"
        urllib.request.urlopen(urllib.request.Request(f"{address}/moto-api/reset", method="POST")).close()  # noqa: S310 -- our own server
        yield address
    finally:
        server.stop()
