"""Serve a resource provider to the Pulumi engine, and report errors to it."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc, status_pb2

from flexspot.lab.ports import HOST
from flexspot.lab.providers.values import encode

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from flexspot.lab.providers.values import Properties


_DETAILS = "grpc-status-details-bin"


class _Status(grpc.Status):
    """A status with details, as grpc requires it."""

    def __init__(self, message: str, details: bytes) -> None:
        self.code = grpc.StatusCode.UNKNOWN
        self.details = message
        self.trailing_metadata = ((_DETAILS, details),)


def abort(context: grpc.ServicerContext, message: str, code: grpc.StatusCode = grpc.StatusCode.UNKNOWN) -> NoReturn:
    """End the call: it failed, and nothing was changed."""
    context.abort(code, message)
    raise AssertionError("abort does not return")  # pyrefly: ignore[unreachable] -- grpc has no types that promise it


def abort_partial(context: grpc.ServicerContext, failure: PartialFailureError) -> NoReturn:
    """End the call: it failed, but the engine must keep the object in its state."""
    detail: Any = provider_pb2.ErrorResourceInitFailed(
        id=failure.identity,
        properties=encode(failure.state),
        reasons=failure.reasons,
        inputs=encode(failure.inputs) if failure.inputs is not None else None,
    )
    status: Any = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=str(failure))
    status.details.add().Pack(detail)
    context.abort_with_status(_Status(str(failure), status.SerializeToString()))
    raise AssertionError("abort does not return")  # pyrefly: ignore[unreachable] -- grpc has no types that promise it


class StandIn(provider_pb2_grpc.ResourceProviderServicer):
    """Base class of the stand-ins, for the provider `name` at the `version` of its SDK."""

    def __init__(self, name: str, version: str) -> None:
        self._name = name
        self._version = version

    def Attach(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802, ARG002 -- gRPC's
        """Accept the engine's address. Nothing is sent to it."""
        return empty_pb2.Empty()

    def GetPluginInfo(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802, ARG002 -- gRPC's
        """Return the version, which the engine compares with the SDK's."""
        return plugin_pb2.PluginInfo(version=self._version)

    def GetSchema(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802, ARG002 -- gRPC's
        """Return a schema without types: programs in Python include theirs."""
        return provider_pb2.GetSchemaResponse(schema=json.dumps({"name": self._name, "version": self._version}))

    def close(self) -> None:
        """End all waits and connections."""


_MESSAGE_BYTES = 400 * 1024 * 1024
"""The engine's own limit: a state with many objects is one message."""

_WORKERS = 32
"""Concurrent calls. A call that waits for an object occupies a worker, so this is more than the engine's parallelism of 16."""


@contextmanager
def serve(provider: StandIn) -> Generator[int]:
    """Serve `provider` on a free port of loopback until the block ends, then close it. Yield the port.

    For PULUMI_DEBUG_PROVIDERS=NAME:PORT, with which the engine connects to a running provider instead of searching for a plugin.
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
        # Otherwise a call that waits for an object would block its worker, and the end of the program, for minutes.
        provider.close()
        stopped.wait()


class ProviderError(Exception):
    """An operation failed, and the state is unchanged."""


class PartialFailureError(Exception):
    """An operation failed and left an object that the state must keep: it exists, but not as requested.

    `reasons` are the resource's errors in the state: the text, then the details.
    """

    def __init__(
        self, text: str, identity: str, state: Properties, inputs: Properties | None = None, *, details: Sequence[str] = ()
    ) -> None:
        super().__init__(text)
        self.identity = identity
        self.state = state
        self.inputs = inputs
        self.reasons = [text, *details]
