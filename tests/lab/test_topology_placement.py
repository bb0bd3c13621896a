"""Kueue places the pods of a job by the positions of nodes in the network."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from queue_fixtures import GKE, QueuePlatform, queues_of
from queue_objects import pool_node

from flexspot.capacity.catalog.node_labels import GKE_TOPOLOGY_LABELS
from flexspot.lab.cluster import condition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.lab.cluster import Cluster, KubeObject

pytestmark = pytest.mark.lab

Register = Callable[[Callable[[], object]], Any]

PLACED: dict[str, Any] = {
    **GKE,
    "pools": [
        {
            "name": "h100",
            "machine": "a3-highgpu-8g",
            "capacity_type": "reserved",
            "reservation": {"name": "bought"},
            "min_nodes": 4,
            "max_nodes": 4,
            "topology": True,
            "serves": ["training"],
        }
    ],
    "teams": [{"name": "red", "shares": {"h100": 32}}],
}


@pytest.fixture
def platform(cluster: Cluster, register: Register) -> Iterator[QueuePlatform]:
    """Yield queues for a reserved pool with topology, at first without a node."""
    with queues_of(cluster, register, {}, **PLACED) as deployed:
        yield deployed


def add_node(platform: QueuePlatform, name: str, block: str, subblock: str) -> str:
    """Create a node of the pool at a position in the network. Return its name."""
    [pool] = platform.plan.pools
    node = pool_node(platform.plan, pool, f"node-{platform.suffix}-{name}")
    full: str = node["metadata"]["name"]
    node["metadata"]["labels"] |= dict(zip(GKE_TOPOLOGY_LABELS, (block, subblock, f"host-{name}", full), strict=True))
    platform.cluster.create(node)
    return full


def large_job(platform: QueuePlatform, name: str, pods: int) -> KubeObject:
    """Return a Job of whole nodes, with the fields that the plan's route adds to its pods."""
    job = platform.job("red", name, gpus=8, pods=pods)
    [route] = platform.plan.routes
    job["spec"]["template"]["metadata"]["annotations"] |= route.pod_annotations
    return platform.cluster.create(job)


def wait_until_kueue_knows(platform: QueuePlatform, nodes: int) -> None:
    """Return once Kueue knows `nodes` nodes. It admits a Job that fills them only after it has seen each one ready."""
    large_job(platform, "filling", pods=nodes)
    platform.wait_for_flavors("red", "filling")
    platform.cluster.delete("batch/v1/Job", "filling", platform.own("red"))


def test_the_pods_of_a_job_run_on_the_nodes_that_are_closest_together(platform: QueuePlatform) -> None:
    add_node(platform, "a1", "block-a", "subblock-a1")
    add_node(platform, "b1", "block-b", "subblock-b1")
    close = {add_node(platform, "c1", "block-c", "subblock-c1"), add_node(platform, "c2", "block-c", "subblock-c1")}

    wait_until_kueue_knows(platform, nodes=4)
    large_job(platform, "close", pods=2)

    def both(pods: list[KubeObject]) -> list[KubeObject] | None:
        ready = [pod for pod in pods if pod["metadata"]["labels"]["job-name"] == "close" and condition(pod, "Ready")]
        return ready if len(ready) == 2 else None

    running = platform.cluster.wait_for("v1/Pod", both, "both pods to run", namespace=platform.own("red"))
    assert {pod["spec"]["nodeName"] for pod in running} == close
