"""The API server as a member of a team reaches it, and what the platform has put into the team's namespace."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import urllib3
from kubernetes.client.exceptions import ApiException

from capacity.plan.team_view import CONFIG_MAP, KEY, TeamViewError, read_team_view
from capacity.values.errors import ExitCode, ExplainedError
from infra.kubeconfig import access

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from kubernetes import client as kubernetes_client

    from capacity.plan.model import Plan

KubeObject = dict[str, Any]

NOT_FOUND, FORBIDDEN, CONFLICT, UNAUTHORIZED = 404, 403, 409, 401
_FINE, _NOT_FINE = 200, 300
_PATIENCE_SECONDS = 30

_PATHS: Mapping[str, str] = {
    "batch/v1/Job": "/apis/batch/v1/namespaces/{namespace}/jobs",
    "jobset.x-k8s.io/v1alpha2/JobSet": "/apis/jobset.x-k8s.io/v1alpha2/namespaces/{namespace}/jobsets",
    "kueue.x-k8s.io/v1beta2/Workload": "/apis/kueue.x-k8s.io/v1beta2/namespaces/{namespace}/workloads",
    "v1/ConfigMap": "/api/v1/namespaces/{namespace}/configmaps",
    "v1/Event": "/api/v1/namespaces/{namespace}/events",
    "v1/Pod": "/api/v1/namespaces/{namespace}/pods",
}
"""The kinds that people of a team see. Asked for by their paths, as nobody of them may ask the server for all that it serves."""

JOB, JOB_SET, WORKLOAD, MAP, EVENT, POD = _PATHS


@dataclass(frozen=True)
class TeamCluster:
    """The API server, for one namespace. Kinds are written `apiVersion/Kind`; all calls raise ApiException with the server's words."""

    client: kubernetes_client.ApiClient
    namespace: str

    def create(self, each: KubeObject) -> KubeObject:
        """Creates an object of the namespace."""
        return self._call("POST", f"{each['apiVersion']}/{each['kind']}", body=each)

    def find(self, kind: str, name: str) -> KubeObject | None:
        """An object, None where there is none of that name."""
        try:
            return self._call("GET", kind, name)
        except ApiException as error:
            if error.status == NOT_FOUND:
                return None
            raise

    def patch(self, kind: str, name: str, change: KubeObject) -> None:
        """JSON merge patch of an object."""
        self._call("PATCH", kind, name, body=change, content_type="application/merge-patch+json")

    def delete(self, kind: str, name: str) -> None:
        """Deletes an object, and after it what it owns; no error when it is gone, as the garbage collector may come first."""
        try:
            self._call("DELETE", kind, name, body={"propagationPolicy": "Background"})
        except ApiException as error:
            if error.status != NOT_FOUND:
                raise

    def log(self, pod: str, container: str, *, since_seconds: int | None = None, tail: int | None = None) -> str:
        """The output of a container so far, each line with its time."""
        query = [("container", container), ("timestamps", "true")]
        query += [("sinceSeconds", str(since_seconds))] if since_seconds is not None else []
        query += [("tailLines", str(tail))] if tail is not None else []
        return self._call("GET", POD, f"{pod}/log", query=query, text=True)

    def _call(  # noqa: PLR0913 -- one call of HTTP
        self,
        verb: str,
        kind: str,
        name: str = "",
        *,
        body: KubeObject | None = None,
        query: list[tuple[str, str]] | None = None,
        content_type: str = "application/json",
        text: bool = False,
    ) -> Any:
        path = _PATHS[kind].format(namespace=self.namespace) + (f"/{name}" if name else "")
        headers = {"Accept": "*/*" if text else "application/json", "Content-Type": content_type}
        asked = self.client.param_serialize(verb, path, query_params=query, header_params=headers, body=body, auth_settings=["BearerToken"])
        try:
            answer = self.client.call_api(*asked, _request_timeout=_PATIENCE_SECONDS)
        except urllib3.exceptions.HTTPError as error:
            remedy = "see that you reach it (VPN, kubectl get pods), and that --context names the right cluster."
            raise ExplainedError(f"{self.client.configuration.host} does not answer.", remedy, evidence=(str(error),)) from error
        said = answer.read().decode(errors="replace")
        if not _FINE <= answer.status < _NOT_FINE:
            raise ApiException(status=answer.status, reason=answer.reason, body=said)
        return said if text else json.loads(said)

    def list(self, kind: str, labels: str = "") -> list[KubeObject]:
        """The objects of a kind that the selector `labels` chooses; none where the server does not have that kind."""
        try:
            found = self._call("GET", kind, query=[("labelSelector", labels)] if labels else [])["items"]
        except ApiException as error:
            if error.status == NOT_FOUND:
                return []
            raise
        api_version, _, own = kind.rpartition("/")
        # Items of a list do not say what they are.
        return [{**each, "apiVersion": api_version, "kind": own} for each in found]


def connect(kubeconfig: Path | None, context: str | None, namespace: str | None) -> TeamCluster:
    """The cluster of a kubeconfig (default: as kubectl finds it) and of one of its contexts (default: its current one).

    Without a namespace it is that of the context. Raises ExplainedError for a kubeconfig that cannot be used, or that names no namespace.
    """
    found = access(kubeconfig, context)
    chosen = namespace or found.namespace
    if not chosen:
        problem = f"context {found.context} names no namespace, and no team is given."
        raise ExplainedError(problem, "give --team TEAM.", exit_code=ExitCode.BAD_USAGE)
    return TeamCluster(found.client, chosen)


def platform_of(cluster: TeamCluster) -> Plan:
    """The plan of the team's work. Raises ExplainedError where it cannot be read."""
    try:
        found = cluster.find(MAP, CONFIG_MAP)
    except ApiException as error:
        raise explained(error, "the platform's ConfigMap cannot be read") from error
    if found is None:
        problem = f"there is no ConfigMap {CONFIG_MAP} in namespace {cluster.namespace}."
        remedy = "name your team with --team; or ask who runs the platform for `flexspot up` of this release, which makes it."
        raise ExplainedError(problem, remedy, exit_code=ExitCode.BAD_USAGE)
    try:
        return read_team_view(found.get("data", {}).get(KEY, ""))
    except TeamViewError as error:
        remedy = "take the release of flexspot that the platform was deployed with; if somebody has changed it, `flexspot up` mends it."
        raise ExplainedError(f"ConfigMap {CONFIG_MAP} of namespace {cluster.namespace} cannot be read: {error}.", remedy) from error


def explained(error: ApiException, doing: str) -> ExplainedError:
    """What the API server said to an attempt, for a person."""
    words = message_of(error)
    if error.status == UNAUTHORIZED:
        return ExplainedError(f"{doing}: the cluster does not know you.", "log in again as your cloud's command does.", evidence=(words,))
    if error.status == FORBIDDEN and "denied request" not in words and "exceeded quota" not in words:
        remedy = "ask who runs the platform whether you are in a group of the team's `submitters`; --team names the team."
        return ExplainedError(f"{doing}: you may not.", remedy, evidence=(words,))
    return ExplainedError(f"{doing}: the cluster refuses it.", "the line above says what to write instead.", evidence=(words,))


def message_of(error: ApiException) -> str:
    """The server's own words."""
    try:
        return str(json.loads(error.body or "")["message"])
    except (ValueError, KeyError, TypeError):
        return str(error.reason)
