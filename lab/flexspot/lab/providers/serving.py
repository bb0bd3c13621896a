"""Serving a resource provider to the Pulumi engine, and telling the person and the engine what does not work, in the official words."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc, status_pb2

from flexspot.lab.ports import HOST
from flexspot.lab.providers.objects import object_id, type_of
from flexspot.lab.providers.values import encode

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from flexspot.lab.cluster import KubeObject
    from flexspot.lab.providers.api import ApiRefusal, UnservedKindError
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


_ALREADY_EXISTS = "AlreadyExists"
_CONFLICT = "Conflict"

_IT_EXISTS = """

The resource already exists in the cluster. This can happen when:

  - Renaming a Pulumi resource: use an alias to preserve the identity,
    or use deleteBeforeReplace if the resource needs replacement.
  - Managing an existing resource: use a Patch resource (e.g. NamespacePatch)
    to manage specific fields without owning the resource lifecycle.
  - Adopting a resource into Pulumi: use `pulumi import`. Note that
    protected resources (e.g. kube-system) cannot be deleted on destroy.
  - Intentional upsert: set upsertExistingObjects on the provider to allow
    server-side apply to update existing objects on create."""

_CONFLICTS = (
    "https://www.pulumi.com/registry/packages/kubernetes/how-to-guides/managing-resources-with-server-side-apply/"
    "#handle-field-conflicts-on-existing-resources"
)


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


def quoted(text: str) -> str:
    """A name in double quotes."""
    return f'"{text}"'


def not_created(urn: str, manager: str, cause: ApiRefusal | UnservedKindError) -> str:
    """Why there is no new object, and what to do about it."""
    # Loads the Kubernetes client, which the offline providers do without.
    from flexspot.lab.providers.api import UnservedKindError  # noqa: PLC0415

    if isinstance(cause, UnservedKindError):
        _, api_version, kind = type_of(urn).split(":")
        return f"creation of resource {quoted(urn)} with kind {api_version.removeprefix('core/')}/{kind} failed because {_NO_KIND}: {cause}"
    advice = _IT_EXISTS if cause.reason == _ALREADY_EXISTS else ""
    return f"resource {quoted(urn)} was not successfully created by the Kubernetes API server: {said(cause, manager)}{advice}"


def not_ready_after_creation(urn: str, why: str) -> str:
    """A new object is there, but not as it should be."""
    return (
        f"resource {quoted(urn)} was successfully created, but the Kubernetes API server reported that it failed to fully initialize "
        f"or become live: {why}"
    )


def not_updated(live: KubeObject, why: str) -> str:
    """An object is there, but not as the update wanted it, or not ready."""
    return f"the Kubernetes API server reported that {quoted(object_id(live))} failed to fully initialize or become live: {why}"


def nothing_to_update(urn: str, why: str, cause: ApiRefusal) -> str:
    """An update failed, and the object cannot be read either."""
    return f"update of resource {quoted(urn)} failed: {why}\nunable to get cluster state: {cause.message}"


def no_kind_to_update(urn: str, cause: UnservedKindError) -> str:
    """An update failed because its kind is not served."""
    return f"update of resource {quoted(urn)} failed because {_NO_KIND}: {cause}"


_NO_KIND = (
    "the Kubernetes API server reported that the apiVersion for this resource does not exist. "
    "Verify that any required CRDs have been created"
)


def said(cause: ApiRefusal, manager: str) -> str:
    """The API server's words; of a conflict also whose it is."""
    if cause.reason != _CONFLICT:
        return cause.message
    return (
        f"server-side apply field conflict detected, see {_CONFLICTS} for troubleshooting help\n"
        f"The resource managed by field manager {quoted(manager)} had an apply conflict: {cause.message}"
    )
