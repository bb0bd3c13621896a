"""Authentication of requests to AWS's and Google Cloud's services for Prometheus, with the credentials that the clouds' tools use.

The sources about each service are in the docstring of its signer.
"""

from __future__ import annotations

import difflib
import re
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from flexspot.capacity.values.errors import ExitCode, ExplainedError
from flexspot.infra.loading import library

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Reply:
    """An HTTP reply."""

    status: int
    content_type: str
    body: bytes
    error_kind: str = ""
    """AWS's name of the error, if it sent one."""


def access_refused(problem: str, remedy: str, reply: Reply, said: str) -> ExplainedError:
    """Return the error for a reply that refuses access. `said` is its text without secrets."""
    return ExplainedError(f"Prometheus refused access: {problem} (HTTP {reply.status}).", remedy, evidence=(said,) if said else ())


class Signer(Protocol):
    """Authenticates requests with the current credentials of a cloud's own tools."""

    def headers(self, method: str, url: str, body: bytes, headers: Mapping[str, str]) -> dict[str, str]:
        """Return further headers for a request. Raises ExplainedError if the credentials are not available."""
        ...

    def secrets(self) -> set[str]:
        """Return the secrets that no message may show."""
        ...

    def refused(self, reply: Reply, said: str) -> ExplainedError | None:
        """Return the error for a failed reply with the text `said`. None if the failure is not about authentication."""
        ...


Refusals = tuple[tuple[str, str, str], ...]
"""(pattern of a service's message, problem, remedy). The first match counts."""


def _first(refusals: Refusals, words: str, otherwise: tuple[str, str], reply: Reply, said: str) -> ExplainedError:
    found = (each for pattern, *each in refusals if re.search(pattern, words, re.IGNORECASE))
    problem, remedy = next(found, otherwise)
    return access_refused(problem, remedy, reply, said)


_AWS_SERVICE = "aps"
_AWS_EXTRA = "prometheus-aws"
_AWS_LOG_IN = (
    "log in as for the AWS CLI, for example with `aws sso login` and AWS_PROFILE, or run in a pod whose service account has a role "
    "(IRSA or EKS Pod Identity)."
)
_AWS_ASK = "see what `aws sts get-caller-identity` says here, and run the same command again."
_SIGN_IN_AGAIN = "run `aws sso login` (with --profile if AWS_PROFILE is set), and the same command again: it continues where it stopped."
_SIGN_IN_KINDS = frozenset({"UnauthorizedSSOTokenError", "SSOTokenLoadError", "TokenRetrievalError", "LoginRefreshRequired"})
_NO_PROFILE = "set AWS_PROFILE to a profile of ~/.aws/config, or unset it."

# AWS's common errors, by kind or text: docs.aws.amazon.com/prometheus/latest/APIReference/CommonErrors.html. The order matters: several
# messages have the kind InvalidSignature.
_AWS_REFUSALS: Refusals = (
    (
        r"ExpiredToken|token.*expired",
        "the AWS credentials have expired",
        "log in again (`aws sso login`) or renew them, and run the same command again: it continues where it stopped.",
    ),
    (
        r"scoped to a valid region",
        "the request is signed for a region that is not the workspace's",
        "give the workspace's region with --aws-region.",
    ),
    (
        r"RequestExpired|Signature expired|Signature not yet current",
        "this machine's clock differs from AWS's by more than five minutes",
        "set the clock, and run the same command again.",
    ),
    (
        r"InvalidSignature|SignatureDoesNotMatch|signature.*does not match|IncompleteSignature",
        "the signature is not accepted",
        "check the secret key; a proxy in front of AWS must change neither host, path nor body.",
    ),
    (
        r"UnrecognizedClient|InvalidClientTokenId|security token.*invalid",
        "AWS does not know the access key",
        "check AWS_PROFILE and the variables AWS_ACCESS_KEY_ID and AWS_SESSION_TOKEN; " + _AWS_ASK,
    ),
    (r"MissingAuthenticationToken|Missing Authentication Token", "the signature did not arrive", "check whether a proxy removes it."),
)
_AWS_DENIED = (
    "the identity may not query the workspace",
    "allow it aps:QueryMetrics on the workspace; the managed policy AmazonPrometheusQueryAccess does. No other permission is needed.",
)
_ACCESS_REFUSED = frozenset({401, 403})


class AwsSigner:
    """Signs requests to Amazon Managed Service for Prometheus in one region, with botocore's Signature Version 4 and credentials.

    botocore finds the credentials that the aws command would use: variables, a profile, single sign-on, a role by web identity (IRSA),
    EKS Pod Identity, or an instance's role. It renews them before they expire, and every request is signed with the current ones.
    Sources, read on 2026-11-27: docs.aws.amazon.com/prometheus/latest/userguide, AMP-APIReference-QueryMetrics.html (GET and POST) and
    docs.aws.amazon.com/aws-managed-policy/latest/reference/AmazonPrometheusQueryAccess.html.

    `is_certain`: the region is part of the host's name. botocore does not have to know it then, since a wrong one has no host.
    Raises ExplainedError if there are no credentials, and for any other region that botocore does not know.
    """

    def __init__(self, region: str, *, is_certain: bool) -> None:
        self._region = region
        self._auth = library("botocore.auth", _AWS_EXTRA)
        self._request = library("botocore.awsrequest", _AWS_EXTRA).AWSRequest
        exceptions = library("botocore.exceptions", _AWS_EXTRA)
        self._errors: tuple[type[Exception], ...] = (exceptions.BotoCoreError, exceptions.ClientError)
        self._secrets: set[str] = set()
        session: Any = library("botocore.session", _AWS_EXTRA).get_session()
        if not is_certain:
            _require_known(session, region)
        try:
            if session.get_config_variable("region") is None:
                # The request for a role by web identity needs a region, too.
                session.set_config_variable("region", region)
            self._credentials: Any = session.get_credentials()
        except self._errors as error:
            raise _aws_credentials_error(error, ExitCode.BAD_USAGE) from None
        if self._credentials is None:
            raise ExplainedError("AWS credentials were not found.", _AWS_LOG_IN, exit_code=ExitCode.BAD_USAGE)

    def headers(self, method: str, url: str, body: bytes, headers: Mapping[str, str]) -> dict[str, str]:
        """See Signer. Of `headers` only the content type is signed: the others do not affect the query, and proxies change them."""
        try:
            credentials: Any = self._credentials.get_frozen_credentials()
        except self._errors as error:
            raise _aws_credentials_error(error, ExitCode.UNMET) from None
        self._secrets |= {each for each in (credentials.secret_key, credentials.token) if each}
        signed = {name: value for name, value in headers.items() if name.lower() == "content-type"}
        request: Any = self._request(method=method, url=url, data=body, headers=signed)
        self._auth.SigV4Auth(credentials, _AWS_SERVICE, self._region).add_auth(request)
        return dict(request.headers.items())

    def secrets(self) -> set[str]:
        """See Signer. Includes secrets of credentials that have been renewed since."""
        return self._secrets

    def refused(self, reply: Reply, said: str) -> ExplainedError | None:
        """See Signer. AWS answers some bad signatures with status 400. Only the error name tells them from a bad query."""
        kind = reply.error_kind.partition(":")[0]
        if reply.status not in _ACCESS_REFUSED and not any(re.search(pattern, kind) for pattern, _, _ in _AWS_REFUSALS):
            return None
        return _first(_AWS_REFUSALS, f"{kind} {said}", _AWS_DENIED, reply, said)


def _require_known(session: Any, region: str) -> None:
    """Raise ExplainedError for an unknown region, for which AWS would refuse each request with a text about scopes."""
    known: list[str] = sorted({each for name in session.get_available_partitions() for each in session.get_available_regions("ec2", name)})
    if region not in known:
        near = difflib.get_close_matches(region, known, n=1)
        meant = f"use {near[0]}; " if near else ""
        raise ExplainedError(
            f"--aws-region: the installed botocore does not know {region}.",
            f"{meant}if the region is new, install a newer boto3.",
            exit_code=ExitCode.BAD_USAGE,
        )


def _aws_credentials_error(error: Exception, code: ExitCode) -> ExplainedError:
    """Return an error for credentials that cannot be read. Only the error's kind is shown: its text may quote a program or a server."""
    response: Any = getattr(error, "response", None)
    kind = str(response.get("Error", {}).get("Code", "")) if isinstance(response, dict) else ""
    kind = kind or type(error).__name__
    remedy = _SIGN_IN_AGAIN if kind in _SIGN_IN_KINDS else _NO_PROFILE if kind == "ProfileNotFound" else _AWS_ASK
    return ExplainedError(f"the AWS credentials cannot be obtained: {kind}.", remedy, exit_code=code)


_GOOGLE_EXTRA = "prometheus-gcp"
_GOOGLE_SCOPE = "https://www.googleapis.com/auth/monitoring.read"
_GOOGLE_LOG_IN = (
    "run `gcloud auth application-default login`, name a file in GOOGLE_APPLICATION_CREDENTIALS, or run in a pod with Workload Identity."
)
_GOOGLE_AGAIN = (
    "run `gcloud auth application-default print-access-token` to see why, and then the same command again: it continues where it stopped."
)

# By reasons of google.api.ErrorInfo, and by texts of errors without one.
_GOOGLE_REFUSALS: Refusals = (
    (
        r"SERVICE_DISABLED|has not been used in project",
        "the Cloud Monitoring API is not enabled",
        "run `gcloud services enable monitoring.googleapis.com --project PROJECT`.",
    ),
    (
        r"USER_PROJECT_DENIED|quota project",
        "the project that the credentials name for quota cannot be used",
        "run `gcloud auth application-default set-quota-project PROJECT` with a project in which you have serviceusage.services.use.",
    ),
    (
        r"ACCESS_TOKEN_SCOPE_INSUFFICIENT|insufficient authentication scopes",
        "the token lacks the scope monitoring.read",
        "log in again with `gcloud auth application-default login`, or give the machine the scope.",
    ),
)
_GOOGLE_DENIED = (
    "the identity may not read the project's metrics",
    "allow it monitoring.timeSeries.list in the project; the role roles/monitoring.viewer does. No other permission is needed.",
)
_UNAUTHORIZED, _FORBIDDEN = 401, 403


class GoogleSigner:
    """Authenticates requests to Google Cloud Managed Service for Prometheus, with OAuth 2.0 tokens of the application-default credentials.

    google-auth finds those as every Google client does: the file of GOOGLE_APPLICATION_CREDENTIALS (also for workload identity
    federation, where it contains no secret), `gcloud auth application-default login`, or the metadata server of a machine or a pod. It
    renews a token before it expires. Sources, read on 2026-11-27: the discovery document monitoring.v1 (query_range of
    projects.location.prometheus.api.v1: POST, scope monitoring.read), and docs.cloud.google.com/stackdriver/docs/managed-prometheus,
    query-api-ui.

    Raises ExplainedError if there are no credentials.
    """

    def __init__(self) -> None:
        auth = library("google.auth", _GOOGLE_EXTRA)
        self._errors: tuple[type[Exception], ...] = (
            library("google.auth.exceptions", _GOOGLE_EXTRA).GoogleAuthError,
            library("requests", _GOOGLE_EXTRA).RequestException,
        )
        self._secrets: set[str] = set()
        self._transport: Any = library("google.auth.transport.requests", _GOOGLE_EXTRA).Request()
        try:
            with warnings.catch_warnings():
                # google-auth warns about user credentials without a quota project. If one is needed, Google's refusal says so.
                warnings.simplefilter("ignore")
                self._credentials: Any = auth.default(scopes=[_GOOGLE_SCOPE])[0]
        except self._errors as error:
            missing = type(error).__name__ == "DefaultCredentialsError"
            problem = "usable Google Cloud credentials were not found." if missing else _google_token_problem(error)
            raise ExplainedError(problem, _GOOGLE_LOG_IN, exit_code=ExitCode.BAD_USAGE) from None

    def headers(self, method: str, url: str, body: bytes, headers: Mapping[str, str]) -> dict[str, str]:  # noqa: ARG002 -- a Signer's
        """See Signer. The credentials' quota project is sent with the token."""
        found: dict[str, str] = {}
        try:
            self._credentials.before_request(self._transport, method, url, found)
        except self._errors as error:
            raise ExplainedError(_google_token_problem(error), _GOOGLE_AGAIN) from None
        self._secrets.add(str(self._credentials.token))
        return found

    def secrets(self) -> set[str]:
        """See Signer. Includes secrets of credentials that have been renewed since."""
        return self._secrets

    def refused(self, reply: Reply, said: str) -> ExplainedError | None:
        """See Signer."""
        if reply.status == _UNAUTHORIZED:
            return access_refused("Google Cloud does not accept the token", _GOOGLE_AGAIN, reply, said)
        if reply.status != _FORBIDDEN:
            return None
        return _first(_GOOGLE_REFUSALS, said + reply.body.decode("utf-8", errors="replace"), _GOOGLE_DENIED, reply, said)


def _google_token_problem(error: Exception) -> str:
    """Return the problem with only the kind of the error: its text may quote a program or a server."""
    return f"Google Cloud returned no token: {type(error).__name__}."
