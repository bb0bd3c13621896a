"""Where nodes are in the network, for flavors whose pods Kueue places by it."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from capacity.plan import TopologyPlan

if TYPE_CHECKING:
    from capacity.plan import FlavorPlan, PoolPlan
    from capacity.planning.ground import Ground

TOPOLOGY_ANNOTATION = "kueue.x-k8s.io/podset-preferred-topology"
"""On the pods of a job: place them as close together as there is room, from the label that is its value upwards."""


def topology_name(ground: Ground) -> str:
    """The one Topology of a platform, whose levels cannot be changed."""
    return f"{ground.settings.cloud}-network"


def has_topology(ground: Ground, pool: PoolPlan) -> bool:
    """Whether Kueue places the pods of a pool."""
    return bool(getattr(ground.pools[pool.name].settings, "topology", False))


def topology_plans(ground: Ground, flavors: tuple[FlavorPlan, ...]) -> tuple[TopologyPlan, ...]:
    """The platform's Topology, where a flavor has it."""
    if all(flavor.topology is None for flavor in flavors):
        return ()
    return (TopologyPlan(topology_name(ground), ground.words.topology_levels),)


def fixed_flavor_name(pool: PoolPlan, topology: str) -> str:
    """The name of a flavor with a topology: another one for other labels or tolerations.

    Kueue lets neither be changed on such a flavor (CEL rules of ResourceFlavor in v0.19), nor the flavor be deleted while a queue names it.
    With another name the new flavor is made, the queues move to it, and the old one goes.
    """
    fixed = json.dumps([topology, sorted(pool.selector.items()), [[each.key, each.value, each.effect] for each in pool.taints]])
    return f"{pool.name}-{hashlib.sha256(fixed.encode()).hexdigest()[:6]}"
