"""What a cluster's API server lists, page by page, with the permissions that the asker lacks."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

import urllib3
from kubernetes.client.exceptions import ApiException

from capacity.values.errors import ExitCode, ExplainedError
from policies.inventory.pod_gpus import POD_MAKERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PAGE: Final = 500
"""Objects that are asked for at once, as kubectl does."""

SECONDS: Final = 60.0
_FORBIDDEN, _NOT_FOUND, _GONE, _UNAUTHORIZED, _OK = 403, 404, 410, 401, 200

_BESIDE_WORK: Final[Mapping[str, frozenset[str]]] = {
    "": frozenset({"LimitRange", "Namespace", "Node", "PersistentVolumeClaim", "ResourceQuota"}),
    "autoscaling.x-k8s.io": frozenset({"ProvisioningRequest"}),
    "cloud.google.com": frozenset({"ComputeClass"}),
    "eks.amazonaws.com": frozenset({"NodeClass"}),
    "karpenter.k8s.aws": frozenset({"EC2NodeClass"}),
    "karpenter.kwok.sh": frozenset({"KWOKNodeClass"}),
    "karpenter.sh": frozenset({"NodePool"}),
    "keda.sh": frozenset({"ScaledObject"}),
    "kueue.x-k8s.io": frozenset(
        {
            *("AdmissionCheck", "ClusterQueue", "Cohort", "LocalQueue", "ProvisioningRequestConfig"),
            *("ResourceFlavor", "WorkloadPriorityClass"),
        }
    ),
    "policy": frozenset({"PodDisruptionBudget"}),
    "scheduling.k8s.io": frozenset({"PriorityClass"}),
    "argoproj.io": frozenset({"Rollout", "CronWorkflow", "WorkflowTemplate"}),
    "serving.kserve.io": frozenset({"InferenceService", "LLMInferenceService"}),
    "trainer.kubeflow.org": frozenset({"TrainJob"}),
}
"""Kinds that rules look at. No Secret and no ConfigMap is among them."""


def wanted_kinds() -> dict[str, set[str]]:
    """Every kind that is listed, by API group: what rules look at, and what makes pods."""
    found = {group: set(kinds) for group, kinds in _BESIDE_WORK.items()}
    for group, kind in POD_MAKERS:
        found.setdefault(group, set()).add(kind)
    return found


@dataclass(frozen=True)
class Lack:
    """A list that the asker may not have."""

    resource: str
    namespace: str = ""

    def __str__(self) -> str:
        return f"list {self.resource}" + (f" in namespace {self.namespace}" if self.namespace else "")


@dataclass
class Listed:
    """What was listed. `complete` unless something was not: then what is not there may be there all the same."""

    server: str
    version: str
    groups: frozenset[str] = frozenset()
    lacking: list[Lack] = field(default_factory=list[Lack])
    namespaces: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether all of the cluster was listed."""
        return not self.lacking and not self.namespaces

    def lists_all(self, resource: str) -> bool:
        """Whether all of a resource was listed."""
        return not self.namespaces and all(each.resource != resource for each in self.lacking)


class ClusterLists:
    """The lists of one cluster. `namespaces`: of these alone; of all where there are none.

    The client is not typed, and what the server says is JSON: Any, from here on.
    """

    def __init__(self, client: Any, namespaces: Sequence[str] = ()) -> None:
        self._client = client
        self._namespaces = tuple(namespaces)
        self.told = Listed(client.configuration.host, "", namespaces=self._namespaces)

    def objects(self) -> Iterator[dict[str, Any]]:
        """Every object of the kinds that are wanted, as it is served, one page after the other.

        A list that the asker may not have is noted, and passed over. Raises ExplainedError for a cluster that does not answer.
        """
        self.told.version = str(self._get("/version").get("gitVersion", ""))
        wanted = wanted_kinds()
        served = {each["name"]: each["preferredVersion"]["groupVersion"] for each in self._get("/apis").get("groups", [])}
        self.told.groups = frozenset(served)
        for group, kinds in sorted(wanted.items()):
            path = "/api/v1" if not group else f"/apis/{served[group]}" if group in served else ""
            for resource in self._get(path).get("resources", []) if path else ():
                if resource["kind"] in kinds and "/" not in resource["name"] and "list" in resource["verbs"]:
                    yield from self._of_resource(path, resource, group)

    def _of_resource(self, path: str, resource: dict[str, Any], group: str) -> Iterator[dict[str, Any]]:
        name = resource["name"] if not group else f"{resource['name']}.{group}"
        kind = {"apiVersion": path.removeprefix("/apis/").removeprefix("/api/"), "kind": resource["kind"]}
        spaces = self._namespaces if resource["namespaced"] else ()
        places = [(each, f"{path}/namespaces/{each}/{resource['name']}") for each in spaces]
        for space, where in places or [("", f"{path}/{resource['name']}")]:
            try:
                for each in self._pages(where):
                    yield {**kind, **each}
            except ApiException as error:
                if error.status != _FORBIDDEN:
                    raise _unanswered(self.told.server, error) from error
                self.told.lacking.append(Lack(name, space))

    def _pages(self, path: str) -> Iterator[dict[str, Any]]:
        """The list's objects. A continuation that the server has forgotten (410) goes on from where it was, as the server offers it."""
        token = ""
        while True:
            page = self._ask(f"{path}?{urlencode({'limit': PAGE, **({'continue': token} if token else {})})}")
            yield from page.get("items") or ()
            token = page.get("metadata", {}).get("continue", "")
            if not token:
                return

    def _get(self, path: str) -> dict[str, Any]:
        try:
            return self._ask(path)
        except ApiException as error:
            if error.status == _NOT_FOUND:
                return {}
            raise _unanswered(self.told.server, error) from error

    def _ask(self, path: str) -> dict[str, Any]:
        headers = {"Accept": "application/json"}
        url = f"{self._client.configuration.host.rstrip('/')}{path}"
        self._client.update_params_for_auth(headers, [], ["BearerToken"], path, "GET", None)
        try:
            answer = self._client.call_api("GET", url, header_params=headers, _request_timeout=SECONDS)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise _unanswered(self.told.server, error) from error
        body = answer.read()
        if answer.status == _GONE:
            told = json.loads(body).get("metadata", {}).get("continue", "")
            if told and "continue=" in path:
                return {"items": [], "metadata": {"continue": told}}
        if answer.status != _OK:
            raise ApiException(status=answer.status, reason=answer.reason)
        return json.loads(body)


def _unanswered(server: str, error: Exception) -> ExplainedError:
    if isinstance(error, ApiException) and error.status in {_UNAUTHORIZED, _FORBIDDEN}:
        why = f"it does not know who asks ({error.status} {error.reason})"
        remedy = "log in to the cluster again, or name another --context."
    else:
        why = " ".join(str(error).split())[:300]
        remedy = "see that the cluster can be reached from here: `kubectl get --raw /version` shows it."
    return ExplainedError(f"the cluster {server} does not answer: {why}.", remedy, exit_code=ExitCode.BAD_USAGE)
