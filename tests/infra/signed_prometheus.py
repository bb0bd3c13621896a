"""A Prometheus that answers only authenticated requests, as Amazon's and Google's do.

AWS's signature is verified by the steps of "Create a signed AWS API request" (docs.aws.amazon.com/IAM/latest/UserGuide,
reference_sigv-create-signed-request.html), from the received request alone and without botocore.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import socket
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, parse_qsl, quote, urlsplit

from loopback_server import Reply, Request, serving
from typer.testing import CliRunner

from flexspot.capacity.values.errors import ExplainedError
from flexspot.infra.cli.app import app

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Generator
    from pathlib import Path

    import pytest
    from fake_prometheus import FakePrometheus

DAY = ("--from", "2026-10-01", "--to", "2026-10-02", "--format", "json")
"""Options of the command line with the period of reports."""

_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<key>[^/]+)/(?P<scope>\d{8}/[^/]+/[^/]+/aws4_request), SignedHeaders=(?P<names>[^,]+), "
    r"Signature=(?P<signature>[0-9a-f]{64})"
)


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def signature(request: Request, names: list[str], scope: str, secret: str) -> str:
    """Return AWS's signature of a request, for the headers `names` and the scope DATE/REGION/SERVICE/aws4_request."""
    target = urlsplit(request.path)
    query = sorted((quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in parse_qsl(target.query, keep_blank_values=True))
    canonical = "\n".join(
        [
            request.method,
            quote(target.path, safe="/-_.~"),
            "&".join(f"{name}={value}" for name, value in query),
            *(f"{name}:{' '.join(request.headers[name].split())}" for name in names),
            "",
            ";".join(names),
            hashlib.sha256(request.body.encode()).hexdigest(),
        ]
    )
    to_sign = "\n".join(["AWS4-HMAC-SHA256", request.headers["x-amz-date"], scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = _hmac(key, part)
    return _hmac(key, to_sign).hex()


def refused_by_aws(kind: str, message: str, status: int = 403) -> Reply:
    """Return a refusal in the form of AWS's common errors."""
    return Reply(status, json.dumps({"message": message}).encode(), headers={"x-amzn-ErrorType": kind})


def refused_by_google(status: int, name: str, message: str, reason: str = "") -> Reply:
    """Return a refusal in the form of google.rpc.Status."""
    details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": "googleapis.com"}] if reason else []
    content = {"error": {"code": status, "message": message, "status": name, "details": details}}
    return Reply(status, json.dumps(content).encode())


@dataclass
class AwsGate:
    """Accepts requests that are signed with one of `keys` (secret and session token by access key) for `region`."""

    region: str
    keys: dict[str, tuple[str, str | None]]
    let_in: list[str] = field(default_factory=list[str])
    """Access keys of accepted requests."""

    def __call__(self, request: Request) -> Reply | None:
        """Return the refusal, or None."""
        found = _AUTHORIZATION.fullmatch(request.headers.get("authorization", ""))
        if found is None:
            return refused_by_aws("MissingAuthenticationTokenException", "Missing Authentication Token")
        names = found["names"].split(";")
        day, region, service, _ = found["scope"].split("/")
        if (region, service) != (self.region, "aps") or not request.headers["x-amz-date"].startswith(day):
            return refused_by_aws("InvalidSignatureException", f"Credential should be scoped to a valid region, not '{region}'.")
        must = {"host", *(name for name in request.headers if name.startswith("x-amz-"))}
        secret, token = self.keys.get(found["key"], (None, None))
        if secret is None or request.headers.get("x-amz-security-token") != token:
            return refused_by_aws("UnrecognizedClientException", "The security token included in the request is invalid.")
        if names != sorted(names) or not must <= set(names) or signature(request, names, found["scope"], secret) != found["signature"]:
            return refused_by_aws(
                "InvalidSignatureException",
                "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and "
                f"signing method. The headers were {dict(request.headers)}",
            )
        self.let_in.append(found["key"])
        return None


@dataclass
class GoogleGate:
    """Accepts requests with one of `tokens`."""

    tokens: set[str]
    let_in: list[Request] = field(default_factory=list[Request])

    def __call__(self, request: Request) -> Reply | None:
        """Return the refusal, or None."""
        if request.headers.get("authorization", "").removeprefix("Bearer ") not in self.tokens:
            return refused_by_google(401, "UNAUTHENTICATED", "Request had invalid authentication credentials.")
        self.let_in.append(request)
        return None


def unchanged(request: Request) -> Request:
    """Return the request as it is: a proxy that changes nothing."""
    return request


@contextmanager
def guarded(
    fake: FakePrometheus,
    gate: Callable[[Request], Reply | None],
    tls: ssl.SSLContext,
    between: Callable[[Request], Request] = unchanged,
) -> Generator[str]:
    """Serve `fake` behind `gate`, and yield the address. `between` changes requests in transit."""

    def reply(asked: Request) -> Reply:
        arrived = between(asked)
        refused = gate(arrived)
        if refused is not None:
            return refused
        status, kind, content = fake.reply({key: values[0] for key, values in parse_qs(arrived.body).items()}, dict(arrived.headers))
        return Reply(status, content, kind)

    with serving(reply, tls) as address:
        yield address


def with_body(change: Callable[[str], str]) -> Callable[[Request], Request]:
    """Return a proxy that changes bodies."""
    return lambda request: replace(request, body=change(request.body))


def on_this_machine(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Resolve the name of a host to the loopback."""
    resolve = socket.getaddrinfo

    def resolved(asked: str, *arguments: Any, **more: Any) -> Any:
        return resolve("127.0.0.1" if asked == host else asked, *arguments, **more)

    monkeypatch.setattr(socket, "getaddrinfo", resolved)


def without_clouds(nowhere: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide this machine's credentials from the clouds' libraries."""
    for name in [each for each in os.environ if each.startswith(("AWS_", "GOOGLE_", "GCE_", "CLOUDSDK_"))]:
        monkeypatch.delenv(name)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "CLOUDSDK_CONFIG"):
        monkeypatch.setenv(name, nowhere)
    for name in ("AWS_EC2_METADATA_DISABLED", "NO_GCE_CHECK"):
        monkeypatch.setenv(name, "true")
    # Otherwise google-auth asks gcloud for one.
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "acme-ai-dev")


def report_or_error(url: str, ca: Path, *arguments: str | Path, code: int, hidden: tuple[str, ...]) -> str:
    """Return the output of `chargeback` about a server, an ExplainedError as `main` shows it. Fails if it contains `hidden` text."""
    result = CliRunner().invoke(app, ["chargeback", "report", "--prometheus", url, "--ca", str(ca), *map(str, (*DAY, *arguments))])
    error = result.exception if isinstance(result.exception, ExplainedError) else None
    shown = result.output if error is None else str(error)
    assert not [each for each in hidden if each in shown]
    assert (result.exit_code if error is None else error.exit_code) == code, shown
    return result.stdout if error is None else shown
