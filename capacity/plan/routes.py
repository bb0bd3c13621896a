"""Routes: how the pods of each class get to the capacity that they may use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.catalog.node_labels import COMPUTE_CLASS_LABEL
from capacity.catalog.platform import Platform
from capacity.catalog.workload_classes import Fallback, Removal
from capacity.plan.flavors import TOPOLOGY_ANNOTATION, comes_by_request, flavor_name
from capacity.plan.model import FlavorPlan, PoolPlan, PriorityPlan, RoutePlan, RoutePool
from capacity.plan.pools import shared_labels

if TYPE_CHECKING:
    from capacity.catalog.workload_classes import WorkloadClass
    from capacity.plan.resolved_settings import ResolvedSettings

RUN_TIME_ANNOTATION = "provreq.kueue.x-k8s.io/maxRunDurationSeconds"
"""On a job: Kueue hands it on as the run time of the job's ProvisioningRequest. Jobs with other capacity carry it in vain, and no harm."""

STAY_ANNOTATION = "cluster-autoscaler.kubernetes.io/safe-to-evict"
"""On pods, with "false": the cluster autoscaler leaves their nodes. By itself it moves pods off nodes of which less than half is asked
for, and GKE keeps requested nodes for ten minutes only, then they count as any other.

https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md, "What types of pods can prevent CA from removing a node?";
https://docs.cloud.google.com/kubernetes-engine/docs/how-to/provisioningrequest
"""


def priority_plans(resolved: ResolvedSettings) -> tuple[PriorityPlan, ...]:
    """The PriorityClasses of the classes that pools serve, the highest first."""
    classes = sorted(resolved.classes.values(), key=lambda each: (-each.priority, each.priority_class))
    return tuple(PriorityPlan(each.priority_class, each.priority, each.preempts, each.description) for each in classes)


def route_plans(resolved: ResolvedSettings, pools: tuple[PoolPlan, ...], flavors: tuple[FlavorPlan, ...]) -> tuple[RoutePlan, ...]:
    """A route for each class that pools serve, by name."""
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
    on_request = any(comes_by_request(resolved, pool) for pool in own)
    # The jobs of a class ask for a topology all or none (an alignment check sees to it): a flavor with one takes no others.
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
    )


def _stay_until_done(resolved: ResolvedSettings, pools: list[PoolPlan]) -> bool:
    """Whether pods hold their nodes where Karpenter's pools do it for them: nodes go when they are empty.

    Not on Autopilot: there the annotation asks for pods of another sort, with extended run time.
    """
    on_gke = resolved.settings.cloud is Platform.GKE and not resolved.autopilot
    return on_gke and bool(pools) and all(pool.removal is Removal.EMPTY for pool in pools)
