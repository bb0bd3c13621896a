"""A platform's pools as NodePools of Karpenter. Not a test."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from server_questions import integers

from flexspot.components.karpenter.node_pools import GpuNodePool, NodeClassRef
from flexspot.infra.declaring.platform_objects import node_pool_args
from flexspot.lab.exercise.play import wait_for_no_nodes

if TYPE_CHECKING:
    from collections.abc import Generator

    from queue_fixtures import QueuePlatform
    from queue_objects import Register


NODE_POOL, NODE_CLAIM = "karpenter.sh/v1/NodePool", "karpenter.sh/v1/NodeClaim"
NODE_CLASS: NodeClassRef = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "workloads"}


@contextmanager
def karpenter_pools(platform: QueuePlatform, register: Register) -> Generator[None]:
    """Create the platform's pools as NodePools of Karpenter. No node is left afterwards."""
    plan = platform.plan
    registered = register(lambda: [GpuNodePool(pool.name, node_pool_args(plan, pool, NODE_CLASS)) for pool in plan.pools])
    node_pools = registered.of("kubernetes:karpenter.sh/v1:NodePool")
    node_class = {"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": NODE_CLASS["kind"], "metadata": {"name": NODE_CLASS["name"]}}
    try:
        platform.cluster.apply(node_class, *(integers(each) for each in node_pools))
        yield
    finally:
        for pool in plan.pools:
            platform.cluster.delete(NODE_POOL, pool.name)
        wait_for_no_nodes(platform.cluster)
