"""The network between pods that train together: EFA interfaces of their nodes, and what NCCL is told of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from capacity.plan.model import PoolPlan
    from capacity.workloads.requests import WorkloadRequest

ORDINARY_NETWORK_ANNOTATION = "flexspot.dev/ordinary-network"
"""On work whose pods train together over TCP although some of its pools have EFA: which, and how to have it."""

EFA_VARIABLES = {
    # libfabric would take another provider without a word where this one does not work.
    "FI_PROVIDER": "efa",
    # Its buffers from ordinary memory. A container has no huge pages unless it asks for hugepages-2Mi, and for a pod that does Karpenter
    # makes no node: it knows no such resource (kubernetes-sigs/karpenter 751, aws/karpenter-provider-aws 3315; v1.14.1 by NodeOverlays
    # alone). Huge pages also make fork() fail in PyTorch's data loaders (awslabs/awsome-distributed-ai, EFA cheat sheet).
    "FI_EFA_USE_HUGE_PAGE": "0",
}
"""What libfabric, and by it the NCCL plugin in the image, reads. Whether it reads GPU memory itself it finds out by the machine."""


def interfaces_of(pool: PoolPlan, gpus: int) -> int:
    """A pod's share of its node's EFA interfaces, by its GPUs."""
    return pool.efa_interfaces * gpus // pool.gpus_per_node


def interfaces_for(pools: Sequence[PoolPlan], request: WorkloadRequest, *, together: bool) -> int:
    """How many EFA interfaces a pod of the request asks for, on whichever of the pools it comes to run; 0: none."""
    wanted = together if request.fast_network is None else request.fast_network
    return min((interfaces_of(pool, request.gpus) for pool in pools), default=0) if wanted else 0


def ordinary_network(pools: Sequence[PoolPlan], request: WorkloadRequest, *, together: bool) -> str:
    """That pods which train together have TCP alone although some of the pools have EFA; empty where that is not so, or was asked for."""
    with_share = [pool.name for pool in pools if interfaces_of(pool, request.gpus)]
    if not together or request.fast_network is not None or not with_share or len(with_share) == len(pools):
        return ""
    others = ", ".join(pool.name for pool in pools if pool.name not in with_share)
    return f"TCP, because {others} has no EFA; fast_network: true asks for EFA and takes {', '.join(with_share)} alone"
