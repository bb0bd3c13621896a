"""Kubernetes objects that rules judge as they are written, each kind a class of its own, and PromQL expressions wherever they stand."""

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
    """Any object. `group` is its API group ("" for core), `version` what follows it, `fields` the whole object."""

    group: str
    version: str
    fields: Field

    @property
    def spec(self) -> Field:
        """What is asked for."""
        return self.fields.at("spec")

    @property
    def name(self) -> Field:
        """The object's name. Where none is written, Pulumi makes one up that nobody knows yet."""
        name = self.fields.at("metadata", "name")
        return Field(UNKNOWN) if name.absent else name

    @property
    def namespace(self) -> str | Unknown:
        """The namespace; `default` where none is written, as the API server has it."""
        text = self.fields.at("metadata", "namespace").text()
        return text or "default" if text is not UNKNOWN else UNKNOWN

    @property
    def labels(self) -> Field:
        """The object's labels."""
        return self.fields.at("metadata", "labels")


ObjectT = TypeVar("ObjectT", bound=KubernetesObject)


def named(kind: type[ObjectT], name: object, inventory: Inventory) -> tuple[ObjectT, ...]:
    """The objects of a kind with this name, in whatever namespace, and those whose name is not known yet."""
    by_name = inventory.by("name", kind, lambda each: each.name.text())
    return (*(by_name.get(name, ()) if name is not UNKNOWN else ()), *by_name.get(UNKNOWN, ()))


class ClusterQueue(KubernetesObject):
    """Kueue's queue of a cluster, which holds the quota."""


class Cohort(KubernetesObject):
    """Kueue's group of queues that lend to one another; it may hold quota of its own."""


class LocalQueue(KubernetesObject):
    """Kueue's queue of a namespace, which leads to a ClusterQueue."""


class ResourceFlavor(KubernetesObject):
    """Kueue's name for a sort of nodes."""


class AdmissionCheck(KubernetesObject):
    """What a workload must pass, beside quota, before Kueue admits it."""


class ProvisioningRequestConfig(KubernetesObject):
    """What Kueue asks of a cluster's autoscaler for an AdmissionCheck."""


class KarpenterNodePool(KubernetesObject):
    """Karpenter's NodePool as an object, whatever machines it makes; as capacity it is a Pool."""


class NodeClass(KubernetesObject):
    """Karpenter's class of nodes, of any provider: EC2NodeClass, the NodeClass of EKS Auto Mode, KWOKNodeClass."""


class ComputeClassView(KubernetesObject):
    """GKE's class of nodes with an order of capacity to try."""


class ResourceQuota(KubernetesObject):
    """What a namespace may ask for in all."""


class LimitRange(KubernetesObject):
    """What each container, pod or claim of a namespace gets by default and may have at most."""


class PriorityClass(KubernetesObject):
    """A name for a priority: of pods, or Kueue's own of workloads (WorkloadPriorityClass). Its `value` stands beside metadata."""


class PodDisruptionBudget(KubernetesObject):
    """How many pods of a selection may be evicted at once. It binds whoever evicts, and nobody who takes a node."""


class PersistentVolumeClaim(KubernetesObject):
    """A claim on a volume that outlives pods."""


class ProvisioningRequest(KubernetesObject):
    """What is asked of a cluster's autoscaler at once; Kueue writes it for work on queued capacity."""


class Namespace(KubernetesObject):
    """A namespace, for its labels."""


@dataclass(frozen=True)
class KarpenterControllerView(View):
    """An installation of Karpenter. `told` is whether it is given a queue of interruptions, `queue_field` where its name belongs."""

    queue_field: str
    told: Tri


@dataclass(frozen=True)
class TerminationHandler(View):
    """An installation of AWS's Node Termination Handler.

    `drains` is whether it drains nodes that nobody marked for it, and `selector` the labels of the nodes that it watches.
    """

    drains: Tri
    selector: Field


@dataclass(frozen=True)
class KueueConfiguration(View):
    """Kueue's own configuration: its file, or what installs it. `where` is the path to it, `fair_sharing` whether it turns that on.

    `resources` is what it says of how workloads' resources are counted.
    """

    where: str
    fair_sharing: Tri
    resources: Field

    def counts_otherwise(self, resource: str) -> Tri:
        """Whether it leaves a resource out of what it counts, or counts others in its place.

        A transformation keeps the resource beside what it adds, unless its strategy is Replace.
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
    """One expression. `where` is the path to it and `role` what it is there for, such as `alert GpuIdle`.

    `templated`: a dashboard fills in variables before it asks, so that it may be no PromQL as it stands.
    """

    where: str
    role: str
    expression: Field
    templated: bool = False

    @property
    def described(self) -> str:
        """The expression as messages name it."""
        return f"{self.where} ({self.role})"


@dataclass(frozen=True)
class Exporter(View):
    """A program whose series are gathered: the object that installs it, or the one that says how it is scraped.

    `labels` are what that adds to its series: names of labels by series, both of which may end in *. Unless `complete`, there may be more.
    """

    program: str
    labels: Mapping[str, frozenset[str]]
    complete: bool

    def gives(self, series: str, label: str) -> bool:
        """Whether a label is among what is added to a series."""
        return any(
            fnmatchcase(series, pattern) and any(fnmatchcase(label, each) for each in added) for pattern, added in self.labels.items()
        )


def tree_of(query: QueryView) -> Node | Outcome:
    """The expression as a tree, or the outcome of every rule about expressions where it cannot be had."""
    text = query.expression.text()
    if text is UNKNOWN:
        return undecided(f"{query.described} is not known yet")
    tree = parsed(text or "")
    if tree is not None:
        return tree
    if query.templated or not text:
        return NOT_APPLICABLE
    return undecided(f"{query.described} cannot be parsed as PromQL, or is too long to parse")
