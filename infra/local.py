"""The platform on the local control plane: the plan's objects on an API server whose nodes are fake."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi
from pulumi_kubernetes import Provider
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from capacity.planning import TEAM_LABEL
from components.karpenter.gpu_node_pool import GpuNodePool, NodeClassRef
from components.kueue.queues import Queues
from components.tenancy.priorities import Priorities
from components.tenancy.team import Team

if TYPE_CHECKING:
    from pathlib import Path

    from capacity.plan import Plan, Taint

NODE_CLASS: NodeClassRef = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "lab"}


def declare_local(plan: Plan, kubeconfig: Path) -> None:
    """Registers every resource of the plan, on the lab of `kubeconfig` and nowhere else."""
    provider = Provider("lab", kubeconfig=str(kubeconfig), enable_server_side_apply=True)
    on_lab = pulumi.ResourceOptions(provider=provider)
    Priorities(
        "priorities",
        {
            "classes": [
                {"name": each.name, "value": each.value, "preempts": each.preempts, "description": each.description}
                for each in plan.priorities
            ],
            "labels": plan.labels,
        },
        on_lab,
    )
    node_class = CustomResource(
        "node-class",
        api_version="karpenter.kwok.sh/v1alpha1",
        kind=NODE_CLASS["kind"],
        metadata=ObjectMetaArgs(name=NODE_CLASS["name"], labels=plan.labels),
        opts=on_lab,
    )
    for pool in plan.pools:
        GpuNodePool(
            pool.name,
            {
                "pool": pool.name,
                "machines": [pool.machine],
                "capacity_types": [pool.capacity_type.value],
                "node_labels": pool.labels,
                "labels": plan.labels,
                "taints": [{"key": taint.key, "value": taint.value, "effect": taint.effect.value} for taint in pool.taints],
                "max_gpus": pool.max_gpus,
                "max_nodes": pool.max_nodes,
                "node_class": NODE_CLASS,
            },
            pulumi.ResourceOptions(provider=provider, depends_on=[node_class]),
        )
    teams = [
        Team(
            each.name,
            {"namespace": each.namespace, "max_gpus": each.max_gpus, "labels": {**plan.labels, TEAM_LABEL: each.name}},
            on_lab,
        )
        for each in plan.teams
    ]
    queues = Queues(
        "queues",
        {
            "cohort": plan.queues[0].cohort,
            "labels": plan.labels,
            "flavors": [
                {
                    "name": flavor.name,
                    "node_labels": flavor.node_labels,
                    "tolerations": [_toleration(taint) for taint in flavor.tolerated],
                }
                for flavor in plan.flavors
            ],
            "queues": [
                {
                    "name": queue.cluster_queue,
                    "namespace": queue.namespace,
                    "local_queue": queue.local_queue,
                    "quotas": [
                        {"flavor": quota.flavor, "gpus": quota.gpus, "cpu": str(quota.vcpu), "memory": _memory(quota.memory_mib)}
                        for quota in queue.quotas
                    ],
                }
                for queue in plan.queues
            ],
        },
        pulumi.ResourceOptions(provider=provider, depends_on=teams),
    )
    pulumi.export("kubeconfig", str(kubeconfig))
    pulumi.export("queues", {queue.namespace: queue.local_queue for queue in plan.queues})
    pulumi.export("cluster_queues", queues.cluster_queues)


def _toleration(taint: Taint) -> dict[str, str]:
    return {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect.value}


def _memory(mib: int) -> str:
    # In the form to which Kueue's webhook rewrites it, so that what is read back is what was written.
    return f"{mib // 1024}Gi" if mib % 1024 == 0 else f"{mib}Mi"
