"""The network between pods that train together: EFA interfaces on EKS, cards for RDMA on GKE, and what NCCL is told of them."""

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
"""On work whose pods train together over TCP although some of its pools have a fast network: which, and how to have it."""

EFA_VARIABLES = {
    # libfabric would take another provider without a word where this one does not work.
    "FI_PROVIDER": "efa",
    # Its buffers from ordinary memory. A container has no huge pages unless it asks for hugepages-2Mi, and for a pod that does Karpenter
    # makes no node: it knows no such resource (kubernetes-sigs/karpenter 751, aws/karpenter-provider-aws 3315; v1.14.1 by NodeOverlays
    # alone). Huge pages also make fork() fail in PyTorch's data loaders (awslabs/awsome-distributed-ai, EFA cheat sheet).
    "FI_EFA_USE_HUGE_PAGE": "0",
}
"""What libfabric, and by it the NCCL plugin in the image, reads. Whether it reads GPU memory itself it finds out by the machine."""

INTERFACES_ANNOTATION, DEFAULT_INTERFACE_ANNOTATION = "networking.gke.io/interfaces", "networking.gke.io/default-interface"
_ORDINARY_INTERFACE = "eth0"
_FIRST_RDMA_INTERFACE = 2
"""eth1 is left out: the second ordinary card of a node is for its own traffic. Names as in Google's guides."""


@dataclass(frozen=True)
class FastNetwork:
    """What a pod has of it: `resources` of the node, `variables` and `annotations`. All empty: the ordinary network alone."""

    resources: dict[str, str] = field(default_factory=dict[str, str])
    variables: dict[str, str] = field(default_factory=dict[str, str])
    annotations: dict[str, str] = field(default_factory=dict[str, str])


def interfaces_of(pool: PoolPlan, gpus: int) -> int:
    """A pod's share of its node's fast network cards, by its GPUs. Those for RDMA are all for one pod, which has all GPUs of the node."""
    if pool.rdma_networks:
        return pool.rdma_networks if gpus == pool.gpus_per_node else 0
    return pool.efa_interfaces * gpus // pool.gpus_per_node


def has_fast_network(pool: PoolPlan) -> bool:
    """Whether the nodes of a pool have one."""
    return bool(pool.efa_interfaces or pool.rdma_networks)


def how_to_have_it(plan: Plan, candidates: Sequence[PoolPlan]) -> str:
    """Which of a stack's setting would give these pools a fast network, and why it cannot where it cannot."""
    if plan.cloud is not Platform.GKE:
        return "`efa: true`, on EKS"
    facts, told = gpudirect(), list[str]()
    for pool in candidates:
        machine = pool.machines[0]
        if facts.of(machine):
            told.append(f"{pool.name}, {machine}, has it with `network: gpudirect`")
        elif why := facts.why_not(machine):
            told.append(f"{pool.name}, {machine}, cannot: {why}")
    with_it = ", ".join(each.names[0] for each in facts.machines)
    return "; ".join(told) or f"`network: gpudirect` is for {with_it}"


def fast_network_for(pools: Sequence[PoolPlan], request: WorkloadRequest, *, together: bool) -> FastNetwork:
    """What a pod of the request has, on whichever of the pools it comes to run."""
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
        # Where the plugin is, and the NCCL that fits to it: an image may bring older ones.
        "LD_LIBRARY_PATH": f"{CONTAINER_FOLDER}/lib64",
        "NCCL_SOCKET_IFNAME": _ORDINARY_INTERFACE,
        **facts.variables,
    }
    # Machines of two kinds have two files, and a job that may get either has none: NCCL then chooses by itself.
    if len(tuners) == 1:
        variables["NCCL_TUNER_CONFIG_PATH"] = f"{CONTAINER_FOLDER}/{GIB_FOLDER}/configs/{tuners.pop()}"
    annotations = {DEFAULT_INTERFACE_ANNOTATION: _ORDINARY_INTERFACE, INTERFACES_ANNOTATION: json.dumps(interfaces)}
    return FastNetwork(variables=variables, annotations=annotations)


def ordinary_network(pools: Sequence[PoolPlan], request: WorkloadRequest, *, together: bool) -> str:
    """That pods which train together have TCP alone although some of the pools have more; empty where that is not so, or was asked for."""
    with_share = [pool.name for pool in pools if interfaces_of(pool, request.gpus)]
    if not together or request.fast_network is not None or not with_share or len(with_share) == len(pools):
        return ""
    others = ", ".join(pool.name for pool in pools if pool.name not in with_share)
    what = "GPUDirect" if any(pool.rdma_networks for pool in pools) else "EFA"
    return f"TCP, because {others} has no {what}; fast_network: true asks for {what} and takes {', '.join(with_share)} alone"
