"""Lists of a cluster's objects, page by page, with the permissions that are missing for some."""

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
"""Objects per request, as in kubectl."""

_FORBIDDEN, _NOT_FOUND, _GONE = 403, 404, 410

_OTHER_KINDS: Final[Mapping[str, frozenset[str]]] = {
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
"""Kinds, other than those that create pods, that rules read. They include neither Secret nor ConfigMap."""


_NAMESPACE_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
"""https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#dns-label-names"""


def wanted_kinds() -> dict[str, set[str]]:
    """Return the listed kinds by API group: those that rules read and those that create pods."""
    found = {group: set(kinds) for group, kinds in _OTHER_KINDS.items()}
    for group, kind in POD_MAKERS:
        found.setdefault(group, set()).add(kind)
    return found


@dataclass(frozen=True)
class Lack:
    """A list that the caller has no permission for."""

    resource: str
    namespace: str = ""

    def __str__(self) -> str:
        return f"list {self.resource}" + (f" in namespace {self.namespace}" if self.namespace else "")


@dataclass
class ClusterListing:
    """The parts of a cluster that were listed. Where they are not complete, a missing object may exist."""

    server: str
    version: str
    groups: frozenset[str] = frozenset()
    lacking: list[Lack] = field(default_factory=list[Lack])
    namespaces: tuple[str, ...] = ()
    """Requested namespaces. Empty: all."""

    @property
    def complete(self) -> bool:
        """True if all of the cluster was listed."""
        return not self.lacking and not self.namespaces

    def lists_any(self, resource: str) -> bool:
        """Return whether a resource was listed, in all or in the requested namespaces."""
        return all(each.resource != resource for each in self.lacking)

    def lists_all(self, resource: str) -> bool:
        """Return whether a resource was listed in all namespaces."""
        return not self.namespaces and self.lists_any(resource)


class ClusterLists:
    """The lists of one cluster, restricted to `namespaces` if there are any.

    Answers of the server are JSON and therefore typed as Any.
    """

    def __init__(self, access: KubeAccess, namespaces: Sequence[str] = ()) -> None:
        self._access = access
        self._namespaces = tuple(namespaces)
        self.listing = ClusterListing(access.server, "", namespaces=self._namespaces)

    def objects(self) -> Iterator[dict[str, Any]]:
        """Yield every object of the wanted kinds as the server returns it, page by page.

        Records forbidden lists and skips them. Raises ExplainedError for a cluster that does not answer and for an unknown namespace.
        """
        for each in self._namespaces:
            if not _NAMESPACE_NAME.fullmatch(each):
                raise _no_namespace(each, "use lower-case letters, digits and dashes, such as team-alpha.")
        self.listing.version = str(self._get("/version").get("gitVersion", ""))
        groups = {each["name"]: each for each in self._get("/apis").get("groups", [])}
        self.listing.groups = frozenset(groups)
        for group, kinds in sorted(wanted_kinds().items()):
            paths = _paths(groups[group]) if group in groups else () if group else ("/api/v1",)
            for path, resource in self._resources(paths, kinds):
                if (group, resource["kind"]) == ("", "Namespace"):
                    yield from self._checked(self._of_resource(path, resource, group))
                else:
                    yield from self._of_resource(path, resource, group)

    def _resources(self, paths: Sequence[str], kinds: set[str]) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the path and the resource of each kind, from the first version of its group that serves it. Namespaces come first."""
        left = set(kinds)
        for path in paths:
            served = [each for each in self._get(path).get("resources", []) if "/" not in each["name"] and "list" in each["verbs"]]
            there = sorted((each for each in served if each["kind"] in left), key=lambda each: each["kind"] != "Namespace")
            left -= {each["kind"] for each in there}
            yield from ((path, each) for each in there)
            if not left:
                return

    def _checked(self, namespaces: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Yield the namespaces. Raises ExplainedError if a requested one is not among them."""
        listed = list(namespaces)
        names = {each["metadata"]["name"] for each in listed}
        if self.listing.lists_any("namespaces"):
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
                self.listing.lacking.append(Lack(name, space))

    def _pages(self, path: str) -> Iterator[dict[str, Any]]:
        """Yield the objects of a list. If a continuation token has expired (410), go on with the one that the server offers instead."""
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
        """Return a document about the server itself. Empty for a version of a group that is no longer served.

        Raises ExplainedError if another one is missing: then the server is not an API server.
        """
        try:
            answer = self._access.ask("GET", path)
        except ApiException as error:
            if error.status == _NOT_FOUND and path.startswith("/apis/"):
                return {}
            raise self._access.unanswered(error) from error
        if not isinstance(answer, dict):
            raise self._access.unanswered(ValueError(f"its answer at {path} is not that of an API server"))
        return cast("dict[str, Any]", answer)


def _paths(group: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the paths of a group's served versions, the preferred one first."""
    versions = [group["preferredVersion"], *group.get("versions", ())]
    return tuple(dict.fromkeys(f"/apis/{each['groupVersion']}" for each in versions))


def _no_namespace(name: str, remedy: str) -> ExplainedError:
    return ExplainedError(f"--namespace: the cluster has no namespace {name!r}.", remedy, exit_code=ExitCode.BAD_USAGE)
