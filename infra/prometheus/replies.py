"""What a reply means: a result, a slice that is too large, or something that a person must hear of."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from capacity.chargeback.samples import MalformedReplyError, Matrix, read_matrix
from capacity.values.errors import ExplainedError

# What Prometheus, Thanos and Mimir say when a query is too much for them at once.
_TOO_LARGE = re.compile(
    r"too many samples|maximum resolution|too many points|query timed out|max-?chunks|exceeded.*limit|limit.*exceeded", re.IGNORECASE
)
_TITLE = re.compile(r"<title[^>]*>(?P<title>[^<]*)", re.IGNORECASE)
_SHOWN = 300


class TooLargeError(Exception):
    """The server will not answer so much at once; a shorter slice may do. The text is the server's."""


@dataclass(frozen=True)
class Reply:
    """What came over HTTP."""

    status: int
    content_type: str
    body: bytes


@dataclass(frozen=True)
class Answer:
    """The result of a query as it came, and what the server warned of: a part may be missing. `body` is the reply's, if it is of one."""

    result: list[Any]
    warnings: tuple[str, ...] = ()
    body: bytes | None = None

    @cached_property
    def matrix(self) -> Matrix:
        """The series. Raises MalformedReplyError."""
        return read_matrix(self.result)


def read_reply(reply: Reply) -> Answer:
    """The answer. Raises TooLargeError, and ExplainedError for what is no answer."""
    data = _json(reply)
    if data.get("status") != "success":
        said = f"{data.get('errorType', 'error')}: {data.get('error', '')}"[:_SHOWN]
        if _TOO_LARGE.search(said) or reply.status == 413:  # noqa: PLR2004 -- Content Too Large
            raise TooLargeError(said)
        raise ExplainedError(
            f"Prometheus refused a query (HTTP {reply.status}).",
            "see what it says; --match and --step change the queries.",
            evidence=(said,),
        )
    content = _mapping(data.get("data"))
    if content.get("resultType") != "matrix" or not isinstance(content.get("result"), list):
        raise ExplainedError("Prometheus answered a range query with something else than a matrix.", _NOT_PROMETHEUS)
    warned = data.get("warnings")
    warnings = cast("list[Any]", warned) if isinstance(warned, list) else []
    answer = Answer(content["result"], tuple(str(each)[:_SHOWN] for each in warnings), reply.body)
    try:
        answer.matrix  # noqa: B018 -- read here, so that only what can be read is kept
    except MalformedReplyError as error:
        raise ExplainedError(f"Prometheus answered with {error}.", _NOT_PROMETHEUS) from error
    return answer


_NOT_PROMETHEUS = "check that --prometheus is the address of Prometheus' own API, and what stands between: a proxy, a login page."


def _json(reply: Reply) -> dict[str, Any]:
    text = reply.body.decode("utf-8", errors="replace")
    if reply.status in {401, 403}:
        raise ExplainedError(
            f"Prometheus refused access (HTTP {reply.status}).",
            "give a token with --token-file or --token-env, or a --header, that may read it.",
        )
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        title = _TITLE.search(text)
        seen = f"a page titled {' '.join(title['title'].split())[:_SHOWN]!r}" if title else f"{reply.content_type or 'no content type'}"
        raise ExplainedError(
            f"Prometheus' address answered with {seen} and not with JSON (HTTP {reply.status}).", _NOT_PROMETHEUS
        ) from error
    if not isinstance(data, dict):
        raise ExplainedError(f"Prometheus' address answered with JSON of another form (HTTP {reply.status}).", _NOT_PROMETHEUS)
    return _mapping(cast("object", data))


def _mapping(found: object) -> dict[str, Any]:
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
