"""The normalised inventory: pools and pods as rules see them, whichever spelling they were written in, and all of them together."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from flexspot.capacity.catalog.node_labels import GPU_RESOURCE
from flexspot.policies.inventory.pod_gpus import asks_for_gpus, containers, placed_on_gpus, serve_nodes
from flexspot.policies.values.field import UNKNOWN, Field

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping
    from decimal import Decimal

    from flexspot.capacity.values.verdict import ObjectIdentity
    from flexspot.policies.inventory.node_offer import NodeOffer
    from flexspot.policies.values.field import Parts, Tri, Unknown


@dataclass(frozen=True)
class View:
    """One thing that rules judge. `identity` is of the object it was read from; an object may hold several views.

    `concerned` is whether it is a thing of this sort at all: UNKNOWN for a pool whose machine type nobody knows yet. `partial` views come
    from patches: what they do not say is said elsewhere.
    """

    identity: ObjectIdentity
    concerned: Tri
    partial: bool


@dataclass(frozen=True)
class Ceiling:
    """A field that bounds how far capacity grows. `amount` is None where no number is written.

    `advised` is whether it is what such a pool should have; a pool that has another instead is bounded all the same.
    """

    NODES: ClassVar[str] = "nodes"
    GPUS: ClassVar[str] = "GPUs"
    CORES: ClassVar[str] = "cores"
    MEMORY: ClassVar[str] = "GB of memory"

    field: str
    unit: str
    amount: Decimal | Unknown | None
    advised: bool = True


Bounds = tuple[tuple[Ceiling, ...], ...]
"""What bounds capacity: every group must hold a finite ceiling, and within a group one is enough."""


@dataclass(frozen=True)
class Pool(View):
    """Nodes that are made and scaled together: a GKE node pool, an EKS node group, a Karpenter NodePool.

    `evidence` says what shows that it has GPUs. A taint has `key`, `value` and `effect`, the last in Kubernetes' spelling or in the clouds'
    (NO_SCHEDULE); `taints_field` and `effect_spelling` are how this kind of pool writes one. `offer` is what its nodes are before they
    boot: labels and machines. `spot` is whether the cloud takes its nodes back at will, `notice_seconds` how long their pods then have,
    `gpus` how many GPUs it can have in all (None: no end, or none that can be told), and `node_gpus` the most that one of its nodes has
    (None: not told). `owner_labels` are the labels or tags that say whose it is. `tainted_by` says who taints GPU nodes beside what is
    listed, and when, `tainted_by_cloud` whether that is certain of this pool's. `resources` are what pods ask for its GPUs by: one, but
    where its machines are of several kinds.
    """

    evidence: str
    taints: Parts
    taints_field: str
    effect_spelling: str
    bounds: Bounds
    offer: NodeOffer
    spot: Tri
    spot_field: str
    notice_seconds: Decimal | Unknown | None
    gpus: Decimal | Unknown | None
    owner_labels: Field
    owner_field: str
    tainted_by: str = ""
    tainted_by_cloud: Tri = False
    node_gpus: Decimal | Unknown | None = None
    resources: tuple[str, ...] = (GPU_RESOURCE,)


class GpuPool(Pool):
    """A pool with GPUs, or with accelerators of another kind that rules know."""


@dataclass(frozen=True)
class GkeNodePool(View):
    """A GKE node pool as it is written, alone or inside a cluster: `where` is the path to it, empty or ending in a dot.

    `accelerators_field` is how its kind calls the accelerators of a node.
    """

    where: str
    pool: Field
    accelerators_field: str = "guestAccelerators"


@dataclass(frozen=True)
class NodeAutoProvisioning(View):
    """GKE's making of node pools on demand. It is no pool: GKE itself taints the GPU nodes that it makes; only its ceilings are ours.

    `limits` are the entries that `bounds` were read from, as they are written.
    """

    evidence: str
    bounds: Bounds
    limits: Field


class Autopilot(View):
    """A cluster of GKE's Autopilot: GKE makes every node, and no pool has a ceiling."""


@dataclass(frozen=True)
class PodSet(View):
    """The pods that one pod template makes. `pod` is the pod's spec, `where` the path to it; `kind` is of the object.

    `labels` are those of the object and `template_labels` those of the pods; Kueue reads the queue from `queue_labels`. `job` is the spec
    of the Job that makes the pods, None where no Job does, and `object_spec` that of the object. `annotations` are those of the object, of
    what Kueue reads, and of the pods.
    """

    where: str
    kind: str
    namespace: Field
    pod: Field
    labels: Field
    template_labels: Field
    queue_labels: Field
    job: Field | None
    object_spec: Field
    annotations: tuple[Field, ...]

    @property
    def space(self) -> str | Unknown:
        """The pods' namespace; `default` where none is written, as the API server has it."""
        text = self.namespace.text()
        return text or "default" if text is not UNKNOWN else UNKNOWN

    @cached_property
    def asks_for_gpus(self) -> Tri:
        """What flexspot.policies.inventory.pod_gpus.asks_for_gpus says of the pod: the first question of nearly every rule about pods."""
        return asks_for_gpus(self.pod)

    @cached_property
    def containers(self) -> tuple[tuple[str, Field], ...]:
        """What flexspot.policies.inventory.pod_gpus.containers finds in the pod."""
        return tuple(containers(self.pod))

    @cached_property
    def placed_on_gpus(self) -> tuple[Tri, str]:
        """What flexspot.policies.inventory.pod_gpus.placed_on_gpus says of the pod."""
        return placed_on_gpus(self.pod)

    @cached_property
    def serve_nodes(self) -> bool:
        """Whether the pods may sit on GPU nodes without a GPU."""
        return serve_nodes(self.kind, self.namespace, self.pod)

    @property
    def not_gpu_work(self) -> bool:
        """Whether no rule about GPU work judges the pods; one does if what they request is not known yet."""
        return self.serve_nodes or self.asks_for_gpus is False


ViewT = TypeVar("ViewT", bound=View)
AnswerT = TypeVar("AnswerT")


@dataclass(frozen=True)
class Inventory:
    """The whole input of a run. `closed`: the input is complete, so what is not in it does not exist.

    `excerpt`: it is what a page shows, which proves of no object that it is nowhere, whatever else of its kind the page shows.
    """

    views: tuple[View, ...]
    closed: bool = False
    excerpt: bool = False
    _found: dict[type[View], tuple[View, ...]] = field(default_factory=dict[type[View], tuple[View, ...]], compare=False, repr=False)
    _answers: dict[tuple[str, Hashable], Any] = field(default_factory=dict[tuple[str, "Hashable"], Any], compare=False, repr=False)

    def of(self, kind: type[ViewT]) -> tuple[ViewT, ...]:
        """The views of one kind, those of its subclasses included."""
        if kind not in self._found:
            self._found[kind] = tuple(view for view in self.views if isinstance(view, kind))
        return cast("tuple[ViewT, ...]", self._found[kind])

    def once(self, question: str, about: View | Hashable, answer: Callable[[], AnswerT]) -> AnswerT:
        """The answer to a question that several rules ask about one view, or about everything (None), worked out the first time.

        `about` may also be what many views have in common, such as what they select nodes by: then they share the answer.
        """
        key = question, id(about) if isinstance(about, View) else about
        if key not in self._answers:
            self._answers[key] = answer()
        return self._answers[key]

    def by(self, question: str, kind: type[ViewT], key: Callable[[ViewT], object]) -> Mapping[Any, list[ViewT]]:
        """The views of one kind by what `key` says of each, sorted out when the question is asked for the first time."""

        def sorted_out() -> Mapping[Any, list[ViewT]]:
            found: dict[Any, list[ViewT]] = {}
            for each in self.of(kind):
                found.setdefault(key(each), []).append(each)
            return found

        return self.once(question, kind, sorted_out)

    def tells(self, *kinds: type[View]) -> bool:
        """Whether a missing object can be held against anyone: there are objects of one of these kinds, or the input is closed."""
        return self.closed or (not self.excerpt and any(self.of(kind) for kind in kinds))
