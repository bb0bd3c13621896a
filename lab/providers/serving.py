"""Serving a resource provider to the Pulumi engine."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import grpc
from pulumi.runtime.proto import provider_pb2_grpc

from lab.ports import HOST

if TYPE_CHECKING:
    from collections.abc import Generator

_MESSAGE_BYTES = 400 * 1024 * 1024
"""As large as the engine's own limit: a state with many objects is one message."""

_WORKERS = 32
"""Calls under way at once. One that waits for an object holds a worker, so there are more than the engine's parallelism of 16."""


@runtime_checkable
class Closing(Protocol):
    """A provider that has something to end."""

    def close(self) -> None:
        """Ends all that waits, and connections."""


@contextmanager
def serve(provider: provider_pb2_grpc.ResourceProviderServicer) -> Generator[int]:
    """Serves `provider` on a free port of loopback while the context lasts; yields the port.

    For PULUMI_DEBUG_PROVIDERS=NAME:PORT, with which the engine attaches to a running provider instead of looking for a plugin.
    A provider with a method `close` is closed at the end.
    """
    options = [("grpc.max_receive_message_length", _MESSAGE_BYTES), ("grpc.max_send_message_length", _MESSAGE_BYTES)]
    server = grpc.server(ThreadPoolExecutor(_WORKERS), options=options)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(provider, server)
    port = server.add_insecure_port(f"{HOST}:0")
    server.start()
    try:
        yield port
    finally:
        stopped = server.stop(grace=1)
        if isinstance(provider, Closing):
            # A call that waits for an object would hold its worker, and with it the end of the program, for minutes.
            provider.close()
        stopped.wait()
