"""Requests signed for Amazon Managed Service for Prometheus: AWS's Signature Version 4 by botocore, with the credentials that it finds.

Those are what the aws command would use: variables, a profile, single sign-on, a role by web identity (IRSA), EKS Pod Identity, an
instance's role. None is kept here: botocore renews them before they run out, and every request is signed with what it has then.
Sources, read on 2026-11-27: docs.aws.amazon.com/prometheus/latest/userguide, AMP-APIReference-QueryMetrics.html (GET and POST) and
docs.aws.amazon.com/aws-managed-policy/latest/reference/AmazonPrometheusQueryAccess.html.
"""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Any

from capacity.values.errors import ExitCode, ExplainedError
from infra.optional_libraries import library
from infra.prometheus.signer import access_refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.prometheus.signer import Reply


_SERVICE = "aps"
_EXTRA = "prometheus-aws"
_LOG_IN = (
    "log in as for the aws command, for example with `aws sso login` and AWS_PROFILE, or run in a pod whose service account has a role "
    "(IRSA or EKS Pod Identity)."
)
_ASK = "see what `aws sts get-caller-identity` says here, and run the same command again."
_SIGN_IN_AGAIN = "run `aws sso login` (with --profile, where AWS_PROFILE is set), and the same command again: it goes on where it was."
_SIGN_IN_KINDS = frozenset({"UnauthorizedSSOTokenError", "SSOTokenLoadError", "TokenRetrievalError", "LoginRefreshRequired"})
_NO_PROFILE = "set AWS_PROFILE to a profile of ~/.aws/config, or unset it."

# AWS's common errors, by kind or text: docs.aws.amazon.com/prometheus/latest/APIReference/CommonErrors.html. The first that is found is
# told: several texts are of the kind InvalidSignature.
_REFUSALS: tuple[tuple[str, str, str], ...] = (
    (
        r"ExpiredToken|token.*expired",
        "the AWS credentials have run out",
        "log in again (`aws sso login`) or renew them, and run the same command again: it goes on where it was.",
    ),
    (
        r"scoped to a valid region",
        "the request is signed for another region than the workspace's",
        "give the workspace's region with --aws-region.",
    ),
    (
        r"RequestExpired|Signature expired|Signature not yet current",
        "the clock here differs from AWS's by more than five minutes",
        "set the clock, and run the same command again.",
    ),
    (
        r"InvalidSignature|SignatureDoesNotMatch|signature.*does not match|IncompleteSignature",
        "the signature is not accepted",
        "check the secret key; behind another address than AWS's own, what stands between must change neither host, path nor body.",
    ),
    (
        r"UnrecognizedClient|InvalidClientTokenId|security token.*invalid",
        "AWS does not know the access key",
        "check AWS_PROFILE and the variables AWS_ACCESS_KEY_ID and AWS_SESSION_TOKEN; " + _ASK,
    ),
    (r"MissingAuthenticationToken|Missing Authentication Token", "the signature did not arrive", "check what stands between: a proxy."),
)
_DENIED = (
    "the identity may not query the workspace",
    "allow it aps:QueryMetrics on the workspace; the managed policy AmazonPrometheusQueryAccess does. Nothing else is asked for.",
)
_NOT_LET_IN = frozenset({401, 403})


class AwsSigner:
    """Signs for one region. Raises ExplainedError where there are no credentials at all, and for a region that botocore does not know.

    A region `is_certain` where the host's name has it: botocore need not know it, and one that is none has no host.
    """

    def __init__(self, region: str, *, is_certain: bool) -> None:
        self._region = region
        self._auth = library("botocore.auth", _EXTRA)
        self._request = library("botocore.awsrequest", _EXTRA).AWSRequest
        exceptions = library("botocore.exceptions", _EXTRA)
        self._errors: tuple[type[Exception], ...] = (exceptions.BotoCoreError, exceptions.ClientError)
        self._secrets: set[str] = set()
        session: Any = library("botocore.session", _EXTRA).get_session()
        if not is_certain:
            _require_known(session, region)
        try:
            if session.get_config_variable("region") is None:
                # A role by web identity is asked for in a region, too.
                session.set_config_variable("region", region)
            self._credentials: Any = session.get_credentials()
        except self._errors as error:
            raise _not_had(error, ExitCode.BAD_USAGE) from None
        if self._credentials is None:
            raise ExplainedError("there are no AWS credentials here.", _LOG_IN, exit_code=ExitCode.BAD_USAGE)

    def headers(self, method: str, url: str, body: bytes, headers: Mapping[str, str]) -> dict[str, str]:
        """See Signer. Of `headers` only the content's type is signed: the others say nothing of the question, and proxies change them."""
        try:
            credentials: Any = self._credentials.get_frozen_credentials()
        except self._errors as error:
            raise _not_had(error, ExitCode.UNMET) from None
        self._secrets |= {each for each in (credentials.secret_key, credentials.token) if each}
        signed = {name: value for name, value in headers.items() if name.lower() == "content-type"}
        request: Any = self._request(method=method, url=url, data=body, headers=signed)
        self._auth.SigV4Auth(credentials, _SERVICE, self._region).add_auth(request)
        return dict(request.headers.items())

    def secrets(self) -> set[str]:
        """See Signer; also those that were renewed since."""
        return self._secrets

    def refused(self, reply: Reply, said: str) -> ExplainedError | None:
        """See Signer. AWS refuses some signatures as bad requests: then its own name of the error tells, for a text may be of the query."""
        kind = reply.error_kind.partition(":")[0]
        if reply.status not in _NOT_LET_IN and not any(re.search(pattern, kind) for pattern, _, _ in _REFUSALS):
            return None
        for pattern, problem, remedy in _REFUSALS:
            if re.search(pattern, f"{kind} {said}", re.IGNORECASE):
                return access_refused(problem, remedy, reply, said)
        return access_refused(*_DENIED, reply, said)


def _require_known(session: Any, region: str) -> None:
    """Raises ExplainedError before AWS refuses each request with a text about scopes."""
    known: list[str] = sorted({each for name in session.get_available_partitions() for each in session.get_available_regions("ec2", name)})
    if region not in known:
        near = difflib.get_close_matches(region, known, n=1)
        meant = f"did you mean {near[0]}? " if near else ""
        raise ExplainedError(
            f"{region} is not an AWS region that the installed botocore knows.",
            f"{meant}Where it is a new one, install a newer boto3.",
            exit_code=ExitCode.BAD_USAGE,
        )


def _not_had(error: Exception, code: ExitCode) -> ExplainedError:
    """Credentials that are there and cannot be had. Of the error the kind alone: its text may quote what a program or a server printed."""
    response: Any = getattr(error, "response", None)
    kind = str(response.get("Error", {}).get("Code", "")) if isinstance(response, dict) else ""
    kind = kind or type(error).__name__
    remedy = _SIGN_IN_AGAIN if kind in _SIGN_IN_KINDS else _NO_PROFILE if kind == "ProfileNotFound" else _ASK
    return ExplainedError(f"the AWS credentials cannot be had: {kind}.", remedy, exit_code=code)
