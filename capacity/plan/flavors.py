"""ResourceFlavors: what the queues call the capacity of the queued pools, and where its nodes are in the network."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from capacity.catalog.capacity_type import RunTimeSetting, merged_order
from capacity.catalog.node_labels import CLASS_LABEL, COMPUTE_CLASS_LABEL
from capacity.catalog.workload_classes import Fallback
from capacity.plan.model import FlavorPlan, PoolPlan, TopologyPlan
from capacity.plan.resolved_settings import with_gpus

if TYPE_CHECKING:
    from capacity.plan.resolved_settings import ResolvedSettings


TOPOLOGY_ANNOTATION = "kueue.x-k8s.io/podset-preferred-topology"
"""On the pods of a job: place them as close together as there is room, from the label that is its value upwards."""


def topology_name(resolved: ResolvedSettings) -> str:
    """The one Topology of a platform, whose levels cannot be changed."""
    return f"{resolved.settings.cloud}-network"


def has_topology(resolved: ResolvedSettings, pool: PoolPlan) -> bool:
    """Whether Kueue places the pods of a pool."""
    return bool(getattr(resolved.pools[pool.name].settings, "topology", False))


def topology_plans(resolved: ResolvedSettings, flavors: tuple[FlavorPlan, ...]) -> tuple[TopologyPlan, ...]:
    """The platform's Topology, where a flavor has it."""
    if all(flavor.topology is None for flavor in flavors):
        return ()
    return (TopologyPlan(topology_name(resolved), resolved.words.topology_levels),)


def fixed_flavor_name(pool: PoolPlan, topology: str) -> str:
    """The name of a flavor with a topology: another one for other labels or tolerations.

    Kueue lets neither be changed on such a flavor (CEL rules of ResourceFlavor in v0.19), nor the flavor be deleted while a queue names it.
    With another name the new flavor is made, the queues move to it, and the old one goes.
    """
    fixed = json.dumps([topology, sorted(pool.selector.items()), [[each.key, each.value, each.effect] for each in pool.taints]])
    return f"{pool.name}-{hashlib.sha256(fixed.encode()).hexdigest()[:6]}"


def flavor_plans(resolved: ResolvedSettings, pools: tuple[PoolPlan, ...]) -> tuple[FlavorPlan, ...]:
    """The flavors in the order in which queues try them: as the classes order capacity types, then by name."""
    members: dict[str, list[PoolPlan]] = {}
    for pool in pools:
        if pool.name in resolved.queued_pools:
            members.setdefault(flavor_name(resolved, pool), []).append(pool)
    orders = [each.capacity for each in resolved.classes.values() if each.queued]
    ranks = {each: rank for rank, each in enumerate(merged_order(orders))} if orders else {}
    first = {name: min(ranks[pool.capacity_type] for pool in those) for name, those in members.items()}
    return tuple(_flavor(resolved, name, tuple(members[name])) for name in sorted(members, key=lambda name: (first[name], name)))


def flavor_name(resolved: ResolvedSettings, pool: PoolPlan) -> str:
    """The flavor of a queued pool: the pool's own, or that of all pools which the autoscaler may choose from at a stock-out."""
    if not climbs(resolved, pool):
        return fixed_flavor_name(pool, topology_name(resolved)) if has_topology(resolved, pool) else pool.name
    if compute_class := pool.labels.get(COMPUTE_CLASS_LABEL):
        return f"any-{compute_class}"
    return f"any-{pool.gpu_model}"


def comes_by_request(resolved: ResolvedSettings, pool: PoolPlan) -> bool:
    """Whether the nodes of a pool come through a ProvisioningRequest alone; GKE has such pools, and no other platform."""
    return resolved.facts[pool.capacity_type].run_time_set_by is RunTimeSetting.PROVISIONING_REQUEST


def climbs(resolved: ResolvedSettings, pool: PoolPlan) -> bool:
    """Whether the autoscaler, and not a queue, moves the pool's queued classes on."""
    return any(resolved.classes[name].queued and resolved.classes[name].fallback is Fallback.STOCK_OUT for name in pool.serves)


def _flavor(resolved: ResolvedSettings, name: str, pools: tuple[PoolPlan, ...]) -> FlavorPlan:
    first = pools[0]
    if not climbs(resolved, first):
        labels = first.selector
    elif compute_class := first.labels.get(COMPUTE_CLASS_LABEL):
        # GKE refuses pods that combine a compute class with other selectors of its own.
        labels = {COMPUTE_CLASS_LABEL: compute_class}
    else:
        # The GPU's labels alone: which pool it is, the autoscaler decides.
        labels = {key: first.labels[key] for key in resolved.words.gpu_labels}
    taints = sorted({taint for pool in pools for taint in pool.taints}, key=lambda taint: (taint.key, taint.value))
    # A class taint is for the class's own pods to tolerate; given away with the flavor, it would let every class in.
    closed = tuple(taint for taint in taints if taint.key == CLASS_LABEL)
    names = [pool.name for pool in pools]
    return FlavorPlan(
        name=name,
        pools=tuple(names),
        node_labels=dict(sorted(labels.items())),
        node_taints=closed,
        tolerated=tuple(taint for taint in taints if taint not in closed),
        ceiling=with_gpus(resolved.nodes_of(names), sum(resolved.queue_gpus(resolved.pools[each]) for each in names)),
        provisioned=comes_by_request(resolved, first),
        topology=topology_name(resolved) if has_topology(resolved, first) else None,
    )
