"""A range query over HTTP: tried again where that may help, ended in time, and never larger in memory than a limit."""

from __future__ import annotations

import ssl
import time
from typing import TYPE_CHECKING

import urllib3
from urllib3.exceptions import HTTPError, MaxRetryError, NewConnectionError, SSLError
from urllib3.exceptions import TimeoutError as HTTPTimeoutError

from capacity.values.errors import ExitCode, ExplainedError
from infra.prometheus.replies import Answer, Reply, TooLargeError, read_reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from capacity.chargeback.queries import Query
    from infra.prometheus.access import Access

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
        access: Access,
        *,
        read_seconds: float = 120.0,
        largest_reply: int = _LARGEST_REPLY,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._access = access
        self._largest_reply = largest_reply
        self._wait = wait
        self._read_seconds = read_seconds
        try:
            context = ssl.create_default_context(cafile=None if access.ca is None else str(access.ca))
        except (ssl.SSLError, OSError) as error:
            raise ExplainedError(
                f"--ca {access.ca} holds no certificate that can be used.", "give a file in PEM form.", exit_code=ExitCode.BAD_USAGE
            ) from error
        # A redirect could lead the token to another server, so none is followed; tries are counted here, where a reply's meaning is known.
        timeout = urllib3.Timeout(connect=_CONNECT_SECONDS, read=read_seconds)
        self._pool = urllib3.PoolManager(ssl_context=context, timeout=timeout, retries=False)

    def query_range(self, query: Query, start: int, end: int, step: int) -> Answer:
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
                if attempt == _TRIES:
                    raise self._unreachable(
                        error, "check the address and the network, or give a longer --timeout; the same command goes on."
                    ) from error
            else:
                if reply.status not in _AGAIN or attempt == _TRIES:
                    return self._read(reply)
                self._raise_if_too_large(reply)
                wait = max(wait, asked_wait)
            self._wait(min(wait, _LONGEST_WAIT_SECONDS))
            wait *= 2
        raise AssertionError("the last try returns or raises")

    def _post(self, fields: dict[str, str]) -> tuple[Reply, float]:
        response = self._pool.request(
            "POST",
            f"{self._access.url}/api/v1/query_range",
            fields=fields,
            encode_multipart=False,
            headers={**self._access.headers, "Accept": "application/json", "Accept-Encoding": "gzip"},
            preload_content=False,
            redirect=False,
        )
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
                "give the address to which it leads; a login page means that a token is missing.",
            )
        asked = response.headers.get("Retry-After", "")
        return Reply(response.status, response.headers.get("Content-Type", ""), bytes(body)), float(asked) if asked.isdigit() else 0.0

    def _read(self, reply: Reply) -> Answer:
        try:
            return read_reply(reply)
        except ExplainedError as error:
            # A server may answer with what it was sent.
            hidden = tuple(map(self._access.hide, error.evidence))
            raise ExplainedError(self._access.hide(error.problem), error.remedy, exit_code=error.exit_code, evidence=hidden) from None

    @staticmethod
    def _raise_if_too_large(reply: Reply) -> None:
        try:
            read_reply(reply)
        except ExplainedError:
            return

    def _unreachable(self, error: HTTPError, remedy: str) -> ExplainedError:
        cause = error.reason if isinstance(error, MaxRetryError) and error.reason is not None else error
        what = (
            "did not answer in time"
            if isinstance(cause, HTTPTimeoutError) and not isinstance(cause, NewConnectionError)
            else "cannot be reached"
        )
        return ExplainedError(f"Prometheus at {self._access.url} {what}.", remedy, evidence=(self._access.hide(str(cause)),))
