"""Effects of a cloud on the control plane of its clusters: the kinds that it brings, and the nodes of its pools.

The nodes are the lab's fake ones, so that pods that wait for a node wait for the pool that provides it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from cloud_answers import POOL
from cloud_refusals import NODE_GROUP

from flexspot.lab.cluster import Cluster, read_objects, wait_until_established

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cloud_folder import CloudFolder

    from flexspot.lab.cluster import KubeObject

_FAKE = {"kwok.x-k8s.io/node": "fake"}
_SET_BY_KUBELET = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
_NODES_AT_MOST = 3

DEFINITION = "apiextensions.k8s.io/v1/CustomResourceDefinition"


class ClusterSide:
    """The control plane behind the clusters of one cloud, or None."""

    def __init__(self, cloud: CloudFolder) -> None:
        self._cloud = cloud

    def bring(self, what: str) -> None:
        """Apply the definitions that `what` brings along, a resource type or a chart, and wait until they are served."""
        if definitions := self._definitions(what):
            cluster = self._cluster()
            cluster.apply(*definitions)
            wait_until_established(cluster, [each["metadata"]["name"] for each in definitions])

    def take_away(self, what: str) -> None:
        """Delete those definitions, and with them all objects of their kinds."""
        names = {each["metadata"]["name"] for each in self._definitions(what)}
        if not names:
            return
        cluster = self._cluster()
        for name in names:
            cluster.delete(DEFINITION, name)

        def gone(found: list[KubeObject]) -> bool:
            return not names & {each["metadata"]["name"] for each in found}

        cluster.wait_for(DEFINITION, gone, f"the definitions {', '.join(sorted(names))} to be gone")

    def add_nodes(self, token: str, identity: str, inputs: Mapping[str, Any]) -> None:
        """Add the nodes that a pool starts with."""
        if nodes := self._nodes(token, identity, inputs):
            self._cluster().apply(*nodes)

    def remove_nodes(self, token: str, identity: str, inputs: Mapping[str, Any]) -> None:
        """Delete the nodes of a pool."""
        for node in self._nodes(token, identity, inputs):
            self._cluster().delete("v1/Node", node["metadata"]["name"])

    def _cluster(self) -> Cluster:
        return Cluster(Path(self._cloud.settings["control_plane"]["kubeconfig"]))

    def _definitions(self, what: str) -> list[KubeObject]:
        files = self._cloud.settings.get("brings", {}).get(what, [])
        return read_objects(*map(Path, files)) if files else []

    def _nodes(self, token: str, identity: str, inputs: Mapping[str, Any]) -> list[KubeObject]:
        if "control_plane" not in self._cloud.settings:
            return []
        if token == POOL:
            scaling: Mapping[str, int] = inputs.get("autoscaling") or {}
            count, said = scaling.get("totalMinNodeCount", 0), inputs["nodeConfig"]
            name = {"cloud.google.com/gke-nodepool": inputs["name"]}
        elif token == NODE_GROUP:
            count, said = inputs["scalingConfig"]["desiredSize"], inputs
            name = {"eks.amazonaws.com/nodegroup": identity.partition(":")[2]}
        else:
            return []
        effects = {"NO_SCHEDULE": "NoSchedule", "NO_EXECUTE": "NoExecute", "PREFER_NO_SCHEDULE": "PreferNoSchedule"}
        labels: dict[str, str] = {**name, **(said.get("labels") or {})}
        given: list[dict[str, str]] = said.get("taints") or []
        taints = [{"key": each["key"], "value": each.get("value", ""), "effect": effects[each["effect"]]} for each in given]
        pool = identity.rpartition("/")[2].rpartition(":")[2].lower()
        return [node_named(f"cloud-{pool}-{number}", labels, taints) for number in range(min(count, _NODES_AT_MOST))]


def node_named(name: str, labels: dict[str, str], taints: list[dict[str, str]]) -> KubeObject:
    """Return a fake node of 8 vCPU and 32 GiB."""
    amounts = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**labels, **_FAKE, **_SET_BY_KUBELET, "kubernetes.io/hostname": name}, "annotations": _FAKE},
        "spec": {"taints": taints},
        "status": {"capacity": amounts, "allocatable": amounts},
    }
