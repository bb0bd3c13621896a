"""A range query over HTTP: how Prometheus is reached, tried again where that may help, and what its reply means."""

from __future__ import annotations

import json
import os
import re
import ssl
import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import urllib3
from urllib3.exceptions import HTTPError, MaxRetryError, NewConnectionError, SSLError
from urllib3.exceptions import TimeoutError as HTTPTimeoutError

from capacity.chargeback.samples import MalformedReplyError, Matrix, read_matrix
from capacity.values.errors import ExitCode, ExplainedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from capacity.chargeback.queries import Query


HIDDEN = "(hidden)"


@dataclass(frozen=True)
class Access:
    """`url` without a slash at its end. `headers` go with every request; their values are kept out of representations and errors."""

    url: str
    headers: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    ca: Path | None = None

    def hide(self, text: str) -> str:
        """`text` without what is secret: a server may answer with what it was sent."""
        secrets = {part for value in self.headers.values() for part in (value, value.removeprefix("Bearer "))}
        for secret in sorted(secrets, key=len, reverse=True):
            text = text.replace(secret, HIDDEN)
        return text


def access_to(
    url: str, *, headers: Iterable[str] = (), ca: Path | None = None, token_file: Path | None = None, token_env: str | None = None
) -> Access:
    """From what the command line says. Raises ExplainedError for what cannot be used; no error repeats a token or a header's value."""
    parts = _address(url)
    if ca is not None and not ca.is_file():
        raise _wrong(f"--ca {ca} is not a file.", "give a file of certificates in PEM form.")
    if token_file is not None and token_env is not None:
        raise _wrong("--token-file and --token-env are both given.", "give one of them.")
    found = dict(_header(each) for each in headers)
    token = _token(token_file, token_env)
    if token is not None:
        if any(name.lower() == "authorization" for name in found):
            raise _wrong("a token and a header Authorization are both given.", "give one of them.")
        found["Authorization"] = f"Bearer {token}"
    return Access(parts, found, ca)


def _address(url: str) -> str:
    try:
        parts = urlsplit(url)
        port_is_fine = parts.port is None or parts.port > 0
    except ValueError:
        raise _wrong("--prometheus is not an address.", "write one such as https://prometheus.example.com.") from None
    if parts.username is not None or parts.password is not None:
        raise _wrong("--prometheus has a user or password in it, which logs would show.", "leave it out, and use --token-file or --header.")
    if parts.scheme not in {"http", "https"} or not parts.hostname or not port_is_fine or parts.query or parts.fragment:
        raise _wrong(
            f"--prometheus {url!r} is not the address of a server.", "write http:// or https://, host, and port or path where there is one."
        )
    return url.rstrip("/").removesuffix("/api/v1")


def _header(written: str) -> tuple[str, str]:
    name, colon, value = written.partition(":")
    if not colon or not name.strip() or not _fit_for_a_header(name.strip() + value.strip()) or " " in name.strip():
        raise _wrong("a --header is not of the form 'Name: value'.", "write it so, such as --header 'X-Scope-OrgID: ml'.")
    return name.strip(), value.strip()


def _token(file: Path | None, variable: str | None) -> str | None:
    if file is None and variable is None:
        return None
    if file is not None:
        where, token = f"the file {file}", _content(file)
    else:
        where, token = f"the environment variable {variable}", os.environ.get(variable or "")
    token = None if token is None else token.strip()
    if not token:
        raise _wrong(f"{where} has no token.", "write only the token there.")
    if not _fit_for_a_header(token) or " " in token:
        raise _wrong(f"{where} has more than a token: it contains spaces or line ends.", "write only the token there.")
    return token


def _content(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _wrong(f"the token file {file} cannot be read: {type(error).__name__}.", "give a text file that you can read.") from error


def _fit_for_a_header(text: str) -> bool:
    """A line end would begin a header of its own."""
    return text.isascii() and text.isprintable()


def _wrong(problem: str, remedy: str) -> ExplainedError:
    return ExplainedError(problem, remedy, exit_code=ExitCode.BAD_USAGE)


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
        raise ExplainedError("Prometheus answered a range query with something other than a matrix.", _NOT_PROMETHEUS)
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
                "give the address that it redirects to; a login page means that a token is missing.",
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
        cause = _cause(error)
        what = (
            "did not answer in time"
            if isinstance(cause, HTTPTimeoutError) and not isinstance(cause, NewConnectionError)
            else "cannot be reached"
        )
        return ExplainedError(f"Prometheus at {self._access.url} {what}.", remedy, evidence=(self._access.hide(str(cause)),))


def _cause(error: HTTPError) -> Exception:
    return error.reason if isinstance(error, MaxRetryError) and error.reason is not None else error
