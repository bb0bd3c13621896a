"""How Prometheus is reached: address, certificate authority, headers and token. What is secret here is never shown."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from capacity.values.errors import ExitCode, ExplainedError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

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
        raise _wrong(f"--ca {ca} is no file.", "give a file of certificates in PEM form.")
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
        raise _wrong("--prometheus is no address.", "write one such as https://prometheus.example.com.") from None
    if parts.username is not None or parts.password is not None:
        raise _wrong("--prometheus has a user or password in it, which logs would show.", "leave it out, and use --token-file or --header.")
    if parts.scheme not in {"http", "https"} or not parts.hostname or not port_is_fine or parts.query or parts.fragment:
        raise _wrong(
            f"--prometheus {url!r} is no address of a server.", "write http:// or https://, host, and port or path where there is one."
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
        raise _wrong(f"{where} holds no token.", "write the token there, alone.")
    if not _fit_for_a_header(token) or " " in token:
        raise _wrong(f"{where} holds more than a token: there are spaces or line ends within.", "write the token there, alone.")
    return token


def _content(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _wrong(f"the token file {file} cannot be read: {type(error).__name__}.", "give a file of text that you may read.") from error


def _fit_for_a_header(text: str) -> bool:
    """A line end would begin a header of its own."""
    return text.isascii() and text.isprintable()


def _wrong(problem: str, remedy: str) -> ExplainedError:
    return ExplainedError(problem, remedy, exit_code=ExitCode.BAD_USAGE)
