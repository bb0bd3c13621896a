"""A range query over HTTP: how Prometheus is reached, tried again where that may help, and what its reply means."""

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


# What Prometheus, Thanos, Mimir and Cortex (as which AWS answers) say when a query is too much for them at once.
_TOO_LARGE = re.compile(
    r"too many samples|maximum resolution|too many points|query timed out|max-?chunks|exceeded.*limit|limit.*exceeded"
    r"|query hit the (max|aggregated)",
    re.IGNORECASE,
)
_TITLE = re.compile(r"<title[^>]*>(?P<title>[^<]*)", re.IGNORECASE)
_SHOWN = 300


class TooLargeError(Exception):
    """The server will not answer so much at once; a shorter slice may do. The text is the server's."""


@dataclass(frozen=True)
class QueryResult:
    """The result of a query as it came, and what the server warned of: a part may be missing. `body` is the reply's, if it is of one."""

    result: list[Any]
    warnings: tuple[str, ...] = ()
    body: bytes | None = None

    @cached_property
    def matrix(self) -> Matrix:
        """The series. Raises MalformedReplyError."""
        return read_matrix(self.result)


def read_reply(reply: Reply, access: PrometheusAccess | None = None) -> QueryResult:
    """The answer. Raises TooLargeError, and ExplainedError for what is no answer; neither shows what is secret of `access`."""
    hide: Callable[[str], str] = str if access is None else access.hide
    data = _json(reply, access)
    if data.get("status") != "success":
        said = hide(f"{data.get('errorType', 'error')}: {_said(data)}")[:_SHOWN]
        if _TOO_LARGE.search(said) or reply.status == 413:  # noqa: PLR2004 -- Content Too Large
            raise TooLargeError(said)
        raise ExplainedError(
            f"Prometheus refused a query (HTTP {reply.status}).",
            "see what it says; --match and --step change the queries.",
            evidence=(said,),
        )
    content = _mapping(data.get("data"))
    if content.get("resultType") != "matrix" or not isinstance(content.get("result"), list):
        raise ExplainedError("Prometheus answered a range query with something other than a matrix.", _NOT_PROMETHEUS)
    warned = data.get("warnings")
    warnings = cast("list[Any]", warned) if isinstance(warned, list) else []
    answer = QueryResult(content["result"], tuple(hide(str(each))[:_SHOWN] for each in warnings), reply.body)
    try:
        answer.matrix  # noqa: B018 -- read here, so that only what can be read is kept
    except MalformedReplyError as error:
        raise ExplainedError(f"Prometheus answered with {error}.", _NOT_PROMETHEUS) from error
    return answer


_NOT_PROMETHEUS = "check that --prometheus is the address of Prometheus' own API, and what stands between: a proxy, a login page."


def _json(reply: Reply, access: PrometheusAccess | None) -> dict[str, Any]:
    text = reply.body.decode("utf-8", errors="replace")
    hide: Callable[[str], str] = str if access is None else access.hide
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        _require_let_in(reply, access, "")
        title = _TITLE.search(text)
        content_type = reply.content_type or "no content type"
        seen = hide(f"a page titled {' '.join(title['title'].split())!r}" if title else content_type)[:_SHOWN]
        raise ExplainedError(
            f"Prometheus' address answered with {seen} and not with JSON (HTTP {reply.status}).", _NOT_PROMETHEUS
        ) from error
    _require_let_in(reply, access, hide(_said(_mapping(cast("object", data))))[:_SHOWN])
    if not isinstance(data, dict):
        raise ExplainedError(f"Prometheus' address answered with JSON of another form (HTTP {reply.status}).", _NOT_PROMETHEUS)
    return _mapping(cast("object", data))


def _said(data: dict[str, Any]) -> str:
    """The text of an error: in Prometheus' form, in Google's, where it is an object, or in AWS's."""
    error = data.get("error")
    message = _mapping(cast("object", error)).get("message") if isinstance(error, dict) else error
    return str(message or data.get("message") or data.get("Message") or "")


def _require_let_in(reply: Reply, access: PrometheusAccess | None, said: str) -> None:
    """Raises ExplainedError for a reply to somebody who may not ask; `said` is its text, without what is secret."""
    signer = None if access is None else access.signer
    refused = None if signer is None or reply.status < 400 else signer.refused(reply, said)  # noqa: PLR2004 -- errors
    if refused is not None:
        raise refused
    if reply.status in {401, 403}:
        raise ExplainedError(
            f"Prometheus refused access (HTTP {reply.status}).",
            "give a token with --token-file or --token-env, or a --header, that may read it; --prometheus-auth for a cloud's own service.",
        )


def _mapping(found: object) -> dict[str, Any]:
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


_TRIES = 5
_FIRST_WAIT_SECONDS = 1.0
_LONGEST_WAIT_SECONDS = 60.0
_CONNECT_SECONDS = 10.0
# Read into objects, a reply takes some eight times as much memory: a quarter of a gigabyte.
_LARGEST_REPLY = 32 * 1024 * 1024
_PIECE = 1024 * 1024
_AGAIN = frozenset({429, 500, 502, 503, 504})


class PrometheusClient:
    """Asks one Prometheus. `read_seconds` is how long a query may take, `largest_reply` how many bytes its reply may have."""

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
                f"--ca {access.ca} has no usable certificate.", "give a file in PEM form.", exit_code=ExitCode.BAD_USAGE
            ) from error
        # A redirect could lead the token to another server, so none is followed; tries are counted here, where a reply's meaning is known.
        timeout = urllib3.Timeout(connect=_CONNECT_SECONDS, read=read_seconds)
        self._pool = urllib3.PoolManager(ssl_context=context, timeout=timeout, retries=False)

    def query_range(self, query: Query, start: int, end: int, step: int) -> QueryResult:
        """The samples from `start` until before `end`, at every `step`.

        Raises TooLargeError where a shorter slice may do, and ExplainedError for everything else that is no answer.
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
                reply, asked_wait = self._post(fields)
            except SSLError as error:
                raise self._unreachable(error, "give the server's certificate authority with --ca.") from error
            except HTTPError as error:
                # Nothing listens there: a server that has answered may be starting again, one that never has is not waited for.
                nobody = not self._has_answered and isinstance(_cause(error), NewConnectionError)
                if attempt == _TRIES or nobody:
                    raise self._unreachable(
                        error, "check the address and the network, or give a longer --timeout; the same command goes on."
                    ) from error
            else:
                self._has_answered = True
                if reply.status not in _AGAIN or attempt == _TRIES:
                    return self._read(reply)
                self._raise_if_too_large(reply)
                wait = max(wait, asked_wait)
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
            # Anew for each try: a signature is good for minutes, and credentials are renewed.
            headers |= self._access.signer.headers("POST", url, content, headers)
        response = self._pool.request("POST", url, body=content, headers=headers, preload_content=False, redirect=False)
        try:
            body = bytearray()
            while piece := response.read(_PIECE, decode_content=True):
                body += piece
                if len(body) > self._largest_reply:
                    response.close()
                    raise TooLargeError(f"a reply of more than {self._largest_reply:,} bytes")
        finally:
            response.release_conn()
        if 300 <= response.status < 400:  # noqa: PLR2004 -- redirections
            raise ExplainedError(
                f"Prometheus' address redirects to another one (HTTP {response.status}), where a token must not be taken.",
                "give the address that it redirects to; a login page means that a token is missing.",
            )
        asked = response.headers.get("Retry-After", "")
        reply = Reply(response.status, response.headers.get("Content-Type", ""), bytes(body), response.headers.get("x-amzn-ErrorType", ""))
        return reply, float(asked) if asked.isdigit() else 0.0

    def _read(self, reply: Reply) -> QueryResult:
        try:
            return read_reply(reply, self._access)
        except ExplainedError as error:
            # What it came of may quote the server.
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
