"""Declarations of the shipped GKE stacks, in GKE's terms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from program_declarations import Declarations, Declared, taints_of

from flexspot.capacity.catalog.capacity_type import Origin, facts_of

if TYPE_CHECKING:
    from flexspot.capacity.catalog.capacity_type import CapacityType
    from flexspot.capacity.plan.model import Plan

CLUSTER = "gcp:container/cluster:Cluster"
NODE_POOL = "gcp:container/nodePool:NodePool"
SYSTEM_POOL = f"{NODE_POOL} cluster-system-pool"


def gpu_pools(declarations: Declarations) -> dict[str, Declared]:
    """Return the GPU pools by name."""
    return {each.inputs["name"]: each for each in declarations.of(NODE_POOL) if f"{each.type} {each.name}" != SYSTEM_POOL}


def node_taints(plan: Plan, pool: Declared) -> set[tuple[str, str, str]]:
    """Return all taints of the pool's nodes: declared ones and those that GKE sets by itself."""
    marks = facts_of("gke")[capacity_type(plan, pool)].marks[Origin.NODE_POOL]
    return taints_of(pool.inputs["nodeConfig"]["taints"]) | {(each.key, str(each.value), each.effect) for each in marks.taints}


def node_labels(plan: Plan, pool: Declared) -> dict[str, str | None]:
    """Return all labels of the pool's nodes. GKE itself adds the pool's name and its GPUs."""
    node = pool.inputs["nodeConfig"]
    own = {"cloud.google.com/gke-nodepool": pool.inputs["name"], "cloud.google.com/gke-accelerator": node["guestAccelerators"][0]["type"]}
    return node.get("labels", {}) | facts_of("gke")[capacity_type(plan, pool)].marks[Origin.NODE_POOL].labels | own


def capacity_type(plan: Plan, pool: Declared) -> CapacityType:
    return next(each.capacity_type for each in plan.pools if each.name == pool.inputs["name"])
