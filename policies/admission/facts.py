"""What the API server is told of the platform's pools and queues, a plan in few texts: the variable `facts` of the policies.

By key:

- `way.NAME`: nodes that pods can land on, directly or through a flavor. In its lines: the pool as messages call it; the flavor likewise
  (empty: none); the seconds that pods have before the cloud takes a node back (0: it does not); whether the flavor's labels say that it
  does; then a line `flex-start` if the nodes are of that capacity, which ends after seven days, a line `label KEY=VALUE` for each label of
  the nodes, `via KEY=VALUE` for each label of the flavor, and `taint KEY=VALUE:EFFECT` for each taint that pods must tolerate themselves.
- `queue.NAMESPACE.LOCALQUEUE`: the names of the ways that a queue leads to, a line each; `direct`: those of pods that go to no queue.
- `most-gpus`, and `most-gpus.PRIORITYCLASS`: the most GPUs that a node has, of all pools and of those of a workload class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.catalog.capacity_type import CapacityType
from capacity.catalog.node_labels import COMPUTE_CLASS_LABEL, GKE_QUEUED_LABEL, GKE_SPOT_LABEL, GPU_RESOURCE
from capacity.catalog.platform import Platform
from policies.ways import SPOT_LABELS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from capacity.plan.model import FlavorPlan, Plan, PoolPlan, Taint

WAY, QUEUE, DIRECT = "way.", "queue.", "direct"
LABEL, VIA, TAINT = "label ", "via ", "taint "
NAMES_SPOT = "names-spot"
FLEX_START = "flex-start"
MOST_GPUS = "most-gpus"

_MARKS = {GKE_SPOT_LABEL: "true"}
"""What GKE writes on every Spot node, beside the labels that the plan goes by."""

_FLEX = frozenset({CapacityType.FLEX_START, CapacityType.QUEUED})

_GIVEN = frozenset({GPU_RESOURCE, GKE_QUEUED_LABEL})
"""Taints whose toleration the cloud adds by itself; see policies.placement."""


def facts_of(plan: Plan) -> Mapping[str, str]:
    """What follows from a plan, by key."""
    pools = {pool.name: pool for pool in plan.pools}
    found = {f"{WAY}{pool.name}": _way(plan, pool, None) for pool in plan.pools}
    for flavor in plan.flavors:
        found |= {f"{WAY}{_through(flavor, name)}": _way(plan, pools[name], flavor) for name in flavor.pools}
    found[DIRECT] = "\n".join(pools)
    flavors = {flavor.name: flavor for flavor in plan.flavors}
    for queue in plan.queues:
        leads_to = (flavors[quota.flavor] for quota in queue.quotas)
        found[f"{QUEUE}{queue.namespace}.{queue.local_queue}"] = "\n".join(
            _through(flavor, name) for flavor in leads_to for name in flavor.pools
        )
    found[MOST_GPUS] = str(max(pool.gpus_per_node for pool in plan.pools))
    for route in plan.routes:
        if route.rungs:
            most = max(pools[rung.pool].gpus_per_node for rung in route.rungs)
            found[f"{MOST_GPUS}.{route.priority_class}"] = str(most)
    return dict(sorted(found.items()))


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


def _own_tolerations(pool: PoolPlan, flavor: FlavorPlan | None) -> Iterator[Taint]:
    """The taints that pods must tolerate by themselves, each once."""
    given = _GIVEN | ({COMPUTE_CLASS_LABEL} & pool.selector.keys())
    added = {taint.key for taint in flavor.tolerated} if flavor else set[str]()
    kept = [taint for taint in pool.taints if taint.key not in given | added]
    yield from dict.fromkeys([*kept, *(flavor.node_taints if flavor else ())])
