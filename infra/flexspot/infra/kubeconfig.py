"""Access to the cluster of a kubeconfig, which is found as kubectl finds it, and requests to its API server."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import urllib3
import yaml
from kubernetes import client as kubernetes_client
from kubernetes import config as kubernetes_config
from kubernetes.client.exceptions import ApiException

from flexspot.capacity.values.errors import ExitCode, ExplainedError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SECONDS = 60.0
"""Timeout of a request."""

_FINE, _NOT_FINE = 200, 300
_UNAUTHORIZED, _FORBIDDEN = 401, 403

_UNUSABLE = (kubernetes_config.ConfigException, yaml.YAMLError, OSError, ValueError, TypeError, AttributeError, KeyError)
"""Exceptions that the Kubernetes client raises for a file that is missing, not YAML, or not a kubeconfig."""


@dataclass(frozen=True)
class KubeAccess:
    """A client of a cluster's API server."""

    client: Any
    """The Kubernetes client, which has no types."""
    context: str | None = None
    """None inside a pod, or if the kubeconfig has no current context."""
    namespace: str | None = None
    """Namespace of the context. None if it has none, and inside a pod."""

    @property
    def server(self) -> str:
        """The address of the API server."""
        return self.client.configuration.host

    def ask(  # noqa: PLR0913 -- one call of HTTP
        self,
        verb: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        content_type: str = "application/json",
        text: bool = False,
    ) -> Any:
        """Send a request and return the API server's answer: parsed JSON, or the plain text if `text`.

        Raises ApiException with the server's message if it refuses, and ExplainedError (bad usage) if no API server answers.
        """
        headers = {"Accept": "*/*" if text else "application/json", "Content-Type": content_type}
        listed = list((query or {}).items())
        try:
            request = self.client.param_serialize(
                verb, path, query_params=listed, header_params=headers, body=body, auth_settings=["BearerToken"]
            )
            answer = self.client.call_api(*request, _request_timeout=SECONDS)
            content = answer.read().decode(errors="replace")
            if not _FINE <= answer.status < _NOT_FINE:
                raise ApiException(status=answer.status, reason=answer.reason, body=content)
            return content if text else json.loads(content)
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise self.unanswered(error) from error

    def unanswered(self, error: Exception) -> ExplainedError:
        """Return an error that says that there is no usable answer, and why."""
        if isinstance(error, ApiException) and error.status in {_UNAUTHORIZED, _FORBIDDEN}:
            why = f"does not accept the credentials ({error.status} {error.reason})"
            remedy = "log in to the cluster again, or name another --context."
        else:
            text = "it is not an API server" if isinstance(error, json.JSONDecodeError) else " ".join(str(error).split())[:300]
            why = f"does not answer: {text}"
            remedy = "check with `kubectl get --raw /version` that you can reach the cluster from here."
        return ExplainedError(f"the cluster {self.server} {why}.", remedy, exit_code=ExitCode.BAD_USAGE)


def access(kubeconfig: Path | None, context: str | None, *, also_in_pod: bool = False) -> KubeAccess:
    """Return access to the cluster of a kubeconfig (default: as kubectl finds it) and a context (default: the current one).

    `also_in_pod`: if neither is given and there is no kubeconfig, use the cluster that this pod runs in. Raises ExplainedError (bad
    usage) for a kubeconfig or a context that cannot be used.
    """
    settings = kubernetes_client.Configuration()
    settings.retries = urllib3.Retry(total=2, backoff_factor=0.5)
    where = str(kubeconfig) if kubeconfig is not None else None
    try:
        kubernetes_config.load_kube_config(where, context, settings)
        contexts, current = kubernetes_config.list_kube_config_contexts(where)
        if settings.host == kubernetes_client.Configuration().host:
            # For a cluster without a server the client defaults to this machine.
            raise kubernetes_config.ConfigException("its cluster names no server")
    except _UNUSABLE as error:
        if also_in_pod and kubeconfig is None and context is None and _is_in_pod(settings):
            return KubeAccess(kubernetes_client.ApiClient(settings))
        raise _unusable(kubeconfig, error) from error
    if settings.host.startswith(("https://127.0.0.1", "http://127.0.0.1")):
        # A proxy from the environment does not apply to loopback addresses.
        settings.proxy = None
    chosen = next((each for each in contexts if each["name"] == context), current)
    return KubeAccess(kubernetes_client.ApiClient(settings), chosen["name"], chosen["context"].get("namespace"))


def _is_in_pod(settings: Any) -> bool:
    try:
        kubernetes_config.load_incluster_config(settings)
    except kubernetes_config.ConfigException:
        return False
    return True


def _unusable(kubeconfig: Path | None, error: Exception) -> ExplainedError:
    shown = f"the kubeconfig {kubeconfig}" if kubeconfig else "the kubeconfig that kubectl would use"
    missing = kubeconfig is not None and not kubeconfig.is_file()
    why = "there is no such file" if missing else " ".join(str(error).split())[:300].rstrip(".") or type(error).__name__
    remedy = (
        "name a kubeconfig with --kubeconfig and one of its contexts with --context, or write one with your cloud's command "
        "(gcloud container clusters get-credentials, aws eks update-kubeconfig)."
    )
    return ExplainedError(f"{shown} cannot be used: {why}.", remedy, exit_code=ExitCode.BAD_USAGE)
