"""Flavors, cohorts, queues and routes: names of capacity, its owners, and how pods reach it."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.capacity_type import RunTimeSetting
from flexspot.capacity.catalog.node_labels import CLASS_LABEL, COMPUTE_CLASS_LABEL, FLAVOR_LABEL, GPU_RESOURCE, WHOLE_NODE_TAINT
from flexspot.capacity.catalog.platform import Platform
from flexspot.capacity.catalog.workload_classes import Fallback, Removal
from flexspot.capacity.plan.model import (
    Amount,
    CohortPlan,
    ComputeClassPlan,
    FlavorPlan,
    FlavorQuota,
    PoolPlan,
    PriorityPlan,
    QueuePlan,
    RoutePlan,
    RoutePool,
    TopologyPlan,
)
from flexspot.capacity.plan.pools import shared_flavor
from flexspot.capacity.settings.teams import Stop

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from flexspot.capacity.catalog.workload_classes import WorkloadClass
    from flexspot.capacity.plan.resolve import ResolvedSettings
    from flexspot.capacity.settings.platform import PlatformSettings
    from flexspot.capacity.settings.teams import CohortSettings, GpusOfPools, TeamSettings


TOPOLOGY_ANNOTATION = "kueue.x-k8s.io/podset-preferred-topology"
"""Annotation on the pods of a job: Kueue places them as close together as there is room. Its value is the label of the lowest level to try.
"""


def topology_name(resolved: ResolvedSettings) -> str:
    """Return the name of the platform's only Topology, whose levels cannot be changed."""
    return f"{resolved.settings.cloud}-network"


def has_topology(resolved: ResolvedSettings, pool: PoolPlan) -> bool:
    """Return whether Kueue places the pods of a pool."""
    return bool(getattr(resolved.pools[pool.name].settings, "topology", False))


def topology_plans(resolved: ResolvedSettings, flavors: tuple[FlavorPlan, ...]) -> tuple[TopologyPlan, ...]:
    """Return the platform's Topology, if a flavor has it."""
    if all(flavor.topology is None for flavor in flavors):
        return ()
    return (TopologyPlan(topology_name(resolved), resolved.words.topology_levels),)


def fixed_flavor_name(pool: PoolPlan, topology: str) -> str:
    """Return the name of a flavor with a topology, which changes with its labels and tolerations.

    Kueue allows neither to change on such a flavor (CEL rules of ResourceFlavor in v0.19), nor the flavor to be deleted while a queue names
    it. With another name the new flavor is created, the queues move to it, and the old one is deleted.
    """
    fixed = json.dumps([topology, sorted(pool.selector.items()), [[each.key, each.value, each.effect] for each in pool.taints]])
    return f"{pool.name}-{hashlib.sha256(fixed.encode()).hexdigest()[:6]}"


def flavor_plans(resolved: ResolvedSettings, pools: tuple[PoolPlan, ...]) -> tuple[FlavorPlan, ...]:
    """Return the flavors in the order in which queues try them: by the classes' order of capacity types, then by name."""
    members: dict[str, list[PoolPlan]] = {}
    for pool in pools:
        if pool.name in resolved.queued_pools:
            members.setdefault(flavor_name(resolved, pool), []).append(pool)
    first = {name: min(resolved.queue_ranks[pool.capacity_type] for pool in those) for name, those in members.items()}
    return tuple(_flavor(resolved, name, tuple(members[name])) for name in sorted(members, key=lambda name: (first[name], name)))


def flavor_name(resolved: ResolvedSettings, pool: PoolPlan) -> str:
    """Return the flavor of a queued pool: the pool's own, or that of all pools among which the autoscaler chooses at a stock-out."""
    if shared := shared_flavor(resolved, resolved.pools[pool.name]):
        return shared
    return fixed_flavor_name(pool, topology_name(resolved)) if has_topology(resolved, pool) else pool.name


def provisioned_on_request(resolved: ResolvedSettings, pool: PoolPlan) -> bool:
    """Return whether the nodes of a pool come only through a ProvisioningRequest. Only GKE has such pools."""
    return resolved.facts[pool.capacity_type].run_time_set_by is RunTimeSetting.PROVISIONING_REQUEST


def _flavor(resolved: ResolvedSettings, name: str, pools: tuple[PoolPlan, ...]) -> FlavorPlan:
    first = pools[0]
    if shared_flavor(resolved, resolved.pools[first.name]) is None:
        labels = first.selector
    elif compute_class := first.labels.get(COMPUTE_CLASS_LABEL):
        # GKE rejects pods that combine a compute class with other GKE selectors.
        labels = {COMPUTE_CLASS_LABEL: compute_class}
    else:
        # The autoscaler decides which pool it is.
        labels = {**resolved.pools[first.name].device_labels, FLAVOR_LABEL: name}
    taints = sorted({taint for pool in pools for taint in pool.taints}, key=lambda taint: (taint.key, taint.value))
    # Pods tolerate these by themselves. As tolerations of the flavor they would let in every class, and pods of any size.
    closed = tuple(taint for taint in taints if taint.key in {CLASS_LABEL, WHOLE_NODE_TAINT})
    names = [pool.name for pool in pools]
    return FlavorPlan(
        name=name,
        pools=tuple(names),
        node_labels=dict(sorted(labels.items())),
        node_taints=closed,
        tolerated=tuple(taint for taint in taints if taint not in closed),
        ceiling=with_gpus(_nodes(resolved, names), sum(resolved.queue_gpus(resolved.pools[each]) for each in names)),
        provisioned=provisioned_on_request(resolved, first),
        topology=topology_name(resolved) if has_topology(resolved, first) else None,
        resource=first.resource,
    )


def with_gpus(nodes: Sequence[Amount], gpus: int) -> Amount:
    """Return `gpus` with the most vCPU and memory that any of the nodes has for this many GPUs, rounded up for parts of a node.

    A job that fills such a node then fits into the quota of its GPUs, whichever kind of node it gets.
    """
    return Amount(
        gpus, max(-(-gpus * node.vcpu // node.gpus) for node in nodes), max(-(-gpus * node.memory_mib // node.gpus) for node in nodes)
    )


def _nodes(resolved: ResolvedSettings, pools: Iterable[str]) -> list[Amount]:
    return [node for name in pools for node in resolved.pools[name].nodes]


LOCAL_QUEUE = "default"
"""Kueue assigns Jobs without a queue label to the LocalQueue of this name in their namespace."""


def stop_of(settings: PlatformSettings, team: TeamSettings) -> Stop:
    """Return the stricter stop policy of those for all queues and for the team's queue."""
    return max(settings.queueing.stop, team.stop, key=list(Stop).index)


def queue_plans(resolved: ResolvedSettings, flavors: tuple[FlavorPlan, ...]) -> tuple[QueuePlan, ...]:
    """Return a ClusterQueue and a LocalQueue for each team with shares of queued pools, by name."""
    return tuple(
        QueuePlan(
            cluster_queue=team.name,
            cohort=team.cohort or resolved.settings.cohort,
            weight=team.weight,
            namespace=team.name,
            local_queue=LOCAL_QUEUE,
            quotas=_quotas(resolved, team, flavors),
            moves_on=_moves_on(resolved, team),
            stop=stop_of(resolved.settings, team),
        )
        for team in sorted(resolved.settings.teams, key=lambda each: each.name)
        if team.shares
    )


def cohort_plans(resolved: ResolvedSettings, flavors: tuple[FlavorPlan, ...]) -> tuple[CohortPlan, ...]:
    """Return the cohort tree, the root first. The root owns the quota that belongs to no team or cohort: any team may borrow it."""
    settings = resolved.settings
    groups = sorted(settings.cohorts, key=lambda each: each.name)
    owned: dict[str, int] = {}
    for owner in (*groups, *settings.teams):
        for quota in _quotas(resolved, owner, flavors):
            owned[quota.flavor] = owned.get(quota.flavor, 0) + quota.nominal.gpus
    rest = tuple(
        FlavorQuota(flavor.name, _part(resolved, flavor, left))
        for flavor in flavors
        if (left := flavor.ceiling.gpus - owned.get(flavor.name, 0)) > 0
    )
    root = CohortPlan(settings.cohort, None, 1, rest)
    return (
        root,
        *(CohortPlan(each.name, each.parent or settings.cohort, each.weight, _quotas(resolved, each, flavors)) for each in groups),
    )


def _quotas(resolved: ResolvedSettings, owner: TeamSettings | CohortSettings, flavors: tuple[FlavorPlan, ...]) -> tuple[FlavorQuota, ...]:
    return tuple(
        FlavorQuota(
            flavor.name,
            _part(resolved, flavor, sum(owner.shares.get(pool, 0) for pool in flavor.pools)),
            _limit(resolved, flavor, owner.borrowing_limits, {pool: _rest(resolved, owner, pool) for pool in flavor.pools}),
            _limit(resolved, flavor, owner.lending_limits, owner.shares),
        )
        for flavor in flavors
        if any(pool in owner.shares for pool in flavor.pools)
    )


def _moves_on(resolved: ResolvedSettings, team: TeamSettings) -> bool:
    """Return whether missing quota moves some of the team's work on to the next flavor. After a stock-out the queue keeps its flavor."""
    classes = (each for pool in team.shares for each in resolved.pools[pool].classes)
    return any(each.queued and each.fallback is Fallback.QUOTA for each in classes)


def _rest(resolved: ResolvedSettings, owner: TeamSettings | CohortSettings, pool: str) -> int:
    """Return the most of a pool that an owner could borrow: all that is not its own."""
    return max(0, resolved.queue_gpus(resolved.pools[pool]) - owner.shares.get(pool, 0))


def _limit(resolved: ResolvedSettings, flavor: FlavorPlan, limits: GpusOfPools, unlimited: GpusOfPools) -> Amount | None:
    """Return the limit of a flavor as the sum of its pools' limits. A pool without a limit adds its `unlimited` value."""
    if not any(pool in limits for pool in flavor.pools):
        return None
    return _part(resolved, flavor, sum(limits.get(pool, unlimited.get(pool, 0)) for pool in flavor.pools))


def _part(resolved: ResolvedSettings, flavor: FlavorPlan, gpus: int) -> Amount:
    return with_gpus(_nodes(resolved, flavor.pools), gpus)


RUN_TIME_ANNOTATION = "provreq.kueue.x-k8s.io/maxRunDurationSeconds"
"""Annotation on a job: Kueue uses it as the run time of the job's ProvisioningRequest. It has no effect on other capacity."""

STAY_ANNOTATION = "cluster-autoscaler.kubernetes.io/safe-to-evict"
"""Annotation on pods: with "false" the cluster autoscaler keeps their nodes.

By default it moves pods off nodes with less than half of their resources requested. GKE keeps requested nodes for ten minutes only; after
that they count as any other.

https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md, "What types of pods can prevent CA from removing a node?";
https://docs.cloud.google.com/kubernetes-engine/docs/how-to/provisioningrequest
"""


KARPENTER_STAY_ANNOTATION = "karpenter.sh/do-not-disrupt"
"""Annotation on pods: with "true" Karpenter does not consolidate their node, and its drain waits for them up to the pool's limit.

https://karpenter.sh/docs/concepts/disruption/#pod-level-controls
"""


def priority_plans(resolved: ResolvedSettings) -> tuple[PriorityPlan, ...]:
    """Return the PriorityClasses of the classes that pools serve, the highest first."""
    classes = sorted(resolved.classes.values(), key=lambda each: (-each.priority, each.priority_class))
    return tuple(PriorityPlan(each.priority_class, each.priority, each.preempts, each.description) for each in classes)


def route_plans(resolved: ResolvedSettings, pools: tuple[PoolPlan, ...], flavors: tuple[FlavorPlan, ...]) -> tuple[RoutePlan, ...]:
    """Return a route for each class that pools serve, by name."""
    placed = {flavor.name for flavor in flavors if flavor.topology is not None}
    return tuple(_route(resolved, name, each, pools, placed) for name, each in resolved.classes.items())


def _route(
    resolved: ResolvedSettings, name: str, workload_class: WorkloadClass, pools: tuple[PoolPlan, ...], placed: set[str]
) -> RoutePlan:
    ranks = {each: rank for rank, each in enumerate(workload_class.capacity)}
    own = sorted((pool for pool in pools if name in pool.serves), key=lambda pool: (ranks[pool.capacity_type], pool.name))
    by_compute_class = workload_class.fallback is Fallback.STOCK_OUT and resolved.words.compute_class_label is not None
    taints = sorted({taint for pool in own for taint in pool.taints}, key=lambda taint: (taint.key, taint.value))
    notices = [pool.notice_seconds for pool in own if pool.notice_seconds is not None]
    limits = [pool.max_run_seconds for pool in own if pool.max_run_seconds is not None]
    if workload_class.run_limit_hours is not None:
        limits.append(workload_class.run_limit_hours * 3600)
    route_pools = tuple(
        RoutePool(pool.name, pool.capacity_type, flavor_name(resolved, pool) if workload_class.queued else None) for pool in own
    )
    run_seconds = min(limits, default=None)
    on_request = any(provisioned_on_request(resolved, pool) for pool in own)
    # Either all jobs of a class request a topology or none does (a check ensures it): a flavor with a topology takes no other jobs.
    close = any(route_pool.flavor in placed for route_pool in route_pools)
    selector = {COMPUTE_CLASS_LABEL: name} if by_compute_class else shared_labels(pool.labels for pool in own) if resolved.autopilot else {}
    return RoutePlan(
        workload_class=name,
        priority_class=workload_class.priority_class,
        queued=workload_class.queued,
        pools=route_pools,
        node_selector=selector,
        node_affinity=None if by_compute_class or resolved.autopilot else (resolved.words.pool_label, tuple(pool.name for pool in own)),
        tolerations=tuple(taints),
        grace_seconds=min([workload_class.grace_seconds, *notices]),
        max_run_seconds=run_seconds,
        checkpoint=workload_class.checkpoint,
        disruption_budget=workload_class.disruption_budget,
        job_annotations={RUN_TIME_ANNOTATION: str(run_seconds)} if on_request and run_seconds is not None else {},
        pod_annotations=({STAY_ANNOTATION: "false"} if on_request or _stay_until_done(resolved, own) else {})
        | ({TOPOLOGY_ANNOTATION: resolved.words.topology_levels[-1]} if close else {}),
        # A check ensures that all have the same.
        resource=own[0].resource if own else GPU_RESOURCE,
    )


def _stay_until_done(resolved: ResolvedSettings, pools: list[PoolPlan]) -> bool:
    """Return whether pods must keep their nodes by annotation. Karpenter does this by itself for pools whose nodes are removed when empty.

    Not on Autopilot, where the annotation requests another kind of pod, with extended run time.
    """
    on_gke = resolved.settings.cloud is Platform.GKE and not resolved.autopilot
    return on_gke and bool(pools) and all(pool.removal is Removal.EMPTY for pool in pools)


def shared_labels(selectors: Iterable[dict[str, str]]) -> dict[str, str]:
    """Return the labels that all of `selectors` have with the same value.

    The autoscaler reads each key once. An affinity for several values of a key hides the selector for one of them that Kueue adds, and the
    pod would request any GPU. Source: GoogleCloudPlatform/cluster-autoscaler of 2026-08, pkg/podrequirements, GetRequirements.
    """
    first, *others = selectors
    return {key: value for key, value in sorted(first.items()) if all(each.get(key) == value for each in others)}


_LONGEST_DELAY_MINUTES = 1440
"""The longest delay of a compute class (ComputeClass cloud.google.com/v1, autoscalingPolicy.consolidationDelayMinutes)."""


def compute_class_plans(resolved: ResolvedSettings, routes: tuple[RoutePlan, ...]) -> tuple[ComputeClassPlan, ...]:
    """Return a compute class for each class that moves on at a stock-out, by name.

    Every priority is a pool of the plan: one that GKE created by itself would have no ceiling. On Autopilot GKE creates all nodes.
    """
    if resolved.words.compute_class_label is None:
        return ()
    return tuple(
        ComputeClassPlan(route.workload_class, tuple(route_pool.pool for route_pool in route.pools), _delay(resolved, route.workload_class))
        for route in routes
        if resolved.classes[route.workload_class].fallback is Fallback.STOCK_OUT
    )


def _delay(resolved: ResolvedSettings, workload_class: str) -> int:
    seconds = resolved.classes[workload_class].disruption.idle_seconds
    return max(1, min(_LONGEST_DELAY_MINUTES, -(-seconds // 60)))
