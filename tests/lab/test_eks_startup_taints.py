"""Startup taints on fake nodes: those of storage drivers are removed, as the drivers would do it, and no others."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.lab.cluster import Cluster, KubeObject

pytestmark = pytest.mark.lab

NODE = "v1/Node"
GPU = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
EBS = {"key": "ebs.csi.aws.com/agent-not-ready", "effect": "NoExecute"}
S3 = {"key": "s3.csi.aws.com/agent-not-ready", "effect": "NoExecute"}
OWN = {"key": "acme.example/warming-up", "effect": "NoSchedule"}


@pytest.fixture
def node(cluster: Cluster) -> Iterator[str]:
    """Yield the test's own fake node, without Karpenter, that starts with taints of drivers between others."""
    name = f"node-{uuid.uuid4().hex[:8]}"
    cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {"kwok.x-k8s.io/node": "fake", "kubernetes.io/hostname": name},
                "annotations": {"kwok.x-k8s.io/node": "fake"},
            },
            "spec": {"taints": [EBS, GPU, S3, OWN]},
        }
    )
    yield name
    cluster.delete(NODE, name)


def test_a_ready_node_loses_the_taints_of_storage_drivers_and_keeps_the_others(cluster: Cluster, node: str) -> None:
    def settled(nodes: list[KubeObject]) -> list[KubeObject] | None:
        [found] = [each for each in nodes if each["metadata"]["name"] == node]
        taints: list[KubeObject] = found["spec"]["taints"]
        own = [taint for taint in taints if not taint["key"].startswith("node.kubernetes.io/")]
        return own if not any(taint["key"].endswith("/agent-not-ready") for taint in own) else None

    assert cluster.wait_for(NODE, settled, "a node without the taints of storage drivers") == [GPU, OWN]
