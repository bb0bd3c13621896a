"""What a cluster's API server lists, page by page, with the permissions that the asker lacks."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from kubernetes.client.exceptions import ApiException

from policies.inventory.pod_gpus import POD_MAKERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from infra.kubeconfig import Access

PAGE: Final = 500
"""Objects that are asked for at once, as kubectl does."""

_FORBIDDEN, _NOT_FOUND, _GONE = 403, 404, 410

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

    What the server says is JSON: Any, from here on.
    """

    def __init__(self, access: Access, namespaces: Sequence[str] = ()) -> None:
        self._access = access
        self._namespaces = tuple(namespaces)
        self.told = Listed(access.server, "", namespaces=self._namespaces)

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
                    raise self._access.unanswered(error) from error
                self.told.lacking.append(Lack(name, space))

    def _pages(self, path: str) -> Iterator[dict[str, Any]]:
        """The list's objects. A continuation that the server has forgotten (410) goes on from where it was, as the server offers it."""
        token = ""
        while True:
            try:
                page = self._access.ask("GET", path, query={"limit": str(PAGE), **({"continue": token} if token else {})})
            except ApiException as error:
                offered = json.loads(error.body or "{}").get("metadata", {}).get("continue") if error.status == _GONE else None
                if not offered or not token:
                    raise
                token = offered
                continue
            yield from page.get("items") or ()
            token = page.get("metadata", {}).get("continue", "")
            if not token:
                return

    def _get(self, path: str) -> dict[str, Any]:
        try:
            return self._access.ask("GET", path)
        except ApiException as error:
            if error.status == _NOT_FOUND:
                return {}
            raise self._access.unanswered(error) from error
