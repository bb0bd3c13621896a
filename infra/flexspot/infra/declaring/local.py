"""The platform on the local control plane: the plan's objects on an API server whose nodes are fake."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi
from pulumi_kubernetes.apiextensions import CustomResource
from pulumi_kubernetes.meta.v1 import ObjectMetaArgs

from flexspot.capacity.plan.cpu_work import OTHER_WORK, has_room
from flexspot.components.karpenter.node_pools import CpuNodePool, GpuNodePool, NodeClassRef
from flexspot.infra.declaring.platform_objects import after, cluster_provider, declare_platform_objects, node_pool_args, other_work_args

if TYPE_CHECKING:
    from pathlib import Path

    from flexspot.capacity.plan.model import Plan
    from flexspot.capacity.settings.platform import LocalSettings
    from flexspot.infra.declaring.platform_objects import Outputs
    from flexspot.policies.judging import Settings

NODE_CLASS: NodeClassRef = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "lab"}


def declare_local(plan: Plan, settings: LocalSettings, rules: Settings, kubeconfig: Path) -> Outputs:
    """Register every resource of the plan on the lab of `kubeconfig` and nowhere else. Return the outputs.

    `rules` are the settings of the rules in its API server.
    """
    on_cluster = pulumi.ResourceOptions(provider=cluster_provider("lab", None, str(kubeconfig)))
    node_class = CustomResource(
        "node-class",
        api_version="karpenter.kwok.sh/v1alpha1",
        kind=NODE_CLASS["kind"],
        metadata=ObjectMetaArgs(name=NODE_CLASS["name"], labels=plan.labels),
        opts=on_cluster,
    )
    for pool in plan.pools:
        GpuNodePool(pool.name, node_pool_args(plan, pool, NODE_CLASS), after(on_cluster, node_class))
    if has_room(settings):
        CpuNodePool(OTHER_WORK, other_work_args(plan, settings.other_work, NODE_CLASS), after(on_cluster, node_class))
    _, outputs = declare_platform_objects(plan, on_cluster, rules=rules)
    return {**outputs, "kubeconfig": str(kubeconfig)}
