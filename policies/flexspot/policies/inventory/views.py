"""The normalised inventory: pools and pods as rules see them, whatever their spelling, and all of them together."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from flexspot.capacity.catalog.node_labels import GPU_RESOURCE
from flexspot.policies.inventory.pod_gpus import containers, placed_on_gpus, requests_gpus, serve_nodes
from flexspot.policies.values.field import UNKNOWN, Field

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping
    from decimal import Decimal

    from flexspot.capacity.values.verdict import ObjectIdentity
    from flexspot.policies.inventory.node_offer import NodeOffer
    from flexspot.policies.values.field import Parts, Tri, Unknown


@dataclass(frozen=True)
class View:
    """One thing that rules judge. An object may have several views."""

    identity: ObjectIdentity
    """The object from which it was read."""
    concerned: Tri
    """True if it is of this kind; UNKNOWN for a pool whose machine type is not known yet."""
    partial: bool
    """True for the view of a patch, which contains only a part of an object."""


@dataclass(frozen=True)
class Ceiling:
    """A field that bounds how far capacity grows."""

    NODES: ClassVar[str] = "nodes"
    GPUS: ClassVar[str] = "GPUs"
    CORES: ClassVar[str] = "cores"
    MEMORY: ClassVar[str] = "GB of memory"

    field: str
    unit: str
    amount: Decimal | Unknown | None
    """None if no number is written."""
    advised: bool = True
    """True if such a pool should have it. Another ceiling bounds a pool as well."""


Bounds = tuple[tuple[Ceiling, ...], ...]
"""Bounds of capacity: every group must contain a finite ceiling, and one per group is enough."""


@dataclass(frozen=True)
class Pool(View):
    """Nodes that are created and scaled together: a GKE node pool, an EKS node group, a Karpenter NodePool."""

    evidence: str
    """The field that shows that it has GPUs."""
    taints: Parts
    """Taints with `key`, `value` and `effect`. Effects are spelled as in Kubernetes or as in the clouds (NO_SCHEDULE)."""
    taints_field: str
    """Field for taints in this kind of pool."""
    effect_spelling: str
    """Spelling of the effect in this kind of pool."""
    bounds: Bounds
    offer: NodeOffer
    """Labels and machines of its nodes before they boot."""
    spot: Tri
    """True if the cloud may reclaim its nodes at any time."""
    spot_field: str
    notice_seconds: Decimal | Unknown | None
    """Seconds that pods have when a node is reclaimed."""
    gpus: Decimal | Unknown | None
    """The most GPUs that it can have. None if unbounded or not certain."""
    owner_labels: Field
    """Labels or tags that name its owner."""
    owner_field: str
    tainted_by: str = ""
    """Sentence about another creator of taints, in addition to the listed ones, and its condition."""
    tainted_by_cloud: Tri = False
    """True if that creator certainly taints this pool."""
    node_gpus: Decimal | Unknown | None = None
    """The most GPUs of one node. None if not certain."""
    resources: tuple[str, ...] = (GPU_RESOURCE,)
    """Resources that pods request for its GPUs: several only if its machines are of several kinds."""


class GpuPool(Pool):
    """A pool with GPUs, or with other accelerators that rules know."""


@dataclass(frozen=True)
class GkeNodePool(View):
    """A GKE node pool as written, alone or inside a cluster."""

    where: str
    """Path to it, empty or ending in a dot."""
    pool: Field
    accelerators_field: str = "guestAccelerators"
    """Name of the accelerators' field in its kind."""


@dataclass(frozen=True)
class NodeAutoProvisioning(View):
    """Node auto-provisioning of GKE. It is not a pool: GKE taints the GPU nodes that it creates, and rules judge only its ceilings."""

    evidence: str
    bounds: Bounds
    limits: Field
    """The entries of `bounds` as written."""


class Autopilot(View):
    """A cluster of GKE's Autopilot: GKE creates every node, and no pool has a ceiling."""


@dataclass(frozen=True)
class PodSet(View):
    """The pods of one pod template."""

    where: str
    """Path to the pod's spec."""
    kind: str
    """Kind of the object."""
    namespace: Field
    pod: Field
    """The pod's spec."""
    labels: Field
    """Labels of the object."""
    template_labels: Field
    """Labels of the pods."""
    queue_labels: Field
    """Labels from which Kueue reads the queue."""
    job: Field | None
    """Spec of the Job that creates the pods, or None."""
    object_spec: Field
    """Spec of the object."""
    annotations: tuple[Field, ...]
    """Annotations of the object, of the metadata that Kueue reads, and of the pods."""

    @property
    def space(self) -> str | Unknown:
        """The pods' namespace. The API server uses `default` where none is written."""
        text = self.namespace.text()
        return text or "default" if text is not UNKNOWN else UNKNOWN

    @cached_property
    def requests_gpus(self) -> Tri:
        """True if the pod requests GPUs: the first test of nearly every rule about pods."""
        return requests_gpus(self.pod)

    @cached_property
    def containers(self) -> tuple[tuple[str, Field], ...]:
        """The pod's containers, with their names for a sentence."""
        return tuple(containers(self.pod))

    @cached_property
    def placed_on_gpus(self) -> tuple[Tri, str]:
        """True if the pod can run only on GPU nodes, and the field that shows it."""
        return placed_on_gpus(self.pod)

    @cached_property
    def serve_nodes(self) -> bool:
        """True if the pods may run on GPU nodes without a GPU."""
        return serve_nodes(self.kind, self.namespace, self.pod)

    @property
    def not_gpu_work(self) -> bool:
        """True if no rule about GPU work judges the pods. Unknown requests are judged."""
        return self.serve_nodes or self.requests_gpus is False


ViewT = TypeVar("ViewT", bound=View)
AnswerT = TypeVar("AnswerT")


@dataclass(frozen=True)
class Inventory:
    """The whole input of a run."""

    views: tuple[View, ...]
    closed: bool = False
    """True if the input is complete, so that other objects do not exist."""
    excerpt: bool = False
    """True if a page shows the input. A page never proves that an object does not exist."""
    _found: dict[type[View], tuple[View, ...]] = field(default_factory=dict[type[View], tuple[View, ...]], compare=False, repr=False)
    _answers: dict[tuple[str, Hashable], Any] = field(default_factory=dict[tuple[str, "Hashable"], Any], compare=False, repr=False)

    def of(self, kind: type[ViewT]) -> tuple[ViewT, ...]:
        """Return the views of one kind, including its subclasses."""
        if kind not in self._found:
            self._found[kind] = tuple(view for view in self.views if isinstance(view, kind))
        return cast("tuple[ViewT, ...]", self._found[kind])

    def once(self, question: str, about: View | Hashable, answer: Callable[[], AnswerT]) -> AnswerT:
        """Return an answer that several rules use about one view, or about everything (None). It is calculated on first use.

        `about` may also be a common property of many views, such as their node selector. Then they share the answer.
        """
        key = question, id(about) if isinstance(about, View) else about
        if key not in self._answers:
            self._answers[key] = answer()
        return self._answers[key]

    def by(self, question: str, kind: type[ViewT], key: Callable[[ViewT], object]) -> Mapping[Any, list[ViewT]]:
        """Return the views of one kind grouped by `key`. They are grouped on first use."""

        def sorted_out() -> Mapping[Any, list[ViewT]]:
            found: dict[Any, list[ViewT]] = {}
            for each in self.of(kind):
                found.setdefault(key(each), []).append(each)
            return found

        return self.once(question, kind, sorted_out)

    def can_judge_missing(self, *kinds: type[View]) -> bool:
        """Return whether a missing object counts as a violation: objects of one of these kinds exist, or the input is closed."""
        return self.closed or (not self.excerpt and any(self.of(kind) for kind in kinds))
