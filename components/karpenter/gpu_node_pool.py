"""A Karpenter NodePool of GPU machines."""

from typing import Any

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from capacity.catalog.node_labels import CAPACITY_TYPE_LABEL, GPU_RESOURCE, INSTANCE_TYPE_LABEL, ZONE_LABEL
from components.karpenter.gpu_pool_args import GpuNodePoolArgs, NodeClassRef
from components.karpenter.gpu_pool_checks import check_gpu_pool
from components.karpenter.node_owners import owner_metadata
from components.karpenter.taints import startup_taints, written_taint

__all__ = ["GpuNodePool", "GpuNodePoolArgs", "NodeClassRef"]

_FAMILY_LABEL = "karpenter.k8s.aws/instance-family"
_GPU_COUNT_LABEL = "karpenter.k8s.aws/instance-gpu-count"


class GpuNodePool(pulumi.ComponentResource):
    """A NodePool whose nodes exist only while pods need them: from zero, up to a ceiling, and removed when empty.

    Empty nodes go all at once: Karpenter's default budget of 10 % would remove a handful one after the other. Nodes are not taken from
    under running work by drift, nor by expiry or consolidation unless `expire_after_seconds` or `moves_work` say so.

    Raises ValueError before anything is registered: under the name of its rule for what a policy would stop (a ceiling below one, a GPU
    ceiling that the others keep out of reach, no taint on nvidia.com/gpu), and for what Karpenter would refuse.
    """

    name: pulumi.Output[str]
    """The NodePool's name."""

    def __init__(self, name: str, args: GpuNodePoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        check_gpu_pool(name, args)
        super().__init__("flexspot:index:GpuNodePool", name, {**args}, opts)
        CustomResource(
            f"{name}-node-pool",
            api_version="karpenter.sh/v1",
            kind="NodePool",
            metadata=ObjectMetaArgs(name=args["pool"], labels=args["labels"]),
            spec={
                "template": {**owner_metadata(args.get("owner_labels", {})), "spec": _node(args)},
                "disruption": _disruption(args),
                **({} if args["weight"] is None else {"weight": args["weight"]}),
                "limits": {
                    GPU_RESOURCE: str(args["max_gpus"]),
                    "nodes": str(args["max_nodes"]),
                    "cpu": str(args["max_vcpu"]),
                    "memory": f"{args['max_memory_mib']}Mi",
                },
            },
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.name = pulumi.Output.from_input(args["pool"])
        self.register_outputs({"name": self.name})


def _node(args: GpuNodePoolArgs) -> dict[str, Any]:
    expiry, grace = args.get("expire_after_seconds"), args.get("termination_grace_seconds")
    return {
        "requirements": [{"key": key, "operator": "In", "values": values} for key, values in _requirements(args).items()],
        "nodeClassRef": dict(args["node_class"]),
        "taints": [written_taint(taint) for taint in args["taints"]],
        **startup_taints(args.get("startup_taints", [])),
        "expireAfter": "Never" if expiry is None else f"{expiry}s",
        **({} if grace is None else {"terminationGracePeriod": f"{grace}s"}),
    }


def _requirements(args: GpuNodePoolArgs) -> dict[str, list[str]]:
    """The allowed values of each label. How many GPUs and which family are asked of machines here, and not of pods by `node_labels`."""
    taken = {CAPACITY_TYPE_LABEL: args["capacity_types"], INSTANCE_TYPE_LABEL: args["machines"]}
    if zones := args.get("zones"):
        taken[ZONE_LABEL] = sorted(zones)
    if families := args.get("instance_families"):
        taken[_FAMILY_LABEL] = sorted(families)
    if (count := args.get("gpus_per_node")) is not None:
        taken[_GPU_COUNT_LABEL] = [str(count)]
    return taken | {key: [value] for key, value in args["node_labels"].items() if key not in taken}


def _disruption(args: GpuNodePoolArgs) -> dict[str, Any]:
    moves = args["moves_work"]
    return {
        "consolidationPolicy": "WhenEmptyOrUnderutilized" if moves else "WhenEmpty",
        "consolidateAfter": f"{args['idle_seconds']}s",
        # Of several that apply at once, Karpenter takes the strictest.
        "budgets": [
            {"nodes": "100%", "reasons": ["Empty"]},
            {"nodes": "10%" if moves else "0", "reasons": ["Underutilized"]},
            {"nodes": "10%" if moves else "0", "reasons": ["Drifted"]},
            *({"nodes": "0", "schedule": quiet["schedule"], "duration": f"{quiet['hours']}h"} for quiet in args.get("quiet_hours", [])),
        ],
    }
