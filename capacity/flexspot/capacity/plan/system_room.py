"""Room on the controllers' nodes for what runs there: the cloud's pods and the platform's controllers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.system_pods import STOCK_OUT_WATCH, NodeRoom, SystemPod, node_room, system_pods_of
from flexspot.capacity.settings.cluster import EksMode
from flexspot.capacity.settings.controllers import EksControllers
from flexspot.capacity.settings.platform import EksSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flexspot.capacity.catalog.machines import Machine, Vendor
    from flexspot.capacity.settings.platform import GkeSettings


@dataclass(frozen=True)
class SystemRoom:
    """Nodes of one size, and the pods that run on them."""

    nodes: int
    of_each: NodeRoom
    """Room of one node."""
    pods: tuple[SystemPod, ...]

    def waiting(self, nodes: int) -> list[SystemPod]:
        """Return the pods that do not fit on this many nodes.

        Pods whose copies must not share a node need at most one copy for each node. Each pod goes to the node with the most vCPU left, the
        smallest pods first: this order leaves the largest pods the least room. A pod that fits in it also fits in every order in which the
        real scheduler meets the pods, except for sizes that fit very tightly.
        """
        left = self.of_each.without(each for each in self.pods if each.replicas is None)
        if nodes < 1 or not left.is_there:
            return list(self.pods)
        free = [left] * nodes
        waiting: list[SystemPod] = []
        for pod in sorted((each for each in self.pods if each.replicas is not None), key=_size):
            waiting += _placed(pod, free, nodes)
        return waiting


def _size(pod: SystemPod) -> tuple[int, int]:
    return pod.cpu_milli, pod.memory_mib


def _placed(pod: SystemPod, free: list[NodeRoom], nodes: int) -> list[SystemPod]:
    """Subtract the requests of a pod's copies from `free`, and return the copies that fit nowhere."""
    copies = pod.replicas or 0
    taken: set[int] = set()
    for copy in range(min(copies, nodes) if pod.apart else copies):
        fits = [node for node, left in enumerate(free) if left.without([pod]).is_there and not (pod.apart and node in taken)]
        if not fits:
            return [pod] * (copies - copy)
        node = max(fits, key=lambda each: (free[each].cpu_milli, free[each].memory_mib))
        taken.add(node)
        free[node] = free[node].without([pod])
    return []


def system_room(settings: GkeSettings | EksSettings, cloud: Vendor, machine: Machine) -> SystemRoom:
    """Return the nodes of a platform's system pool and their pods.

    On GKE and in EKS Auto Mode the pool grows to its ceiling. On EKS nothing else scales the group.
    """
    pool = settings.cluster.system_pool
    addons: dict[str, bool] = {}
    auto = isinstance(settings, EksSettings) and settings.cluster.mode is EksMode.AUTO
    if isinstance(settings, EksSettings):
        addons = {**settings.cluster.addons.model_dump(), "efs": settings.storage.has_efs, "lustre": settings.storage.has_lustre}
    clouds = [each for each in system_pods_of(cloud) if (each.addon is None or addons[each.addon]) and (each.in_auto_mode or not auto)]
    pods = (*clouds, *own_pods(settings))
    grows = auto or not isinstance(settings.controllers, EksControllers)
    most = machine.max_pods if isinstance(settings, EksSettings) else settings.network.max_pods_per_node
    return SystemRoom(pool.max_nodes if grows else pool.min_nodes, node_room(cloud, machine, most), pods)


def own_pods(settings: GkeSettings | EksSettings) -> Sequence[SystemPod]:
    """Return the pods of the platform's own controllers, as their components deploy them."""
    sizes = settings.controllers
    pods: list[SystemPod] = []
    if not settings.queueing.existing_kueue:
        size = sizes.kueue
        pods.append(SystemPod(name="kueue", cpu_milli=size.cpu_milli, memory_mib=size.memory_mib, replicas=size.replicas))
    if (sets := sizes.jobset).install:
        pods.append(SystemPod(name="jobset", cpu_milli=sets.cpu_milli, memory_mib=sets.memory_mib, replicas=sets.replicas))
    if settings.queueing.stock_outs.watch:
        pods.append(STOCK_OUT_WATCH)
    if settings.measurement.kube_state_metrics:
        size = sizes.kube_state_metrics
        pods.append(SystemPod(name="kube-state-metrics", cpu_milli=size.cpu_milli, memory_mib=size.memory_mib, replicas=1))
    if isinstance(settings, EksSettings):
        if settings.cluster.mode is not EksMode.AUTO:
            size = settings.controllers.karpenter
            pods.append(
                SystemPod(name="karpenter", cpu_milli=size.cpu_milli, memory_mib=size.memory_mib, replicas=size.replicas, apart=True)
            )
        if (load := settings.controllers.load_balancer_controller).install:
            name = "load-balancer-controller"
            pods.append(SystemPod(name=name, cpu_milli=load.cpu_milli, memory_mib=load.memory_mib, replicas=load.replicas))
    return pods
