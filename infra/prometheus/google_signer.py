"""Requests signed in to Google Cloud Managed Service for Prometheus: OAuth 2.0 tokens of the application-default credentials.

google-auth finds those as every client of Google's does: the file of GOOGLE_APPLICATION_CREDENTIALS (also of workload identity
federation, which holds no secret), `gcloud auth application-default login`, or the metadata server of a machine or a pod. It renews a
token before it runs out. Sources, read on 2026-11-27: the discovery document monitoring.v1 (query_range of
projects.location.prometheus.api.v1: POST, scope monitoring.read), and docs.cloud.google.com/stackdriver/docs/managed-prometheus,
query-api-ui.
"""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Any

from capacity.values.errors import ExitCode, ExplainedError
from infra.optional_libraries import library
from infra.prometheus.signer import access_refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.prometheus.signer import Reply


_EXTRA = "prometheus-gcp"
_SCOPE = "https://www.googleapis.com/auth/monitoring.read"
_LOG_IN = (
    "run `gcloud auth application-default login`, name a file in GOOGLE_APPLICATION_CREDENTIALS, or run in a pod with Workload Identity."
)
_AGAIN = "run `gcloud auth application-default print-access-token` to see why, and then the same command again: it goes on where it was."

# By what an error says: reasons of google.api.ErrorInfo, and the texts of errors without one. The first that is found is told.
_REFUSALS: tuple[tuple[str, str, str], ...] = (
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
        "the token does not carry the scope monitoring.read",
        "log in again with `gcloud auth application-default login`, or give the machine the scope.",
    ),
)
_DENIED = (
    "the identity may not read the project's metrics",
    "allow it monitoring.timeSeries.list in the project; the role roles/monitoring.viewer does. Nothing else is asked for.",
)
_TAKEN_FOR_NOBODY, _FORBIDDEN = 401, 403


class GoogleSigner:
    """Signs in with tokens. Raises ExplainedError where there are no credentials."""

    def __init__(self) -> None:
        auth = library("google.auth", _EXTRA)
        self._errors: tuple[type[Exception], ...] = (
            library("google.auth.exceptions", _EXTRA).GoogleAuthError,
            library("requests", _EXTRA).RequestException,
        )
        self._secrets: set[str] = set()
        self._transport: Any = library("google.auth.transport.requests", _EXTRA).Request()
        try:
            with warnings.catch_warnings():
                # A person's own credentials without a project for quota: where that matters, the refusal says so.
                warnings.simplefilter("ignore")
                self._credentials: Any = auth.default(scopes=[_SCOPE])[0]
        except self._errors as error:
            missing = type(error).__name__ == "DefaultCredentialsError"
            problem = "there are no Google Cloud credentials here that can be used." if missing else _not_had(error)
            raise ExplainedError(problem, _LOG_IN, exit_code=ExitCode.BAD_USAGE) from None

    def headers(self, method: str, url: str, body: bytes, headers: Mapping[str, str]) -> dict[str, str]:  # noqa: ARG002 -- a Signer's
        """See Signer. A project that the credentials name for quota goes with the token."""
        found: dict[str, str] = {}
        try:
            self._credentials.before_request(self._transport, method, url, found)
        except self._errors as error:
            raise ExplainedError(_not_had(error), _AGAIN) from None
        self._secrets.add(str(self._credentials.token))
        return found

    def secrets(self) -> set[str]:
        """See Signer; also those that were renewed since."""
        return self._secrets

    def refused(self, reply: Reply, said: str) -> ExplainedError | None:
        """See Signer."""
        if reply.status == _TAKEN_FOR_NOBODY:
            return access_refused("Google Cloud does not accept the token", _AGAIN, reply, said)
        if reply.status != _FORBIDDEN:
            return None
        for pattern, problem, remedy in _REFUSALS:
            if re.search(pattern, said + reply.body.decode("utf-8", errors="replace"), re.IGNORECASE):
                return access_refused(problem, remedy, reply, said)
        return access_refused(*_DENIED, reply, said)


def _not_had(error: Exception) -> str:
    """Of the error the kind alone: its text may quote what a program or a server printed."""
    return f"Google Cloud gives no token: {type(error).__name__}."
