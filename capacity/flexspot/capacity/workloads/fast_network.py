"""The network between pods that train together: EFA interfaces on EKS, RDMA cards on GKE, and the configuration of NCCL."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.gke_accelerators import CONTAINER_FOLDER, GIB_FOLDER, gpudirect, rdma_network_names
from flexspot.capacity.catalog.node_labels import EFA_RESOURCE
from flexspot.capacity.catalog.platform import Platform
from flexspot.capacity.values.quantities import count_quantity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flexspot.capacity.plan.model import Plan, PoolPlan
    from flexspot.capacity.workloads.requests import WorkloadRequest

ORDINARY_NETWORK_ANNOTATION = "flexspot.dev/ordinary-network"
"""Explains why pods that train together use TCP although some of their pools have a fast network, and how to get it."""

EFA_VARIABLES = {
    # libfabric silently falls back to another provider where this one does not work.
    "FI_PROVIDER": "efa",
    # Buffers come from ordinary memory. A container has no huge pages unless it requests hugepages-2Mi, and Karpenter creates no node for a
    # pod that does, because it does not know the resource (kubernetes-sigs/karpenter 751, aws/karpenter-provider-aws 3315; v1.14.1 only by
    # NodeOverlays). Huge pages also make fork() fail in PyTorch's data loaders (awslabs/awsome-distributed-ai, EFA cheat sheet).
    "FI_EFA_USE_HUGE_PAGE": "0",
}
"""Variables for libfabric and, through it, the NCCL plugin in the image.

It detects by machine type whether it can read GPU memory directly.
"""

INTERFACES_ANNOTATION, DEFAULT_INTERFACE_ANNOTATION = "networking.gke.io/interfaces", "networking.gke.io/default-interface"
_ORDINARY_INTERFACE = "eth0"
_FIRST_RDMA_INTERFACE = 2
"""eth1 is skipped: the node's second ordinary card carries the node's own traffic. Names as in Google's guides."""


@dataclass(frozen=True)
class FastNetwork:
    """Additions to a pod that uses a fast network. All are empty if it has the ordinary network only."""

    resources: dict[str, str] = field(default_factory=dict[str, str])
    """Devices of the node that the pod requests."""
    variables: dict[str, str] = field(default_factory=dict[str, str])
    """Environment variables."""
    annotations: dict[str, str] = field(default_factory=dict[str, str])
    """Annotations of the pod."""


def interfaces_of(pool: PoolPlan, gpus: int) -> int:
    """Return a pod's share of the fast network cards of its node, in proportion to its GPUs.

    RDMA cards all belong to one pod, which then has all GPUs of the node.
    """
    if pool.rdma_networks:
        return pool.rdma_networks if gpus == pool.gpus_per_node else 0
    return pool.efa_interfaces * gpus // pool.gpus_per_node


def has_fast_network(pool: PoolPlan) -> bool:
    """Return whether the pool's nodes have a fast network."""
    return bool(pool.efa_interfaces or pool.rdma_networks)


def fast_network_hint(plan: Plan, candidates: Sequence[PoolPlan]) -> str:
    """Return the setting that would give these pools a fast network, or the reason why a pool cannot have one."""
    if plan.cloud is not Platform.GKE:
        return "`efa: true`, on EKS"
    facts, hints = gpudirect(), list[str]()
    for pool in candidates:
        machine = pool.machines[0]
        if facts.of(machine):
            hints.append(f"{pool.name}, {machine}, has it with `network: gpudirect`")
        elif why := facts.why_not(machine):
            hints.append(f"{pool.name}, {machine}, cannot: {why}")
    with_it = ", ".join(each.names[0] for each in facts.machines)
    return "; ".join(hints) or f"`network: gpudirect` is for {with_it}"


def fast_network_for(pools: Sequence[PoolPlan], request: WorkloadRequest, *, together: bool) -> FastNetwork:
    """Return the additions that a pod of the request needs on any of the pools."""
    wanted = together if request.fast_network is None else request.fast_network
    interfaces = min((interfaces_of(pool, request.gpus) for pool in pools), default=0) if wanted else 0
    if not interfaces:
        return FastNetwork()
    if all(pool.rdma_networks for pool in pools):
        return _rdma(pools, interfaces)
    return FastNetwork({EFA_RESOURCE: count_quantity(interfaces)}, EFA_VARIABLES)


def _rdma(pools: Sequence[PoolPlan], cards: int) -> FastNetwork:
    facts = gpudirect()
    tuners = {found.tuner for pool in pools if (found := facts.of(pool.machines[0]))}
    rdma = [
        {"interfaceName": f"eth{number}", "network": network}
        for number, network in enumerate(rdma_network_names(cards), _FIRST_RDMA_INTERFACE)
    ]
    interfaces = [{"interfaceName": _ORDINARY_INTERFACE, "network": "default"}, *rdma]
    variables = {
        # Location of the plugin and of the matching NCCL. An image may contain older ones.
        "LD_LIBRARY_PATH": f"{CONTAINER_FOLDER}/lib64",
        "NCCL_SOCKET_IFNAME": _ORDINARY_INTERFACE,
        **facts.variables,
    }
    # Each kind of machine has its own file. A job that may run on two kinds gets none, and NCCL chooses by itself.
    if len(tuners) == 1:
        variables["NCCL_TUNER_CONFIG_PATH"] = f"{CONTAINER_FOLDER}/{GIB_FOLDER}/configs/{tuners.pop()}"
    annotations = {DEFAULT_INTERFACE_ANNOTATION: _ORDINARY_INTERFACE, INTERFACES_ANNOTATION: json.dumps(interfaces)}
    return FastNetwork(variables=variables, annotations=annotations)


def ordinary_network(pools: Sequence[PoolPlan], request: WorkloadRequest, *, together: bool) -> str:
    """Return a note that pods which train together get only TCP although some pools have a fast network.

    Empty where this is not so, or where the request chooses the network itself.
    """
    with_share = [pool.name for pool in pools if interfaces_of(pool, request.gpus)]
    if not together or request.fast_network is not None or not with_share or len(with_share) == len(pools):
        return ""
    others = ", ".join(pool.name for pool in pools if pool.name not in with_share)
    what = "GPUDirect" if any(pool.rdma_networks for pool in pools) else "EFA"
    return f"TCP, because {others} has no {what}; fast_network: true requests {what} and uses only {', '.join(with_share)}"
