"""The nodes of the controllers in EKS Auto Mode: a NodePool of our own, which has the ceiling that the built-in one lacks."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types, and NotRequired as optional.
from typing import NotRequired, TypedDict

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from capacity.catalog.node_labels import CAPACITY_TYPE_LABEL, INSTANCE_TYPE_LABEL, ZONE_LABEL
from capacity.settings.cluster import SystemPool
from components.eks.system_nodes import CRITICAL_ADDONS, SYSTEM_LABEL
from components.karpenter.cpu_node_pool import fuller_or_cheaper
from components.karpenter.gpu_node_pool import NodeClassRef

_FIRST = 100
"""The highest weight that Karpenter takes: what tolerates the taint comes here, and not to nodes on Spot for other work."""


class AutoSystemPoolArgs(TypedDict):
    """Arguments of AutoSystemPool."""

    pool: str
    """Name of the NodePool; not `system`, which is EKS's own."""

    machine: str
    """Instance type with an x86 processor and without GPUs, such as m6i.xlarge."""

    max_nodes: NotRequired[int]
    """Maximum number of nodes; at least 1. Default: 4."""

    zones: list[str]
    """Zones in which nodes may start, by name."""

    node_class: NodeClassRef
    """The node class."""

    expire_after_hours: int
    """Age in hours at which a node is drained."""

    drain_hours: int
    """Hours after which a drain is forced to end."""

    labels: dict[str, str]
    """Labels of the NodePool object."""

    owner_labels: NotRequired[dict[str, str]]
    """Labels of its nodes that identify their owner in reports. Default: none."""


class AutoSystemPool(pulumi.ComponentResource):
    """On-demand nodes for pods that tolerate `CriticalAddonsOnly`, created as controllers need them, up to a ceiling.

    Auto Mode's own pool `system` has the same taint but no ceiling, and chooses its own machines. The nodes have the label that the
    controllers select, so controllers are deployed as on other clusters of the platform. Half-empty nodes are consolidated, one in ten at a
    time.

    Raises ValueError for a ceiling below one and for a name that EKS reserves.
    """

    name: pulumi.Output[str]
    """The NodePool's name."""

    def __init__(self, name: str, args: AutoSystemPoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        most = args.get("max_nodes", SystemPool.default("max_nodes"))
        if most < 1:
            raise ValueError(f"AutoSystemPool {name}: max_nodes is {most}; it must be at least 1; leave it out for 4")
        if args["pool"] in {"system", "general-purpose"}:
            raise ValueError(f"AutoSystemPool {name}: pool is {args['pool']!r}, which EKS makes itself; rename it")
        super().__init__("flexspot:index:AutoSystemPool", name, {**args}, opts)
        wanted = {
            CAPACITY_TYPE_LABEL: ["on-demand"],
            INSTANCE_TYPE_LABEL: [args["machine"]],
            ZONE_LABEL: sorted(args["zones"]),
        }
        CustomResource(
            f"{name}-node-pool",
            api_version="karpenter.sh/v1",
            kind="NodePool",
            metadata=ObjectMetaArgs(name=args["pool"], labels=args["labels"]),
            spec={
                "template": {
                    "metadata": {"labels": dict(sorted({**args.get("owner_labels", {}), SYSTEM_LABEL: "true"}.items()))},
                    "spec": {
                        "requirements": [{"key": key, "operator": "In", "values": values} for key, values in wanted.items()],
                        "nodeClassRef": dict(args["node_class"]),
                        "taints": [{"key": CRITICAL_ADDONS, "value": "true", "effect": "NoSchedule"}],
                        "expireAfter": f"{args['expire_after_hours']}h",
                        "terminationGracePeriod": f"{args['drain_hours']}h",
                    },
                },
                "disruption": fuller_or_cheaper(60),
                "weight": _FIRST,
                "limits": {"nodes": str(most)},
            },
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.name = pulumi.Output.from_input(args["pool"])
        self.register_outputs({"name": self.name})
