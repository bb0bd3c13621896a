"""Range queries to Prometheus over HTTP: requests, retries, and the meaning of replies."""

from __future__ import annotations

import json
import re
import ssl
import time
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlencode

import urllib3
from urllib3.exceptions import HTTPError, MaxRetryError, NewConnectionError, SSLError
from urllib3.exceptions import TimeoutError as HTTPTimeoutError

from flexspot.capacity.chargeback.samples import MalformedReplyError, Matrix, read_matrix
from flexspot.capacity.values.errors import ExitCode, ExplainedError
from flexspot.infra.prometheus.signers import Reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexspot.capacity.chargeback.queries import Query
    from flexspot.infra.prometheus.access import PrometheusAccess


# Messages of Prometheus, Thanos, Mimir and Cortex (which AWS uses) for queries that are too large.
_TOO_LARGE = re.compile(
    r"too many samples|maximum resolution|too many points|query timed out|max-?chunks|exceeded.*limit|limit.*exceeded"
    r"|query hit the (max|aggregated)",
    re.IGNORECASE,
)
_TITLE = re.compile(r"<title[^>]*>(?P<title>[^<]*)", re.IGNORECASE)
_SHOWN = 300


class TooLargeError(Exception):
    """A query or its reply is too large, so that a shorter slice may work. The text is usually the server's."""


@dataclass(frozen=True)
class QueryResult:
    """The result of a query."""

    result: list[Any]
    """As in the reply."""
    warnings: tuple[str, ...] = ()
    """The server's warnings. With one, a part may be missing."""
    body: bytes | None = None
    """Body of the reply. None if the result is composed of several replies."""

    @cached_property
    def matrix(self) -> Matrix:
        """The series. Raises MalformedReplyError for a malformed result."""
        return read_matrix(self.result)


def read_reply(reply: Reply, access: PrometheusAccess | None = None) -> QueryResult:
    """Return the result in a reply. Raises TooLargeError, and ExplainedError for a reply without one. No error shows secrets."""
    hide: Callable[[str], str] = str if access is None else access.hide
    data = _json(reply, access)
    if data.get("status") != "success":
        said = hide(f"{data.get('errorType', 'error')}: {_said(data)}")[:_SHOWN]
        if _TOO_LARGE.search(said) or reply.status == 413:  # noqa: PLR2004 -- Content Too Large
            raise TooLargeError(said)
        raise ExplainedError(
            f"Prometheus refused a query (HTTP {reply.status}).",
            "fix the problem in the line above; --match and --step change the queries.",
            evidence=(said,),
        )
    content = _mapping(data.get("data"))
    if content.get("resultType") != "matrix" or not isinstance(content.get("result"), list):
        raise ExplainedError("--prometheus: the answer to a range query is not a matrix.", _NOT_PROMETHEUS)
    warned = data.get("warnings")
    warnings = cast("list[Any]", warned) if isinstance(warned, list) else []
    answer = QueryResult(content["result"], tuple(hide(str(each))[:_SHOWN] for each in warnings), reply.body)
    try:
        answer.matrix  # noqa: B018 -- read here, so that only readable answers are stored
    except MalformedReplyError as error:
        raise ExplainedError(f"--prometheus: the answer contains {error}.", _NOT_PROMETHEUS) from error
    return answer


_NOT_PROMETHEUS = "check that --prometheus is the URL of Prometheus' own API, and that no proxy or login page answers instead."


def _json(reply: Reply, access: PrometheusAccess | None) -> dict[str, Any]:
    text = reply.body.decode("utf-8", errors="replace")
    hide: Callable[[str], str] = str if access is None else access.hide
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        _require_access(reply, access, "")
        title = _TITLE.search(text)
        content_type = reply.content_type or "no content type"
        seen = hide(f"a page titled {' '.join(title['title'].split())!r}" if title else content_type)[:_SHOWN]
        raise ExplainedError(
            f"--prometheus: the server answered with {seen}, not with JSON (HTTP {reply.status}).", _NOT_PROMETHEUS
        ) from error
    _require_access(reply, access, hide(_said(_mapping(cast("object", data))))[:_SHOWN])
    if not isinstance(data, dict):
        raise ExplainedError(f"--prometheus: the server answered with JSON that is not Prometheus' (HTTP {reply.status}).", _NOT_PROMETHEUS)
    return _mapping(cast("object", data))


def _said(data: dict[str, Any]) -> str:
    """Return the text of an error in the form of Prometheus, Google (an object) or AWS."""
    error = data.get("error")
    message = _mapping(cast("object", error)).get("message") if isinstance(error, dict) else error
    return str(message or data.get("message") or data.get("Message") or "")


def _require_access(reply: Reply, access: PrometheusAccess | None, said: str) -> None:
    """Raise ExplainedError if the reply refuses access. `said` is its text without secrets."""
    signer = None if access is None else access.signer
    refused = None if signer is None or reply.status < 400 else signer.refused(reply, said)  # noqa: PLR2004 -- errors
    if refused is not None:
        raise refused
    if reply.status in {401, 403}:
        raise ExplainedError(
            f"Prometheus refused access (HTTP {reply.status}).",
            "give a token or header that may read it (--token-file, --token-env, --header); for a cloud's service, --prometheus-auth.",
        )


def _mapping(found: object) -> dict[str, Any]:
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


_TRIES = 5
_FIRST_WAIT_SECONDS = 1.0
_LONGEST_WAIT_SECONDS = 60.0
_CONNECT_SECONDS = 10.0
# Parsed, a reply takes about eight times as much memory: a quarter of a gigabyte.
_LARGEST_REPLY = 32 * 1024 * 1024
_PIECE = 1024 * 1024
_RETRIED = frozenset({429, 500, 502, 503, 504})


class PrometheusClient:
    """A client of one Prometheus. `read_seconds` limits the duration of a query, `largest_reply` the bytes of its reply."""

    def __init__(
        self,
        access: PrometheusAccess,
        *,
        read_seconds: float = 120.0,
        largest_reply: int = _LARGEST_REPLY,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._access = access
        self._largest_reply = largest_reply
        self._wait = wait
        self._read_seconds = read_seconds
        self._has_answered = False
        try:
            context = ssl.create_default_context(cafile=None if access.ca is None else str(access.ca))
        except (ssl.SSLError, OSError) as error:
            raise ExplainedError(
                f"--ca: {access.ca} has no usable certificate.", "name a PEM file.", exit_code=ExitCode.BAD_USAGE
            ) from error
        # A redirect could send the token to another server, so none is followed. query_range retries, since it knows a reply's meaning.
        timeout = urllib3.Timeout(connect=_CONNECT_SECONDS, read=read_seconds)
        self._pool = urllib3.PoolManager(ssl_context=context, timeout=timeout, retries=False)

    def query_range(self, query: Query, start: int, end: int, step: int) -> QueryResult:
        """Return the samples from `start` (inclusive) to `end` (exclusive), at every `step`.

        Raises TooLargeError if a shorter slice may work, and ExplainedError for any other failure.
        """
        # The API's end is inclusive.
        fields = {
            "query": query.expression,
            "start": str(start),
            "end": str(end - 1),
            "step": str(step),
            "timeout": f"{self._read_seconds:.0f}s",
        }
        wait = _FIRST_WAIT_SECONDS
        for attempt in range(1, _TRIES + 1):
            try:
                reply, requested_wait = self._post(fields)
            except SSLError as error:
                raise self._unreachable(error, "give the server's certificate authority with --ca.") from error
            except HTTPError as error:
                # A server that has answered before may be restarting. One that never accepted a connection is not retried.
                never_connected = not self._has_answered and isinstance(_cause(error), NewConnectionError)
                if attempt == _TRIES or never_connected:
                    raise self._unreachable(
                        error, "check the URL and the network, or raise --timeout; the same command continues where this one stopped."
                    ) from error
            else:
                self._has_answered = True
                if reply.status not in _RETRIED or attempt == _TRIES:
                    return self._read(reply)
                self._raise_if_too_large(reply)
                wait = max(wait, requested_wait)
            self._wait(min(wait, _LONGEST_WAIT_SECONDS))
            wait *= 2
        raise AssertionError("the last try returns or raises")

    def _post(self, fields: dict[str, str]) -> tuple[Reply, float]:
        url, content = f"{self._access.url}/api/v1/query_range", urlencode(fields).encode()
        headers = {
            **self._access.headers,
            "Accept": "application/json",
            "Accept-Encoding": "gzip",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        if self._access.signer is not None:
            # Signed again for each attempt: a signature is valid for minutes, and credentials are renewed.
            headers |= self._access.signer.headers("POST", url, content, headers)
        response = self._pool.request("POST", url, body=content, headers=headers, preload_content=False, redirect=False)
        try:
            body = bytearray()
            while piece := response.read(_PIECE, decode_content=True):
                body += piece
                if len(body) > self._largest_reply:
                    response.close()
                    raise TooLargeError(f"the reply has more than {self._largest_reply:,} bytes")
        finally:
            response.release_conn()
        if 300 <= response.status < 400:  # noqa: PLR2004 -- redirections
            raise ExplainedError(
                f"--prometheus: the server redirects to another URL (HTTP {response.status}), to which no token may be sent.",
                "give the URL that it redirects to; a login page means that a token is missing.",
            )
        retry_after = response.headers.get("Retry-After", "")
        reply = Reply(response.status, response.headers.get("Content-Type", ""), bytes(body), response.headers.get("x-amzn-ErrorType", ""))
        return reply, float(retry_after) if retry_after.isdigit() else 0.0

    def _read(self, reply: Reply) -> QueryResult:
        try:
            return read_reply(reply, self._access)
        except ExplainedError as error:
            # Its cause may quote the server.
            raise error from None

    def _raise_if_too_large(self, reply: Reply) -> None:
        try:
            read_reply(reply, self._access)
        except ExplainedError:
            return

    def _unreachable(self, error: HTTPError, remedy: str) -> ExplainedError:
        cause = _cause(error)
        what = (
            "did not answer in time"
            if isinstance(cause, HTTPTimeoutError) and not isinstance(cause, NewConnectionError)
            else "cannot be reached"
        )
        return ExplainedError(f"Prometheus at {self._access.url} {what}.", remedy, evidence=(self._access.hide(str(cause)),))


def _cause(error: HTTPError) -> Exception:
    return error.reason if isinstance(error, MaxRetryError) and error.reason is not None else error
