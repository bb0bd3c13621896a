"""A live cluster: its objects as rules see them, its nodes with their pods, and money spent on idle or too expensive nodes."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, cast

from flexspot.capacity.catalog.accelerators import (
    ACCELERATORS,
    RESOURCES,
    Accelerator,
    kind_of_resource,
    of_ec2_machine,
    of_gce_machine,
    series_value,
)
from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.machines import Vendor
from flexspot.capacity.catalog.node_labels import CAPACITY_TAINT, CAPACITY_TYPE_LABEL, GKE_POOL_LABEL, GKE_SPOT_LABEL, KARPENTER_POOL_LABEL
from flexspot.capacity.catalog.price_book import HOURS_OF_A_MONTH, PriceBook, prices_of
from flexspot.capacity.chargeback.nodes import NodeFacts, cloud_of, gpus_of_node, node_facts
from flexspot.capacity.chargeback.queries import EKS_POOL_LABEL, label_of
from flexspot.capacity.values.quantities import quantity
from flexspot.capacity.values.verdict import ObjectIdentity
from flexspot.infra.audit import NEW_MINUTES
from flexspot.policies.inventory.node_offer import EC2_NOTICE_SECONDS, NodeOffer
from flexspot.policies.inventory.pod_gpus import POD_MAKERS, requests_gpus, serve_nodes
from flexspot.policies.inventory.reading import views_of
from flexspot.policies.inventory.reading.source import ObjectSource, pod_places
from flexspot.policies.inventory.views import Ceiling, GpuPool
from flexspot.policies.pods.scheduling_options import KEEPS_AWAY, tolerates
from flexspot.policies.values.field import UNKNOWN, Field

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from flexspot.infra.audit.cluster_lists import ClusterListing
    from flexspot.policies.inventory.views import View


_SERVERS: Final = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid", "deletionTimestamp")

_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"

_DEFAULT_GRACE: Final = 30
"""Default of terminationGracePeriodSeconds that the API server writes. It cannot be distinguished from a 30 that a user wrote.

https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#lifecycle
"""

_ADDED_TOLERATIONS: Final = ("node.kubernetes.io/", *RESOURCES)
"""Prefixes of keys of tolerations that the API server adds to pods.

The plugins are DefaultTolerationSeconds, and ExtendedResourceToleration on GKE and EKS.
"""

MANAGED: Final = ("kube-system", "kube-public", "kube-node-lease", "gke-", "gmp-", "gke-gmp-", "config-management-", "amazon-", "aws-")
"""Names (the first three) and prefixes of namespaces that the clouds manage. Users cannot fix the objects in them."""


def is_managed(namespace: str) -> bool:
    """Return whether the cloud manages a namespace."""
    return namespace in MANAGED[:3] or namespace.startswith(MANAGED[3:])


def is_declared(written: Mapping[str, Any]) -> bool:
    """Return whether a user declared the object: it has no controller, is not being deleted and has not finished."""
    metadata = written["metadata"]
    if any(each.get("controller") for each in metadata.get("ownerReferences") or ()) or metadata.get("deletionTimestamp"):
        return False
    status = written.get("status") or {}
    ended = any(each.get("type") in {"Complete", "Failed", "Completed"} and each.get("status") == "True" for each in _conditions(status))
    return not ended and status.get("phase") not in {"Succeeded", "Failed"}


def _conditions(status: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [each for each in status.get("conditions") or () if isinstance(each, dict)]


def as_written(served: Mapping[str, Any]) -> dict[str, Any]:
    """Return the object without its status, the server's metadata, and the defaults that would look like a user's choice."""
    written = {key: copy.deepcopy(each) for key, each in served.items() if key != "status"}
    metadata = {key: each for key, each in written["metadata"].items() if key not in _SERVERS}
    if _APPLIED in (metadata.get("annotations") or {}):
        metadata["annotations"] = {key: each for key, each in metadata["annotations"].items() if key != _APPLIED}
    written["metadata"] = metadata
    for pod in _pods(written):
        if pod.get("terminationGracePeriodSeconds") == _DEFAULT_GRACE:
            del pod["terminationGracePeriodSeconds"]
        if written["kind"] == "Pod" and pod.get("tolerations"):
            pod["tolerations"] = [each for each in pod["tolerations"] if not str(each.get("key", "")).startswith(_ADDED_TOLERATIONS)]
    return written


def _pods(written: dict[str, Any]) -> Iterator[dict[str, Any]]:
    group = written["apiVersion"].rpartition("/")[0]
    maker = POD_MAKERS.get((group, written["kind"]))
    for path in maker.paths if maker else ():
        for _, pod, _, _ in pod_places(Field(written), path.split(".")):
            if isinstance(pod.value, dict):
                yield cast("dict[str, Any]", pod.value)


_LIVE: Final = "flexspot.dev/live"


@dataclass
class LivePools:
    """Pools that are not objects in the cluster, as further sources for the rules."""

    _views: dict[str, View] = field(default_factory=dict[str, "View"])
    sources: list[ObjectSource] = field(default_factory=list[ObjectSource])

    def add(self, view: GpuPool) -> None:
        """Add a pool."""
        self._views[view.identity.name] = view
        self.sources.append(ObjectSource(view.identity, _LIVE, "", Field(None)))

    def read(self, source: ObjectSource) -> Sequence[View]:
        """Return the views of a source: the pool that was added here, or those of an object in the cluster."""
        return [self._views[source.identity.name]] if source.family == _LIVE else views_of(source)


def live_pools(nodes: Iterable[LiveNode], listing: ClusterListing) -> LivePools:
    """Return the pools of nodes with GPUs that have no object in the cluster, derived from their nodes.

    On GKE and EKS there may be more pools: the API server does not know those without nodes.
    """
    found = LivePools()
    shown: dict[tuple[str, str], LiveNode] = {}
    for node in nodes:
        if node.gpus > 0 and node.pool[0] != "NodePool" and (node.pool not in shown or not shown[node.pool].units):
            # Prefer a node that offers its GPUs: a booting one does not do so yet.
            shown[node.pool] = node
    for (word, name), node in shown.items():
        found.add(_of_node(f"{word} {name}", node))
    if "-gke." in listing.version or "-eks-" in listing.version:
        found.add(_without_nodes())
    return found


_NODES: Final = ((Ceiling("its maximum", Ceiling.NODES, UNKNOWN),),)


def _of_node(name: str, node: LiveNode) -> GpuPool:
    """Return a partial view of a pool: its maximum and its owner, for example, cannot be read from a node."""
    labels = {key: Field(value) for key, value in node.labels.items() if key != "kubernetes.io/hostname"}
    capacity_type = node.facts.capacity_type
    kinds = {kind.resource: node.units.get(kind.resource, Decimal(0)) for kind in node.kinds}
    return GpuPool(
        identity=ObjectIdentity(_LIVE, "", name),
        concerned=True,
        partial=True,
        evidence="its nodes",
        taints=Field(node.lasting_taints).parts(),
        taints_field="its taints",
        effect_spelling="NoSchedule",
        bounds=_NODES,
        offer=NodeOffer(fixed=labels),
        spot=UNKNOWN if capacity_type is None else capacity_type is CapacityType.SPOT,
        spot_field="its nodes' labels",
        notice_seconds=Decimal(EC2_NOTICE_SECONDS) if EKS_POOL_LABEL in labels else UNKNOWN,
        gpus=UNKNOWN,
        owner_labels=Field(UNKNOWN),
        owner_field="",
        node_gpus=max(kinds.values()) if node.units else UNKNOWN,
        resources=tuple(kinds),
    )


def _without_nodes() -> GpuPool:
    """Return a pool that may or may not exist, with all facts unknown."""
    return GpuPool(
        identity=ObjectIdentity(_LIVE, "", "pools without nodes"),
        concerned=UNKNOWN,
        partial=True,
        evidence="",
        taints=Field(UNKNOWN).parts(),
        taints_field="",
        effect_spelling="NoSchedule",
        bounds=_NODES,
        offer=NodeOffer(fixed={}, complete=False),
        spot=UNKNOWN,
        spot_field="",
        notice_seconds=UNKNOWN,
        gpus=UNKNOWN,
        owner_labels=Field(UNKNOWN),
        owner_field="",
        node_gpus=UNKNOWN,
        resources=RESOURCES,
    )


_POOLS: Final = {KARPENTER_POOL_LABEL: "NodePool", GKE_POOL_LABEL: "node pool", EKS_POOL_LABEL: "node group"}

_OF_STATE: Final = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "karpenter.sh/", "ToBeDeletedByClusterAutoscaler")
"""Prefixes of taints that controllers set while a node is not ready, is cordoned or is being removed."""

_ENDED: Final = frozenset({"Succeeded", "Failed"})

NEW: Final = timedelta(minutes=NEW_MINUTES)


@dataclass
class LivePod:
    """A pod on a node."""

    name: str
    namespace: str
    gpus: bool
    """True if it requests GPUs."""
    exempt: bool
    """True if it may run on GPU nodes without using GPUs, as static pods and node agents do."""
    tolerations: list[dict[str, Any]]


@dataclass
class LiveNode:
    """A node with its pods."""

    name: str
    labels: Mapping[str, str]
    facts: NodeFacts
    """As in chargeback."""
    taints: list[dict[str, Any]]
    gpus: Fraction
    """As in chargeback."""
    units: Mapping[str, Decimal]
    """Devices that pods can request, by resource. They exceed `gpus` where GPUs are shared or partitioned."""
    created: datetime
    pods: list[LivePod] = field(default_factory=list[LivePod])

    @property
    def pool(self) -> tuple[str, str]:
        """The kind and the name of its pool. "node" and its own name if it is in none."""
        found = next(((word, self.labels[label]) for label, word in _POOLS.items() if label in self.labels), None)
        return found or ("node", self.name)

    @property
    def kinds(self) -> tuple[Accelerator, ...]:
        """The accelerators that it offers, or that of its machine while it boots."""
        offered = {kind for key in self.units if (kind := kind_of_resource(key))} or {self._of_its_machine}
        return tuple(kind for kind in ACCELERATORS if kind in offered)

    @property
    def _of_its_machine(self) -> Accelerator:
        # Names of EC2 machines contain a dot. Those of Compute Engine do not.
        name = self.facts.machine
        return of_ec2_machine(name) if "." in name else of_gce_machine(name)

    @property
    def lasting_taints(self) -> list[dict[str, Any]]:
        """The taints without those that come and go with the node's state."""
        return [taint for taint in self.taints if not str(taint.get("key", "")).startswith(_OF_STATE)]

    def keeps_away(self) -> bool:
        """Return whether a taint repels pods without a toleration."""
        return any(taint.get("effect") in KEEPS_AWAY for taint in self.lasting_taints)

    def usd_per_month(self, capacity_type: CapacityType | None, books: Mapping[Vendor, PriceBook]) -> Decimal | None:
        """Return its monthly cost as the given capacity type. None if the capacity type or its price is not known."""
        cloud = cloud_of(self.facts.machine)
        if cloud is None or capacity_type is None:
            return None
        price = books[cloud].paid(self.facts.machine, self.facts.region, capacity_type, self.pool[1])
        return None if price is None else price.usd_per_hour * HOURS_OF_A_MONTH


class Occupancy:
    """All nodes with their pods, gathered while the cluster is listed."""

    def __init__(self) -> None:
        self.nodes: dict[str, LiveNode] = {}
        self._pods: dict[str, list[LivePod]] = {}
        self.pods = 0

    def add_node(self, written: Mapping[str, Any]) -> None:
        """Add a node as the API server returns it."""
        metadata, spec, status = written["metadata"], written.get("spec", {}), written.get("status", {})
        created = datetime.fromisoformat(metadata["creationTimestamp"])
        labels, taints = metadata.get("labels") or {}, spec.get("taints") or []
        facts = node_facts({label_of(key): value for key, value in labels.items()})
        units = _units({**status.get("capacity", {}), **status.get("allocatable", {})})
        gpus = gpus_of_node(facts.catalogued, {series_value(key): float(amount) for key, amount in units.items()}) if units else Fraction(0)
        name = metadata["name"]
        self.nodes[name] = LiveNode(name, labels, facts, taints, gpus, units, created)

    def add_pod(self, written: Mapping[str, Any]) -> None:
        """Add a pod as the API server returns it, with or without a controller."""
        self.pods += 1
        spec, metadata = written.get("spec", {}), written["metadata"]
        node = spec.get("nodeName")
        if not node or written.get("status", {}).get("phase") in _ENDED:
            return
        pod, owners = Field(spec), metadata.get("ownerReferences") or []
        kind = next((each["kind"] for each in owners if each.get("controller")), "Pod")
        exempt = kind == "Node" or serve_nodes(kind, Field(metadata.get("namespace")), pod)
        kept = LivePod(metadata["name"], metadata.get("namespace", ""), requests_gpus(pod) is True, exempt, spec.get("tolerations") or [])
        self._pods.setdefault(node, []).append(kept)

    def settled(self) -> list[LiveNode]:
        """Return the nodes with their pods, sorted by name."""
        for name, node in self.nodes.items():
            node.pods = self._pods.get(name, [])
        return [self.nodes[name] for name in sorted(self.nodes)]


def _units(amounts: Mapping[str, Any]) -> dict[str, Decimal]:
    """Return a node's devices and partitions by resource. Further names of the same devices are omitted."""
    found = {key: quantity(str(amount)) for key, amount in amounts.items() if kind_of_resource(key)}
    return {key: amount for key, amount in found.items() if amount}


@dataclass(frozen=True)
class Waste:
    """A problem of the nodes of one pool that wastes money."""

    rule: str
    pool: tuple[str, str]
    nodes: tuple[str, ...]
    message: str
    remedy: str
    usd_per_month: Decimal | None
    """Avoidable cost. None if not known."""


IDLE, UNTAINTED, DEAR = "idle-gpu-nodes", "untainted-gpu-nodes", "on-demand-where-spot-would-do"

SPOT_TAINTS: Final = ((CAPACITY_TAINT, "spot"), (GKE_SPOT_LABEL, "true"), (CAPACITY_TYPE_LABEL, "spot"))
"""Taints of Spot nodes in the forms that pools use. Pods that tolerate one may run on Spot."""


def shipped_prices() -> dict[Vendor, PriceBook]:
    """Return the price books of both clouds."""
    return {cloud: prices_of(cloud) for cloud in Vendor}


def waste_of(
    nodes: Iterable[LiveNode],
    books: Mapping[Vendor, PriceBook],
    *,
    pods_known: bool,
    idle_after: timedelta = NEW,
    now: datetime | None = None,
) -> list[Waste]:
    """Return wasted money and its causes, by pool. Idle nodes are only found if all pods were listed (`pods_known`)."""
    settled_since = (now or datetime.now(tz=UTC)) - idle_after if pods_known else None
    pools: dict[tuple[str, str], list[LiveNode]] = {}
    for node in nodes:
        if node.gpus > 0:
            pools.setdefault(node.pool, []).append(node)
    return [found for pool, of_pool in pools.items() for found in _of_pool(pool, of_pool, books, settled_since)]


def _of_pool(pool: tuple[str, str], nodes: list[LiveNode], books: Mapping[Vendor, PriceBook], since: datetime | None) -> Iterable[Waste]:
    settled = [node for node in nodes if since is not None and node.created <= since]
    idle = [node for node in settled if not any(pod.gpus for pod in node.pods)]
    if idle:
        kept_by = sorted({f"{pod.namespace}/{pod.name}" for node in idle for pod in node.pods if not pod.exempt})
        held = f"; pods without GPUs keep them: {_some(kept_by)}" if kept_by else ""
        remedy = (
            "move these pods to nodes without GPUs, and taint the pool so that none come back"
            if kept_by
            else "let the pool scale to zero when it is empty: a minimum of 0 nodes, and consolidation when empty"
        )
        message = f"{len(idle)} of {len(nodes)} nodes have no pod that holds a GPU{held}"
        yield Waste(IDLE, pool, _names(idle), message, remedy, _sum(node.usd_per_month(node.facts.capacity_type, books) for node in idle))
    # A Karpenter NodePool is an object and is checked by gpu-pool-without-taint.
    untainted = [node for node in nodes if not node.keeps_away()] if pool[0] != "NodePool" else []
    if untainted:
        plain = sum(not pod.gpus and not pod.exempt for node in untainted for pod in node.pods)
        held = f"; {plain} pods without GPUs are on them" if since is not None else ""
        message = f"{len(untainted)} of {len(nodes)} nodes have no taint that keeps other pods off{held}"
        yield Waste(UNTAINTED, pool, _names(untainted), message, f"taint the pool: {_taint_key(untainted[0])}=present:NoSchedule", None)
    dear = [node for node in settled if _would_do_on_spot(node)]
    if dear:
        saved = _sum(_difference(node, books) for node in dear)
        message = f"{len(dear)} of {len(nodes)} nodes are on demand, but all work on them tolerates Spot"
        yield Waste(DEAR, pool, _names(dear), message, "let this work select Spot first, with on-demand as its fallback", saved)


def _taint_key(node: LiveNode) -> str:
    """Return the key of its devices' taint. Kubernetes itself adds the toleration to pods that request these devices."""
    return node.kinds[0].taint_key


def _would_do_on_spot(node: LiveNode) -> bool:
    working = [pod for pod in node.pods if pod.gpus]
    return node.facts.capacity_type is CapacityType.ON_DEMAND and bool(working) and all(map(_tolerates_spot, working))


def _tolerates_spot(pod: LivePod) -> bool:
    """Return whether a toleration names Spot. One that tolerates everything does not count."""
    named = [Field(each) for each in pod.tolerations if each.get("key")]
    taints = [Field({"key": key, "value": value, "effect": "NoSchedule"}) for key, value in SPOT_TAINTS]
    return any(tolerates(each, taint) is True for each in named for taint in taints)


def _difference(node: LiveNode, books: Mapping[Vendor, PriceBook]) -> Decimal | None:
    dear, cheap = (node.usd_per_month(each, books) for each in (CapacityType.ON_DEMAND, CapacityType.SPOT))
    return None if dear is None or cheap is None else max(dear - cheap, Decimal(0))


def _sum(amounts: Iterable[Decimal | None]) -> Decimal | None:
    listed = list(amounts)
    return None if None in listed else sum((each for each in listed if each is not None), Decimal(0))


def _names(nodes: Iterable[LiveNode]) -> tuple[str, ...]:
    return tuple(node.name for node in nodes)


_LISTED: Final = 5


def _some(names: list[str]) -> str:
    return ", ".join(names[:_LISTED]) + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")
