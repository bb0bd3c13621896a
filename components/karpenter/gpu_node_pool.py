"""A Karpenter NodePool of GPU machines."""

from __future__ import annotations

from typing import TypedDict

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from capacity.node_labels import CAPACITY_TYPE_LABEL, GPU_RESOURCE, INSTANCE_TYPE_LABEL


class NodeClassRef(TypedDict):
    """Which node class gives the pool's nodes their image, network and disks: Karpenter's group, kind and name of it."""

    group: str
    kind: str
    name: str


class NodeTaint(TypedDict):
    """A taint of the pool's nodes; `effect` as Kubernetes spells it, such as NoSchedule."""

    key: str
    value: str
    effect: str


class GpuNodePoolArgs(TypedDict):
    """Arguments of GpuNodePool; all are plain because they shape the pool."""

    pool: str
    """The NodePool's name."""

    machines: list[str]
    """Instance types, such as g6.xlarge; at least one."""

    capacity_types: list[str]
    """Values of karpenter.sh/capacity-type, in Karpenter's own words: spot, on-demand, reserved."""

    node_labels: dict[str, str]
    """Single-valued requirements: labels that a node has before it boots, and that pods may therefore select."""

    labels: dict[str, str]
    """Labels of the NodePool object."""

    taints: list[NodeTaint]
    """Taints of the nodes; one of them on nvidia.com/gpu."""

    max_gpus: int
    """Ceiling in GPUs. Karpenter counts after launching, so a burst may go past it for a moment."""

    max_nodes: int
    """Ceiling in nodes."""

    node_class: NodeClassRef
    """The node class."""


class GpuNodePool(pulumi.ComponentResource):
    """A NodePool whose nodes exist only while pods need them: from zero, up to a ceiling, and removed when empty.

    Empty nodes go after a minute, all at once: Karpenter's default budget of 10 % would remove a handful one after the other. Nodes
    are not taken from under running work by expiry or consolidation.

    Raises ValueError for a ceiling below one, for no machine, and for taints without one on nvidia.com/gpu: what a policy would stop, under
    the name of its rule, before anything is registered.
    """

    name: pulumi.Output[str]
    """The NodePool's name."""

    def __init__(self, name: str, args: GpuNodePoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        _check(name, args)
        super().__init__("flexspot:index:GpuNodePool", name, {**args}, opts)
        taken = {CAPACITY_TYPE_LABEL: args["capacity_types"], INSTANCE_TYPE_LABEL: args["machines"]}
        known = {key: [value] for key, value in args["node_labels"].items() if key not in taken}
        CustomResource(
            f"{name}-node-pool",
            api_version="karpenter.sh/v1",
            kind="NodePool",
            metadata=ObjectMetaArgs(name=args["pool"], labels=args["labels"]),
            spec={
                "template": {
                    "spec": {
                        "requirements": [{"key": key, "operator": "In", "values": values} for key, values in {**taken, **known}.items()],
                        "nodeClassRef": dict(args["node_class"]),
                        "taints": [dict(taint) for taint in args["taints"]],
                        "expireAfter": "Never",
                    },
                },
                "disruption": {
                    "consolidationPolicy": "WhenEmpty",
                    "consolidateAfter": "1m",
                    "budgets": [{"nodes": "100%", "reasons": ["Empty"]}, {"nodes": "0", "reasons": ["Drifted", "Underutilized"]}],
                },
                "limits": {GPU_RESOURCE: str(args["max_gpus"]), "nodes": str(args["max_nodes"])},
            },
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.name = pulumi.Output.from_input(args["pool"])
        self.register_outputs({"name": self.name})


def _check(name: str, args: GpuNodePoolArgs) -> None:
    if args["max_gpus"] < 1 or args["max_nodes"] < 1:
        found = f"max_gpus={args['max_gpus']}, max_nodes={args['max_nodes']}"
        raise ValueError(f"gpu-pool-without-limit: GpuNodePool {name} has {found}; a GPU pool has a ceiling of at least one of each")
    if not args["machines"]:
        raise ValueError(f"GpuNodePool {name}: machines is empty; name at least one instance type, such as g6.xlarge")
    if not any(taint["key"] == GPU_RESOURCE for taint in args["taints"]):
        keys = ", ".join(taint["key"] for taint in args["taints"]) or "none"
        raise ValueError(
            f"gpu-pool-without-taint: GpuNodePool {name} has taints on {keys}; add one on {GPU_RESOURCE}, or other pods will fill its nodes"
        )
