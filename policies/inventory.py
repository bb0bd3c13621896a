"""The normalised inventory: pools and pods as rules see them, whichever spelling they were written in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from decimal import Decimal

    from capacity.verdict import ObjectIdentity
    from policies.field import Field
    from policies.unknown import Tri, Unknown


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
class Taint:
    """A taint of a pool's nodes; `effect` in the Kubernetes spelling, NoSchedule for the clouds' NO_SCHEDULE."""

    key: Field
    effect: Field


@dataclass(frozen=True)
class Ceiling:
    """A field that bounds how far capacity grows. `amount` is None where no number is written."""

    NODES: ClassVar[str] = "nodes"
    GPUS: ClassVar[str] = "GPUs"
    CORES: ClassVar[str] = "cores"
    MEMORY: ClassVar[str] = "GB of memory"

    field: str
    unit: str
    amount: Decimal | Unknown | None


Bounds = tuple[tuple[Ceiling, ...], ...]
"""What bounds capacity: every group must hold a finite ceiling, and within a group one is enough."""


@dataclass(frozen=True)
class GpuPool(View):
    """Nodes with NVIDIA GPUs that are made and scaled together: a GKE node pool, an EKS node group, a Karpenter NodePool.

    `evidence` says what shows that it has GPUs. `taints_field` and `effect_spelling` are how this kind of pool writes a taint. Unless
    `taints_complete`, there may be more taints than listed.
    """

    evidence: str
    taints: tuple[Taint, ...]
    taints_complete: bool
    taints_field: str
    effect_spelling: str
    bounds: Bounds


@dataclass(frozen=True)
class NodeAutoProvisioning(View):
    """GKE's making of node pools on demand. It is no pool: GKE itself taints the GPU nodes that it makes; only its ceilings are ours."""

    evidence: str
    bounds: Bounds


@dataclass(frozen=True)
class PodSet(View):
    """The pods that one pod template makes. `pod` is the pod's spec, `where` the path to it; `kind` is of the object."""

    where: str
    kind: str
    namespace: Field
    pod: Field
