"""What a cluster's API server lists, page by page, with the permissions that the asker lacks."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from kubernetes.client.exceptions import ApiException

from flexspot.capacity.values.errors import ExitCode, ExplainedError, nearest
from flexspot.policies.inventory.pod_gpus import POD_MAKERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from flexspot.infra.kubeconfig import KubeAccess

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


_NAMESPACE_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
"""https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#dns-label-names"""


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

    def lists_any(self, resource: str) -> bool:
        """Whether a resource was listed, of all namespaces or of those that were asked for."""
        return all(each.resource != resource for each in self.lacking)

    def lists_all(self, resource: str) -> bool:
        """Whether all of a resource was listed."""
        return not self.namespaces and self.lists_any(resource)


class ClusterLists:
    """The lists of one cluster. `namespaces`: of these alone; of all where there are none.

    What the server says is JSON: Any, from here on.
    """

    def __init__(self, access: KubeAccess, namespaces: Sequence[str] = ()) -> None:
        self._access = access
        self._namespaces = tuple(namespaces)
        self.told = Listed(access.server, "", namespaces=self._namespaces)

    def objects(self) -> Iterator[dict[str, Any]]:
        """Every object of the kinds that are wanted, as it is served, one page after the other.

        A list that the asker may not have is noted, and passed over. Raises ExplainedError for a cluster that does not answer, and for a
        namespace that is not there.
        """
        for each in self._namespaces:
            if not _NAMESPACE_NAME.fullmatch(each):
                raise _no_namespace(each, "allowed: lower-case letters, digits and dashes, such as team-alpha.")
        self.told.version = str(self._get("/version").get("gitVersion", ""))
        groups = {each["name"]: each for each in self._get("/apis").get("groups", [])}
        self.told.groups = frozenset(groups)
        for group, kinds in sorted(wanted_kinds().items()):
            paths = _paths(groups[group]) if group in groups else () if group else ("/api/v1",)
            for path, resource in self._resources(paths, kinds):
                if (group, resource["kind"]) == ("", "Namespace"):
                    yield from self._checked(self._of_resource(path, resource, group))
                else:
                    yield from self._of_resource(path, resource, group)

    def _resources(self, paths: Sequence[str], kinds: set[str]) -> Iterator[tuple[str, dict[str, Any]]]:
        """Each kind of a group in the first of its versions that has it, the namespaces before all else."""
        left = set(kinds)
        for path in paths:
            served = [each for each in self._get(path).get("resources", []) if "/" not in each["name"] and "list" in each["verbs"]]
            there = sorted((each for each in served if each["kind"] in left), key=lambda each: each["kind"] != "Namespace")
            left -= {each["kind"] for each in there}
            yield from ((path, each) for each in there)
            if not left:
                return

    def _checked(self, namespaces: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """The namespaces, unless one that was asked for is not among all that there are."""
        listed = list(namespaces)
        names = {each["metadata"]["name"] for each in listed}
        if self.told.lists_any("namespaces"):
            for each in self._namespaces:
                if each not in names:
                    raise _no_namespace(each, f"{nearest(each, sorted(names))}.")
        yield from listed

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
        """What the server says of itself. A version of a group that went away since has nothing; what lacks the others is no API server."""
        try:
            told = self._access.ask("GET", path)
        except ApiException as error:
            if error.status == _NOT_FOUND and path.startswith("/apis/"):
                return {}
            raise self._access.unanswered(error) from error
        if not isinstance(told, dict):
            raise self._access.unanswered(ValueError(f"its answer at {path} is not that of an API server"))
        return cast("dict[str, Any]", told)


def _paths(group: Mapping[str, Any]) -> tuple[str, ...]:
    """The paths of a group's versions that are served, the preferred one first."""
    versions = [group["preferredVersion"], *group.get("versions", ())]
    return tuple(dict.fromkeys(f"/apis/{each['groupVersion']}" for each in versions))


def _no_namespace(name: str, remedy: str) -> ExplainedError:
    return ExplainedError(f"--namespace {name!r}: the cluster has no such namespace.", remedy, exit_code=ExitCode.BAD_USAGE)
