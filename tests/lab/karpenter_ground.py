"""A platform's pools as NodePools of Karpenter's, and what Karpenter says that it does not do. Not a test."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from server_questions import integers

from components.karpenter.gpu_node_pool import GpuNodePool, NodeClassRef
from infra.karpenter_pools import node_pool_args
from lab.exercise.play import wait_for_no_nodes

if TYPE_CHECKING:
    from collections.abc import Generator

    from queue_fixtures import QueueGround
    from queue_objects import Register

    from lab.cluster import Cluster, KubeObject

NODE_POOL, NODE_CLAIM = "karpenter.sh/v1/NodePool", "karpenter.sh/v1/NodeClaim"
NODE_CLASS: NodeClassRef = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "workloads"}


TOLD_SECONDS = 150
"""How long Karpenter may take to say something of a node: within two minutes it says one thing for each reason, whatever its words are
(1.14.1, pkg/events/recorder.go: defaultDedupeTimeout), and `DisruptionBlocked` is also that a node was just nominated."""


@contextmanager
def karpenter_pools(ground: QueueGround, register: Register) -> Generator[None]:
    """The platform's pools as NodePools of Karpenter's. No node is left afterwards."""
    plan = ground.plan
    registered = register(lambda: [GpuNodePool(pool.name, node_pool_args(plan, pool, NODE_CLASS)) for pool in plan.pools])
    node_pools = registered.of("kubernetes:karpenter.sh/v1:NodePool")
    node_class = {"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": NODE_CLASS["kind"], "metadata": {"name": NODE_CLASS["name"]}}
    try:
        ground.cluster.apply(node_class, *(integers(each) for each in node_pools))
        yield
    finally:
        for pool in plan.pools:
            ground.cluster.delete(NODE_POOL, pool.name)
        wait_for_no_nodes(ground.cluster)


def claim_of(cluster: Cluster, node: str) -> KubeObject:
    """The NodeClaim that stands for a node."""
    return next(each for each in cluster.list(NODE_CLAIM) if each["status"].get("nodeName") == node)


def wait_until_told(cluster: Cluster, about: str, words: str) -> None:
    """Returns once Karpenter has said `words` of the node `about`."""

    def told(events: list[KubeObject]) -> bool:
        # An event about a whole cluster names nothing.
        return any(event["involvedObject"].get("name") == about and words in event["message"] for event in events)

    cluster.wait_for("v1/Event", told, f"Karpenter's word on {about}: {words!r}", namespace="default", timeout_seconds=TOLD_SECONDS)
