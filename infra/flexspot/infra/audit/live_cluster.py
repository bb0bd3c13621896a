"""A live cluster as rules see one: its objects as somebody would have written them, and pools that are no objects of it."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, cast

from flexspot.capacity.catalog.accelerators import RESOURCES
from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.chargeback.queries import EKS_POOL_LABEL
from flexspot.capacity.values.verdict import ObjectIdentity
from flexspot.policies.inventory.node_offer import EC2_NOTICE_SECONDS, NodeOffer
from flexspot.policies.inventory.pod_gpus import POD_MAKERS
from flexspot.policies.inventory.reading import views_of
from flexspot.policies.inventory.reading.source import ObjectSource, pod_places
from flexspot.policies.inventory.views import Ceiling, GpuPool
from flexspot.policies.values.field import UNKNOWN, Field

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from flexspot.infra.audit.cluster_lists import Listed
    from flexspot.infra.audit.nodes import LiveNode
    from flexspot.policies.inventory.views import View


_SERVERS: Final = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid", "deletionTimestamp")

_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"

_DEFAULT_GRACE: Final = 30
"""What the API server writes where a pod says nothing; nobody can tell it from a 30 that somebody wrote.

https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#lifecycle
"""

_ADDED_TOLERATIONS: Final = ("node.kubernetes.io/", *RESOURCES)
"""Keys of the tolerations that the API server adds to pods: DefaultTolerationSeconds, and ExtendedResourceToleration on GKE and EKS."""

MANAGED: Final = ("kube-system", "kube-public", "kube-node-lease", "gke-", "gmp-", "gke-gmp-", "config-management-", "amazon-", "aws-")
"""How the names of namespaces begin whose objects the clouds keep: others cannot fix them."""


def is_managed(namespace: str) -> bool:
    """Whether a namespace is the cloud's."""
    return namespace in MANAGED[:3] or namespace.startswith(MANAGED[3:])


def is_anybodys(written: Mapping[str, Any]) -> bool:
    """Whether somebody declared the object: no other object made it, and its work is not over."""
    metadata = written["metadata"]
    if any(each.get("controller") for each in metadata.get("ownerReferences") or ()) or metadata.get("deletionTimestamp"):
        return False
    status = written.get("status") or {}
    ended = any(each.get("type") in {"Complete", "Failed", "Completed"} and each.get("status") == "True" for each in _conditions(status))
    return not ended and status.get("phase") not in {"Succeeded", "Failed"}


def _conditions(status: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [each for each in status.get("conditions") or () if isinstance(each, dict)]


def as_written(served: Mapping[str, Any]) -> dict[str, Any]:
    """The object without its status, what the server notes of it, and the defaults that would be taken for somebody's choice."""
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
    """The pools as sources that rules are given beside the cluster's objects, and how to read both."""

    _views: dict[str, View] = field(default_factory=dict[str, "View"])
    sources: list[ObjectSource] = field(default_factory=list[ObjectSource])

    def add(self, view: GpuPool) -> None:
        """One pool more."""
        self._views[view.identity.name] = view
        self.sources.append(ObjectSource(view.identity, _LIVE, "", Field(None)))

    def read(self, source: ObjectSource) -> Sequence[View]:
        """What was made here as it was made, and everything else as ever."""
        return [self._views[source.identity.name]] if source.family == _LIVE else views_of(source)


def live_pools(nodes: Iterable[LiveNode], told: Listed) -> LivePools:
    """A pool for each sort of nodes with GPUs that is no object in the cluster, as its nodes are.

    On GKE and EKS there may be others that have no node now, of which the API server knows nothing.
    """
    found = LivePools()
    shown: dict[tuple[str, str], LiveNode] = {}
    for node in nodes:
        if node.gpus > 0 and node.pool[0] != "NodePool" and (node.pool not in shown or not shown[node.pool].units):
            # A node that boots does not offer its GPUs yet.
            shown[node.pool] = node
    for (word, name), node in shown.items():
        found.add(_of_node(f"{word} {name}", node))
    if "-gke." in told.version or "-eks-" in told.version:
        found.add(_without_nodes())
    return found


_NODES: Final = ((Ceiling("its maximum", Ceiling.NODES, UNKNOWN),),)


def _of_node(name: str, node: LiveNode) -> GpuPool:
    """What is not on a node, such as the pool's maximum and whose it is, is said elsewhere: it is a part."""
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
    """A pool of which nothing is known, not even whether there is one."""
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
