"""Access of a team's member to the API server and to the platform's ConfigMap in the team's namespace."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kubernetes.client.exceptions import ApiException

from flexspot.capacity.plan.teams import CONFIG_MAP, KEY, TeamViewError, read_team_view
from flexspot.capacity.values.errors import ExitCode, ExplainedError
from flexspot.infra.kubeconfig import KubeAccess, access

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from flexspot.capacity.plan.model import Plan
    from flexspot.capacity.workloads.pods import KubeObject

NOT_FOUND, FORBIDDEN, CONFLICT, UNAUTHORIZED = 404, 403, 409, 401
_TOO_MANY, _BROKEN = 429, 500

_PATHS: Mapping[str, str] = {
    "batch/v1/Job": "/apis/batch/v1/namespaces/{namespace}/jobs",
    "jobset.x-k8s.io/v1alpha2/JobSet": "/apis/jobset.x-k8s.io/v1alpha2/namespaces/{namespace}/jobsets",
    "kueue.x-k8s.io/v1beta2/Workload": "/apis/kueue.x-k8s.io/v1beta2/namespaces/{namespace}/workloads",
    "v1/ConfigMap": "/api/v1/namespaces/{namespace}/configmaps",
    "v1/Pod": "/api/v1/namespaces/{namespace}/pods",
}
"""The kinds that a team's members can read, with their paths. Members may not discover them from the server."""

JOB, JOB_SET, WORKLOAD, MAP, POD = _PATHS


@dataclass(frozen=True)
class TeamCluster:
    """The API server, for one namespace. Kinds are written `apiVersion/Kind`. All calls raise ApiException with the server's message."""

    access: KubeAccess
    namespace: str

    def create(self, each: KubeObject, *, dry_run: bool = False) -> KubeObject:
        """Create an object in the namespace. With `dry_run` the server answers as usual but stores nothing."""
        query = {"dryRun": "All"} if dry_run else None
        return self.access.ask("POST", self._path(f"{each['apiVersion']}/{each['kind']}"), query=query, body=each)

    def find(self, kind: str, name: str) -> KubeObject | None:
        """Return an object, or None if there is none of that name."""
        try:
            return self.access.ask("GET", self._path(kind, name))
        except ApiException as error:
            if error.status == NOT_FOUND:
                return None
            raise

    def delete(self, kind: str, name: str, uid: str | None = None) -> None:
        """Delete an object after everything it owns. A missing object is no error, since the garbage collector may be faster.

        With a `uid` the server refuses (409) to delete another object that has the same name by now.
        """
        body = {"propagationPolicy": "Foreground", **({"preconditions": {"uid": uid}} if uid else {})}
        try:
            self.access.ask("DELETE", self._path(kind, name), body=body)
        except ApiException as error:
            if error.status != NOT_FOUND:
                raise

    def log(self, pod: str, container: str, *, since_seconds: int | None = None, tail: int | None = None) -> str:
        """Return the output of a container so far, each line with its timestamp."""
        limits = {"sinceSeconds": since_seconds, "tailLines": tail}
        query = {"container": container, "timestamps": "true", **{key: str(each) for key, each in limits.items() if each is not None}}
        return self.access.ask("GET", self._path(POD, f"{pod}/log"), query=query, text=True)

    def list(self, kind: str, labels: str = "") -> list[KubeObject]:
        """Return the objects of a kind that match the selector `labels`. Empty if the server does not have that kind."""
        try:
            found = self.access.ask("GET", self._path(kind), query={"labelSelector": labels} if labels else None)["items"]
        except ApiException as error:
            if error.status == NOT_FOUND:
                return []
            raise
        api_version, _, own = kind.rpartition("/")
        # Items of a list lack apiVersion and kind.
        return [{**each, "apiVersion": api_version, "kind": own} for each in found]

    def _path(self, kind: str, name: str = "") -> str:
        return _PATHS[kind].format(namespace=self.namespace) + (f"/{name}" if name else "")


def connect(kubeconfig: Path | None, context: str | None, namespace: str | None) -> TeamCluster:
    """Return the cluster of a kubeconfig (default: as kubectl finds it) and a context (default: the current one).

    `namespace` defaults to that of the context. Raises ExplainedError for a kubeconfig that cannot be used, or if there is no namespace.
    """
    found = access(kubeconfig, context)
    chosen = namespace or found.namespace
    if not chosen:
        problem = f"--team is required: context {found.context} has no namespace."
        raise ExplainedError(problem, "add --team TEAM.", exit_code=ExitCode.BAD_USAGE)
    return TeamCluster(found, chosen)


def platform_of(cluster: TeamCluster) -> Plan:
    """Return the part of the platform's plan that the team can see. Raises ExplainedError if it cannot be read."""
    try:
        found = cluster.find(MAP, CONFIG_MAP)
    except ApiException as error:
        raise explained(error, "the platform's ConfigMap cannot be read") from error
    if found is None:
        problem = f"namespace {cluster.namespace} has no ConfigMap {CONFIG_MAP}."
        remedy = "name your team with --team, or ask the platform's operators to run `flexspot up` with this release, which creates it."
        raise ExplainedError(problem, remedy, exit_code=ExitCode.BAD_USAGE)
    try:
        return read_team_view(found.get("data", {}).get(KEY, ""))
    except TeamViewError as error:
        remedy = "use the flexspot release that deployed the platform. If the ConfigMap was edited by hand, run `flexspot up`."
        raise ExplainedError(f"ConfigMap {CONFIG_MAP} of namespace {cluster.namespace} cannot be read: {error}.", remedy) from error


def explained(error: ApiException, doing: str) -> ExplainedError:
    """Return the API server's refusal of an attempt (`doing`) as an error for people."""
    words, status = message_of(error), error.status or 0
    if status == UNAUTHORIZED or (status == FORBIDDEN and ANONYMOUS in words):
        remedy, problem = "log in to the cluster again with your cloud's command line.", "the cluster does not accept your credentials"
    elif status == FORBIDDEN and not any(each in words for each in _OF_THE_OBJECT):
        remedy = "ask the platform's operators to add you to a group of the team's `submitters`, or name another team with --team."
        problem = "you lack the permission"
    elif status == CONFLICT:
        remedy, problem = (
            "check it with `flexspot jobs list`, then try again.",
            "the object was changed at the same time",
        )
    elif status == _TOO_MANY or status >= _BROKEN:
        remedy, problem = "try again in a minute.", "the API server is overloaded or broken"
    else:
        remedy, problem = "correct what the cluster rejects, in the line above.", "the cluster rejects it"
    return ExplainedError(f"{doing}: {problem}.", remedy, exit_code=ExitCode.BAD_USAGE, evidence=(words,))


ANONYMOUS = "system:anonymous"
"""User name of requests without credentials."""

_OF_THE_OBJECT = ("denied request", "denied the request", "exceeded quota")
"""Parts of refusals (403) that concern the submitted object, not the user: those of policies, webhooks and quotas."""


def is_passing(error: ApiException) -> bool:
    """Return whether the server may answer when asked again."""
    return error.status == _TOO_MANY or (error.status or 0) >= _BROKEN


def message_of(error: ApiException) -> str:
    """Return the server's message."""
    try:
        return str(json.loads(error.body or "")["message"])
    except (ValueError, KeyError, TypeError):
        return str(error.reason)
