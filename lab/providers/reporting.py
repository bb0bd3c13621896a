"""Ending a call of the engine with an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import grpc
from pulumi.runtime.proto import provider_pb2, status_pb2

from lab.providers.values import encode

if TYPE_CHECKING:
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
