"""Serving a resource provider to the Pulumi engine, and ending a call with an error."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, runtime_checkable

import grpc
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc, status_pb2

from lab.ports import HOST
from lab.providers.values import encode

if TYPE_CHECKING:
    from collections.abc import Generator

    from lab.providers.failures import PartialFailureError


_DETAILS = "grpc-status-details-bin"


class _Status(grpc.Status):
    """What grpc asks of a status that carries details."""

    def __init__(self, message: str, details: bytes) -> None:
        self.code = grpc.StatusCode.UNKNOWN
        self.details = message
        self.trailing_metadata = ((_DETAILS, details),)


def abort(context: grpc.ServicerContext, message: str, code: grpc.StatusCode = grpc.StatusCode.UNKNOWN) -> NoReturn:
    """Ends the call: it failed, and nothing was changed."""
    context.abort(code, message)
    raise AssertionError("abort does not return")


def abort_partial(context: grpc.ServicerContext, failure: PartialFailureError) -> NoReturn:
    """Ends the call: it failed, but the engine must keep the object in its state."""
    detail: Any = provider_pb2.ErrorResourceInitFailed(
        id=failure.identity,
        properties=encode(failure.state),
        reasons=failure.reasons,
        inputs=encode(failure.inputs) if failure.inputs is not None else None,
    )
    status: Any = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=str(failure))
    status.details.add().Pack(detail)
    context.abort_with_status(_Status(str(failure), status.SerializeToString()))
    raise AssertionError("abort does not return")


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
