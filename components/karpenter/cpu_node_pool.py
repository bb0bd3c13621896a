"""A Karpenter NodePool for work without GPUs."""

from typing import Any, NotRequired, TypedDict

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from capacity.catalog.machines import Cloud
from capacity.catalog.node_labels import ARCHITECTURE_LABEL, CAPACITY_TYPE_LABEL, KARPENTER_INSTANCE, zone_label
from capacity.catalog.price_book import prices_of
from capacity.plan.cpu_work import largest_vcpu
from components.karpenter.gpu_node_pool import NodeClassRef, owner_metadata, startup_taints
from components.shared_args import NodeTaint

_FAMILY, _HYPERVISOR, _CPU = "family", "hypervisor", "cpu"

_NITRO = "nitro"
"""Which the images and Karpenter's network limits are for. Bare metal has none, and costs more."""


class CpuNodePoolArgs(TypedDict):
    """Arguments of CpuNodePool."""

    pool: str
    """The NodePool's name."""

    labels: dict[str, str]
    """Labels of the NodePool object."""

    owner_labels: NotRequired[dict[str, str]]
    """Labels of its nodes that identify their owner in reports. Default: none."""

    max_vcpu: int
    """Maximum vCPU; at least 1."""

    max_memory_gib: int
    """Maximum memory in GiB; at least 1."""

    node_class: NodeClassRef
    """The node class."""

    zones: NotRequired[list[str]]
    """Zones in which nodes may start. Default: the zones of the node class's subnets."""

    startup_taints: NotRequired[list[NodeTaint]]
    """Taints that something on the node, such as a storage driver, removes once it is ready. Default: none."""

    capacity_types: NotRequired[list[str]]
    """Values of karpenter.sh/capacity-type. Default: spot and on-demand; Karpenter tries spot first."""

    idle_seconds: NotRequired[int]
    """Seconds after which a node that is not needed is removed. Default: 60."""

    expire_after_hours: NotRequired[int]
    """Age in hours at which a node is drained. Default: 720, 30 days."""

    instance_labels: NotRequired[str]
    """Prefix of the label keys with which Karpenter describes a machine; eks.amazonaws.com/instance- in EKS Auto Mode. Default:
    karpenter.k8s.aws/instance-."""


def fuller_or_cheaper(idle_seconds: int) -> dict[str, Any]:
    """Disruption of nodes whose work may move: empty ones go all at once, others one in ten at a time."""
    return {
        "consolidationPolicy": "WhenEmptyOrUnderutilized",
        "consolidateAfter": f"{idle_seconds}s",
        "budgets": [{"nodes": "100%", "reasons": ["Empty"]}, {"nodes": "10%", "reasons": ["Underutilized", "Drifted"]}],
    }


class CpuNodePool(pulumi.ComponentResource):
    """Nodes without GPUs for pods that tolerate no taint, such as data preparation, launchers and dashboards; from zero up to a ceiling.

    Machines are of the general-purpose Intel and AMD families with known prices (`families` of capacity/catalog/prices/aws.yaml), so that
    their maximum cost can be computed, and never have accelerators: GPU machines belong to GPU pools. Nodes are replaced by cheaper or
    fuller ones, one in ten at a time, and by age: pods that must not be moved carry karpenter.sh/do-not-disrupt, or run as a Job of a
    class. Labels: Karpenter AWS provider v1.14, well-known labels.

    Raises ValueError for a ceiling below one.
    """

    name: pulumi.Output[str]
    """The NodePool's name."""

    def __init__(self, name: str, args: CpuNodePoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        for key, ceiling in {"max_vcpu": args["max_vcpu"], "max_memory_gib": args["max_memory_gib"]}.items():
            if ceiling < 1:
                raise ValueError(f"CpuNodePool {name}: {key} is {ceiling}; a pool has a ceiling of at least 1; leave the pool out for none")
        super().__init__("flexspot:index:CpuNodePool", name, {**args}, opts)
        begins = args.get("instance_labels", KARPENTER_INSTANCE)
        wanted = {
            CAPACITY_TYPE_LABEL: args.get("capacity_types", ["spot", "on-demand"]),
            ARCHITECTURE_LABEL: ["amd64"],
            f"{begins}{_FAMILY}": prices_of(Cloud.AWS).family_names,
            f"{begins}{_HYPERVISOR}": [_NITRO],
            **({zone_label(zones): sorted(zones)} if (zones := args.get("zones")) else {}),
        }
        requirements = [{"key": key, "operator": "In", "values": values} for key, values in wanted.items()]
        bounds = [
            {"key": f"{begins}{_CPU}", "operator": "Lt", "values": [str(largest_vcpu(args["max_vcpu"]) + 1)]},
        ]
        CustomResource(
            f"{name}-node-pool",
            api_version="karpenter.sh/v1",
            kind="NodePool",
            metadata=ObjectMetaArgs(name=args["pool"], labels=args["labels"]),
            spec={
                "template": {
                    **owner_metadata(args.get("owner_labels", {})),
                    "spec": {
                        "requirements": [*requirements, *bounds],
                        "nodeClassRef": dict(args["node_class"]),
                        **startup_taints(args.get("startup_taints", [])),
                        "expireAfter": f"{args.get('expire_after_hours', 720)}h",
                        # A drain that waits for ever keeps an old node, with what is wrong with it, for ever.
                        "terminationGracePeriod": "24h",
                    },
                },
                "disruption": fuller_or_cheaper(args.get("idle_seconds", 60)),
                "limits": {"cpu": str(args["max_vcpu"]), "memory": f"{args['max_memory_gib']}Gi"},
            },
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.name = pulumi.Output.from_input(args["pool"])
        self.register_outputs({"name": self.name})
