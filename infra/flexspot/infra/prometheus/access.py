"""Address and credentials of Prometheus, from options of the command line."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urlsplit

from flexspot.capacity.values.errors import ExitCode, ExplainedError
from flexspot.infra.prometheus.signers import AwsSigner, GoogleSigner

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from flexspot.infra.prometheus.signers import Signer


HIDDEN = "(hidden)"


class CloudAuth(StrEnum):
    """The cloud whose credentials authenticate requests."""

    AWS = "aws"
    """Signature Version 4."""
    GCP = "gcp"
    """OAuth 2.0 tokens."""


@dataclass(frozen=True)
class PrometheusAccess:
    """Address and credentials of a Prometheus server."""

    url: str
    """Without a trailing slash."""
    headers: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    """Sent with every request. Their values do not appear in representations and errors."""
    ca: Path | None = None
    signer: Signer | None = field(default=None, repr=False)

    def hide(self, text: str) -> str:
        """Return `text` without secrets, since a server may answer with what it was sent."""
        secrets = {part for value in self.headers.values() for part in (value, value.removeprefix("Bearer "))}
        if self.signer is not None:
            secrets |= self.signer.secrets()
        for secret in sorted(secrets - {""}, key=len, reverse=True):
            text = text.replace(secret, HIDDEN)
        return text


def access_to(  # noqa: PLR0913 -- each is an option of the command line
    url: str,
    *,
    headers: Iterable[str] = (),
    ca: Path | None = None,
    token_file: Path | None = None,
    token_env: str | None = None,
    auth: CloudAuth | None = None,
    aws_region: str | None = None,
) -> PrometheusAccess:
    """Return the access that options of the command line describe. Raises ExplainedError for unusable options, without secret values.

    Without `auth`, requests to the clouds' own hosts are signed, unless a token or an Authorization header is given (decision 47).
    """
    address = _address(url)
    if ca is not None and not ca.is_file():
        raise _wrong(f"--ca: {ca} is not a file.", "name a PEM file with the server's certificate authorities.")
    if token_file is not None and token_env is not None:
        raise _wrong("--token-file and --token-env exclude each other.", "give only one of them.")
    found = dict(_header(each) for each in headers)
    token = _token(token_file, token_env)
    if token is not None:
        if any(name.lower() == "authorization" for name in found):
            raise _wrong("--header: Authorization cannot be combined with --token-file or --token-env.", "give only one of them.")
        found["Authorization"] = f"Bearer {token}"
    return PrometheusAccess(address, found, ca, _signer(urlsplit(address), auth, aws_region, {name.lower() for name in found}))


def _address(url: str) -> str:
    try:
        parts = urlsplit(url)
        port_is_fine = parts.port is None or parts.port > 0
    except ValueError:
        raise _wrong("--prometheus: the value is not a URL.", "write one such as https://prometheus.example.com.") from None
    if parts.username is not None or parts.password is not None:
        raise _wrong("--prometheus: the URL contains a user or password, which logs would show.", "use --token-file or --header instead.")
    if parts.scheme not in {"http", "https"} or not parts.hostname or not port_is_fine or parts.query or parts.fragment:
        raise _wrong(f"--prometheus: {url!r} is not the URL of a server.", "write http:// or https://, the host, and any port and path.")
    # AWS's console shows a workspace's address with the path of a query.
    return url.rstrip("/").removesuffix("/api/v1/query").removesuffix("/api/v1")


def _header(written: str) -> tuple[str, str]:
    name, colon, value = written.partition(":")
    if not colon or not name.strip() or not _is_header_text(name.strip() + value.strip()) or " " in name.strip():
        raise _wrong("--header: a value does not have the form 'Name: value'.", "write for example --header 'X-Scope-OrgID: ml'.")
    return name.strip(), value.strip()


def _token(file: Path | None, variable: str | None) -> str | None:
    if file is None and variable is None:
        return None
    if file is not None:
        where, token = f"--token-file: {file}", _content(file)
    else:
        where, token = f"--token-env: {variable}", os.environ.get(variable or "")
    token = None if token is None else token.strip()
    if not token:
        raise _wrong(f"{where} has no token.", "put the token there, and nothing else.")
    if not _is_header_text(token) or " " in token:
        raise _wrong(f"{where} has more than a token: it contains spaces or line breaks.", "put only the token there.")
    return token


def _content(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _wrong(f"--token-file: {file} cannot be read: {type(error).__name__}.", "name a text file that you can read.") from error


def _is_header_text(text: str) -> bool:
    """Return whether a text fits into a header. A line end would start another header."""
    return text.isascii() and text.isprintable()


def _wrong(problem: str, remedy: str) -> ExplainedError:
    return ExplainedError(problem, remedy, exit_code=ExitCode.BAD_USAGE)


# Endpoints of workspaces over IPv4, over IPv4 and IPv6 (api.aws), with FIPS, and of interface endpoints of a VPC. Sources, read on
# 2026-11-27: docs.aws.amazon.com/general/latest/gr/prometheus-service.html, and .../prometheus/latest/userguide/AMP-and-interface-VPC.html.
_AMAZON = re.compile(
    r"(vpce-[a-z0-9-]+\.)?aps-workspaces(-fips)?\.(?P<region>[a-z]{2}(-[a-z]+)+-\d+)\.((vpce\.)?amazonaws\.com|api\.aws)", re.IGNORECASE
)
_WORKSPACE = re.compile(r"/workspaces/ws-[^/]+")
_GOOGLE = "monitoring.googleapis.com"
_GOOGLE_PATH = re.compile(r"/v1/projects/[^/]+/location/global/prometheus")


def _signer(address: SplitResult, auth: CloudAuth | None, aws_region: str | None, headers: set[str]) -> Signer | None:
    """Return the signer of requests to `address`, or None. `headers` are the names of the given ones, in lower case."""
    host = address.hostname or ""
    amazon, google = _AMAZON.fullmatch(host), host.lower() == _GOOGLE
    own = CloudAuth.AWS if amazon else CloudAuth.GCP if google else None
    by_token = "authorization" in headers
    if by_token and (auth is not None or amazon):
        whose = f"--prometheus-auth: {auth} signs" if auth else "--prometheus: Amazon Managed Service for Prometheus accepts only signed"
        raise _wrong(f"{whose} requests, so a token or an Authorization header cannot be used.", "remove the token and the header.")
    if auth is not None and own not in {None, auth}:
        raise _wrong(f"--prometheus-auth: {host} is a service of {own}, not of {auth}.", "remove --prometheus-auth.")
    chosen = auth or (None if by_token else own)
    if aws_region is not None and chosen is not CloudAuth.AWS:
        raise _wrong("--aws-region: requests are not signed for AWS.", "add --prometheus-auth aws, or remove --aws-region.")
    if chosen is None:
        return None
    if address.scheme != "https":
        raise _wrong("--prometheus: http:// would show the credentials to the network.", "use https://.")
    if chosen is CloudAuth.GCP:
        if google and not _GOOGLE_PATH.fullmatch(address.path):
            remedy = f"write https://{_GOOGLE}/v1/projects/PROJECT/location/global/prometheus."
            raise _wrong(f"--prometheus: the path is not that of the Prometheus API of {_GOOGLE}.", remedy)
        return GoogleSigner()
    if amazon and not _WORKSPACE.fullmatch(address.path):
        raise _wrong("--prometheus: the URL names no workspace.", f"write https://{host}/workspaces/ID, such as ws-1234abcd-....")
    if taken := sorted(name for name in headers if name == "host" or name.startswith("x-amz-")):
        raise _wrong(f"--header: {taken[0]} is part of AWS's signature.", "remove this header.")
    of_host = amazon["region"].lower() if amazon else None
    return AwsSigner(_region(host, of_host, aws_region), is_certain=of_host is not None)


def _region(host: str, of_host: str | None, given: str | None) -> str:
    if of_host is not None and given not in {None, of_host}:
        raise _wrong(f"--aws-region: {host} is in {of_host}, not in {given}.", "remove --aws-region.")
    region = given or of_host
    if region is None:
        # AWS_REGION and the profile are not used: the workspace may be in another region.
        raise _wrong(f"--aws-region is required: {host} does not contain the workspace's region.", "add it, such as us-east-1.")
    return region
