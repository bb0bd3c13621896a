"""Facts about the platform's pools and queues in the policies. rules.yaml has the CEL that reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexspot.capacity.catalog.accelerators import RESOURCES
from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.node_labels import (
    COMPUTE_CLASS_LABEL,
    GKE_QUEUED_LABEL,
    GKE_SPOT_LABEL,
    WHOLE_NODE_TAINT,
)
from flexspot.capacity.catalog.platform import Platform
from flexspot.policies.pods.scheduling_options import SPOT_LABELS

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from flexspot.capacity.plan.model import FlavorPlan, Plan, PoolPlan, Taint, TeamPlan


WAY, DIRECT, QUEUED = "way.", "direct", "queued"
LABEL, VIA, TAINT = "label ", "via ", "taint "
NAMES_SPOT = "names-spot"
FLEX_START = "flex-start"
MOST_GPUS = "most-gpus"

_MARKS = {GKE_SPOT_LABEL: "true"}
"""Labels that GKE sets on every Spot node, in addition to the labels in the plan."""

_FLEX = frozenset({CapacityType.FLEX_START, CapacityType.QUEUED})

_GIVEN = frozenset({*RESOURCES, GKE_QUEUED_LABEL})
"""Taints whose toleration the cloud adds by itself. See flexspot.policies.pods.placement."""


def facts_of(plan: Plan) -> Mapping[str, str]:
    """Return the facts of a plan that are the same for all teams, by key."""
    pools = {pool.name: pool for pool in plan.pools}
    found = {f"{WAY}{pool.name}": _way(plan, pool, None) for pool in plan.pools}
    for flavor in plan.flavors:
        found |= {f"{WAY}{_through(flavor, name)}": _way(plan, pools[name], flavor) for name in flavor.pools}
    found[DIRECT] = "\n".join(pools)
    if plan.queues or plan.cpu_work:
        found[QUEUED] = "true"
    found[MOST_GPUS] = str(max(pool.gpus_per_node for pool in plan.pools))
    for route in plan.routes:
        if route.pools:
            most = max(pools[route_pool.pool].gpus_per_node for route_pool in route.pools)
            found[f"{MOST_GPUS}.{route.priority_class}"] = str(most)
    return dict(sorted(found.items()))


QUEUES, PROJECTS, CONTAINER_LIMITS, UNQUEUED_POOLS, POD_SIZES = (
    f"flexspot.dev/{name}" for name in ("queues", "projects", "container-limits", "unqueued", "gpus-per-pod")
)
"""Annotations of a team's namespace, which the policies read. Only the platform's operators may change a namespace."""


def team_annotations(plan: Plan, team: TeamPlan) -> dict[str, str]:
    """Return the facts of a plan that differ between teams, as annotations of the team's namespace.

    QUEUES has `NAME=FLAVOR.POOL,...` for each queue. A queue for work without GPUs leads to no pool. UNQUEUED_POOLS has the pools that
    other work of the team may use. POD_SIZES has the numbers of GPUs that a queued pod may have, `whole-N` for all of a node.
    """
    flavors = {flavor.name: flavor for flavor in plan.flavors}
    queues = {
        queue.local_queue: [_through(flavors[quota.flavor], name) for quota in queue.quotas for name in flavors[quota.flavor].pools]
        for queue in plan.queues
        if queue.namespace == team.namespace
    }
    queues |= {queue.local_queue: [] for queue in plan.cpu_work.queues if queue.namespace == team.namespace} if plan.cpu_work else {}
    written = {
        QUEUES: " ".join(f"{name}={','.join(ways)}" for name, ways in sorted(queues.items())),
        PROJECTS: " ".join(sorted(team.projects)),
        CONTAINER_LIMITS: " ".join(f"{name}={most}" for name, most in team.container_limits.items()),
        UNQUEUED_POOLS: " ".join(team.unqueued_pools),
        POD_SIZES: " ".join(_pod_sizes(plan, {name for ways in queues.values() for name in ways})),
    }
    return {name: value for name, value in written.items() if value}


def _pod_sizes(plan: Plan, ways: Container[str]) -> list[str]:
    pools = {pool.name: pool for pool in plan.pools}
    sizes: set[tuple[int, str]] = set()
    for pool in (pools[name] for flavor in plan.flavors for name in flavor.pools if _through(flavor, name) in ways):
        most = pool.gpus_per_node
        is_whole = any(taint.key == WHOLE_NODE_TAINT for taint in pool.taints)
        sizes |= {(most, f"whole-{most}")} if is_whole else {(size, str(size)) for size in range(1, most + 1)}
    return [size for _, size in sorted(sizes)]


def _through(flavor: FlavorPlan, pool: str) -> str:
    return f"{flavor.name}.{pool}"


def _way(plan: Plan, pool: PoolPlan, flavor: FlavorPlan | None) -> str:
    of_flavor = flavor.node_labels if flavor else dict[str, str]()
    labels = {**pool.selector, **of_flavor, **(_MARKS if plan.cloud is Platform.GKE and pool.capacity_type is CapacityType.SPOT else {})}
    names_spot = any(of_flavor.get(key) in values for key, values in SPOT_LABELS.items())
    via = f"flavor {flavor.name}" if flavor else ""
    lines = [f"NodePool {pool.name}", via, str(pool.notice_seconds or 0), NAMES_SPOT if names_spot else ""]
    lines += [FLEX_START] if pool.capacity_type in _FLEX else []
    lines += [f"{LABEL}{key}={value}" for key, value in sorted(labels.items())]
    lines += [f"{VIA}{key}={value}" for key, value in sorted(of_flavor.items())]
    lines += [f"{TAINT}{taint.key}={taint.value}:{taint.effect.value}" for taint in _own_tolerations(pool, flavor)]
    return "\n".join(lines)


def pool_lines(plan: Plan, pool: PoolPlan) -> tuple[str, ...]:
    """Return the name of a pool, its resource, and lines LABEL and TAINT for its nodes.

    Without taints whose toleration the cloud always adds. A pool of no compute class has that label without a value.
    """
    labels = [line for line in _way(plan, pool, None).split("\n") if line.startswith(LABEL)]
    of_no_class = [] if COMPUTE_CLASS_LABEL in pool.selector else [f"{LABEL}{COMPUTE_CLASS_LABEL}="]
    taints = [f"{TAINT}{taint.key}={taint.value}:{taint.effect.value}" for taint in pool.taints if taint.key not in _GIVEN]
    return (pool.name, f"resource {pool.resource}", *labels, *of_no_class, *taints)


def _own_tolerations(pool: PoolPlan, flavor: FlavorPlan | None) -> Iterator[Taint]:
    """Yield the taints that pods must tolerate by themselves, without duplicates."""
    given = _GIVEN | ({COMPUTE_CLASS_LABEL} & pool.selector.keys())
    added = {taint.key for taint in flavor.tolerated} if flavor else set[str]()
    kept = [taint for taint in pool.taints if taint.key not in given | added]
    yield from dict.fromkeys([*kept, *(flavor.node_taints if flavor else ())])
