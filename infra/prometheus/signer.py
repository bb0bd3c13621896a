"""What signs requests in: the part that both clouds' signers have, and what a reply to somebody who may not ask is told as."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from capacity.values.errors import ExplainedError

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Reply:
    """What came over HTTP. `error_kind` is AWS's own name of an error, where it gave one."""

    status: int
    content_type: str
    body: bytes
    error_kind: str = ""


def access_refused(problem: str, remedy: str, reply: Reply, said: str) -> ExplainedError:
    """The error for a reply to somebody who may not ask; `said` is its text, without what is secret."""
    return ExplainedError(f"Prometheus refused access: {problem} (HTTP {reply.status}).", remedy, evidence=(said,) if said else ())


class Signer(Protocol):
    """Signs requests in with the credentials that a cloud's own tools would use, as they are at that moment."""

    def headers(self, method: str, url: str, body: bytes, headers: Mapping[str, str]) -> dict[str, str]:
        """What a request is to carry besides `headers`. Raises ExplainedError where the credentials cannot be had."""
        ...

    def secrets(self) -> set[str]:
        """What no message may show."""
        ...

    def refused(self, reply: Reply, said: str) -> ExplainedError | None:
        """What a reply that is no answer means, `said` being its text; None where it is not about who asks."""
        ...
