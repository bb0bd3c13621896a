"""Serving a resource provider to the Pulumi engine, and telling the engine what does not work."""

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
    """What grpc asks of a status that carries details."""

    def __init__(self, message: str, details: bytes) -> None:
        self.code = grpc.StatusCode.UNKNOWN
        self.details = message
        self.trailing_metadata = ((_DETAILS, details),)


def abort(context: grpc.ServicerContext, message: str, code: grpc.StatusCode = grpc.StatusCode.UNKNOWN) -> NoReturn:
    """Ends the call: it failed, and nothing was changed."""
    context.abort(code, message)
    raise AssertionError("abort does not return")  # pyrefly: ignore[unreachable] -- grpc has no types that promise it


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
    raise AssertionError("abort does not return")  # pyrefly: ignore[unreachable] -- grpc has no types that promise it


class StandIn(provider_pb2_grpc.ResourceProviderServicer):
    """What every stand-in answers: for the provider `name`, at the `version` of its SDK."""

    def __init__(self, name: str, version: str) -> None:
        self._name = name
        self._version = version

    def Attach(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802, ARG002 -- gRPC's
        """The engine says where it listens; nothing is sent to it."""
        return empty_pb2.Empty()

    def GetPluginInfo(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802, ARG002 -- gRPC's
        """The version, which the engine compares with the SDK's."""
        return plugin_pb2.PluginInfo(version=self._version)

    def GetSchema(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802, ARG002 -- gRPC's
        """A schema without types: programs in Python bring theirs along."""
        return provider_pb2.GetSchemaResponse(schema=json.dumps({"name": self._name, "version": self._version}))

    def close(self) -> None:
        """Ends all that waits, and connections."""


_MESSAGE_BYTES = 400 * 1024 * 1024
"""As large as the engine's own limit: a state with many objects is one message."""

_WORKERS = 32
"""Calls under way at once. One that waits for an object holds a worker, so there are more than the engine's parallelism of 16."""


@contextmanager
def serve(provider: StandIn) -> Generator[int]:
    """Serves `provider` on a free port of loopback while the context lasts; yields the port.

    For PULUMI_DEBUG_PROVIDERS=NAME:PORT, with which the engine attaches to a running provider instead of looking for a plugin.
    The provider is closed at the end.
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
        # A call that waits for an object would hold its worker, and with it the end of the program, for minutes.
        provider.close()
        stopped.wait()


class ProviderError(Exception):
    """An operation failed, and the state stays as it is."""


class PartialFailureError(Exception):
    """An operation left something behind that the state must keep: the object is there, but not as it should be.

    `reasons` are what the state keeps as the resource's errors: the text, and what is known beside it.
    """

    def __init__(
        self, text: str, identity: str, state: Properties, inputs: Properties | None = None, *, details: Sequence[str] = ()
    ) -> None:
        super().__init__(text)
        self.identity = identity
        self.state = state
        self.inputs = inputs
        self.reasons = [text, *details]
