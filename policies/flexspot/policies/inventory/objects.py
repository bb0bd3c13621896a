"""Kubernetes objects that rules judge as written, each kind as a class, and PromQL expressions in any object."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, TypeVar

from flexspot.capacity.values.verdict import NOT_APPLICABLE, Outcome, undecided
from flexspot.policies.inventory.views import Inventory, View
from flexspot.policies.metrics import Node, parsed
from flexspot.policies.values.field import UNKNOWN, Field, Tri, Unknown, all_of, any_of

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class KubernetesObject(View):
    """Any Kubernetes object."""

    group: str
    """API group; empty for core."""
    version: str
    """API version without the group."""
    fields: Field
    """The whole object."""

    @property
    def spec(self) -> Field:
        """The desired state."""
        return self.fields.at("spec")

    @property
    def name(self) -> Field:
        """The object's name. Pulumi generates a missing name, which is then not known yet."""
        name = self.fields.at("metadata", "name")
        return Field(UNKNOWN) if name.absent else name

    @property
    def namespace(self) -> str | Unknown:
        """The namespace. The API server uses `default` where none is written."""
        text = self.fields.at("metadata", "namespace").text()
        return text or "default" if text is not UNKNOWN else UNKNOWN

    @property
    def labels(self) -> Field:
        """The object's labels."""
        return self.fields.at("metadata", "labels")


ObjectT = TypeVar("ObjectT", bound=KubernetesObject)


def named(kind: type[ObjectT], name: object, inventory: Inventory) -> tuple[ObjectT, ...]:
    """Return the objects of a kind with this name, in any namespace, and those whose name is not known yet."""
    by_name = inventory.by("name", kind, lambda each: each.name.text())
    return (*(by_name.get(name, ()) if name is not UNKNOWN else ()), *by_name.get(UNKNOWN, ()))


class ClusterQueue(KubernetesObject):
    """Kueue's ClusterQueue, which contains the quota."""


class Cohort(KubernetesObject):
    """Kueue's group of queues that lend to one another. It may have its own quota."""


class LocalQueue(KubernetesObject):
    """Kueue's queue of a namespace, which leads to a ClusterQueue."""


class ResourceFlavor(KubernetesObject):
    """Kueue's name for a kind of nodes."""


class AdmissionCheck(KubernetesObject):
    """A condition in addition to quota that a workload must meet before Kueue admits it."""


class ProvisioningRequestConfig(KubernetesObject):
    """The form of the requests that Kueue sends to a cluster's autoscaler for an AdmissionCheck."""


class KarpenterNodePool(KubernetesObject):
    """Karpenter's NodePool as an object, for any machines. As capacity it is a Pool."""


class NodeClass(KubernetesObject):
    """Karpenter's class of nodes, of any provider: EC2NodeClass, the NodeClass of EKS Auto Mode, KWOKNodeClass."""


class ComputeClassView(KubernetesObject):
    """GKE's class of nodes with an order of capacity to try."""


class ResourceQuota(KubernetesObject):
    """The total that a namespace may request."""


class LimitRange(KubernetesObject):
    """Defaults and maxima of each container, pod or claim of a namespace."""


class PriorityClass(KubernetesObject):
    """A named priority: of pods, or Kueue's own of workloads (WorkloadPriorityClass). Its `value` is next to metadata."""


class PodDisruptionBudget(KubernetesObject):
    """The number of pods of a selection that may be evicted at once. It binds evictions, not a cloud that takes a node."""


class PersistentVolumeClaim(KubernetesObject):
    """A claim on a volume that outlives pods."""


class ProvisioningRequest(KubernetesObject):
    """A request of capacity to a cluster's autoscaler. Kueue writes it for work on queued capacity."""


class Namespace(KubernetesObject):
    """A namespace, for its labels."""


@dataclass(frozen=True)
class KarpenterControllerView(View):
    """An installation of Karpenter."""

    queue_field: str
    """Field for the name of the interruption queue."""
    has_queue: Tri
    """True if the name of an interruption queue is set."""


@dataclass(frozen=True)
class TerminationHandler(View):
    """An installation of AWS's Node Termination Handler."""

    drains: Tri
    """True if it drains nodes that have no mark for it."""
    selector: Field
    """Labels of the nodes that it watches."""


@dataclass(frozen=True)
class KueueConfiguration(View):
    """Kueue's own configuration: its file, or the object that installs it."""

    where: str
    """Path to the configuration of fair sharing."""
    fair_sharing: Tri
    """True if it turns fair sharing on."""
    resources: Field
    """Settings of how workloads' resources are counted."""

    def counts_otherwise(self, resource: str) -> Tri:
        """Return whether it excludes a resource from the count, or counts others in its place.

        A transformation keeps the resource along with its additions, unless its strategy is Replace.
        https://kueue.sigs.k8s.io/docs/reference/kueue-config.v1beta2/#ResourceTransformation (2026-11-26)
        """

        def begins(prefix: Field) -> Tri:
            text = prefix.text()
            return UNKNOWN if text is UNKNOWN else text is not None and resource.startswith(text)

        def replaces(each: Field) -> Tri:
            return all_of([each.at("input").equals(resource), each.at("strategy").equals("Replace")])

        excluded = self.resources.at("excludeResourcePrefixes").parts().any(begins)
        return any_of([excluded, self.resources.at("transformations").parts().any(replaces)])


@dataclass(frozen=True)
class QueryView(View):
    """One expression."""

    where: str
    """Path to the expression."""
    role: str
    """Its purpose, such as `alert GpuIdle`."""
    expression: Field
    templated: bool = False
    """True if a dashboard fills in variables first, so that it may be no PromQL as written."""

    @property
    def described(self) -> str:
        """The expression as messages name it."""
        return f"{self.where} ({self.role})"


@dataclass(frozen=True)
class Exporter(View):
    """A program that exports series: the object that installs it, or the one that configures its scraping."""

    program: str
    labels: Mapping[str, frozenset[str]]
    """Names of added labels by series. Both may end in *."""
    complete: bool
    """False if there may be more labels."""

    def gives(self, series: str, label: str) -> bool:
        """Return whether a label is added to a series."""
        return any(
            fnmatchcase(series, pattern) and any(fnmatchcase(label, each) for each in added) for pattern, added in self.labels.items()
        )


def tree_of(query: QueryView) -> Node | Outcome:
    """Return the expression as a tree, or the outcome of every rule about expressions if it has none."""
    text = query.expression.text()
    if text is UNKNOWN:
        return undecided(f"{query.described} is not known yet")
    tree = parsed(text or "")
    if tree is not None:
        return tree
    if query.templated or not text:
        return NOT_APPLICABLE
    return undecided(f"{query.described} cannot be parsed as PromQL, or is too long to parse")
