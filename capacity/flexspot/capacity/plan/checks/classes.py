"""Checks of workload classes and the pools that serve them, and of names that are taken."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.capacity_type import CapacityType, OrderConflictError, merged_order
from flexspot.capacity.catalog.platform import MEASUREMENT_NAMESPACE, QUEUEING_NAMESPACE, Platform
from flexspot.capacity.catalog.workload_classes import Fallback
from flexspot.capacity.plan.cpu_work import OTHER_WORK
from flexspot.capacity.values.errors import SettingsProblem, nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flexspot.capacity.catalog.workload_classes import WorkloadClass
    from flexspot.capacity.plan.resolve import ResolvedPool, ResolvedSettings

_TAKEN_NAMESPACES = frozenset(
    {
        "default",
        "kueue-system",
        "karpenter",
        "gmp-public",
        "gmp-system",
        "gke-connect",
        "gke-gmp-system",
        "gke-system",
        "gkebackup",
        "config-management-system",
        "monitoring",
        "cert-manager",
        MEASUREMENT_NAMESPACE,
        QUEUEING_NAMESPACE,
    }
)
_TAKEN_PREFIXES = ("kube-", "gke-managed-")
"""Prefixes of Kubernetes' and GKE's own namespaces."""

_TAKEN_POOLS: dict[Platform, tuple[tuple[str, ...], tuple[str, ...]]] = {
    # The pools of the controllers, of GKE's first nodes, and of nodes that it adds by itself.
    Platform.GKE: (("system", "default-pool"), ("nap-",)),
    # The pool for work without GPUs.
    **dict.fromkeys((Platform.EKS, Platform.LOCAL), ((OTHER_WORK,), ())),
}
"""Names, and prefixes of names, of pools that exist in addition to the plan's."""


def names_are_unique(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse a name that two pools, teams or cohorts share, and a PriorityClass that two classes share."""
    settings = resolved.settings
    found = [
        [(f"pools.{number}.name", each.name) for number, each in enumerate(settings.pools)],
        [(f"teams.{number}.name", each.name) for number, each in enumerate(settings.teams)],
        [("cohort", settings.cohort), *((f"cohorts.{number}.name", each.name) for number, each in enumerate(settings.cohorts))],
        [(f"classes.{name}.priority_class", each.priority_class) for name, each in resolved.known_classes.items()],
    ]
    for named in found:
        first: dict[str, str] = {}
        for path, name in named:
            if name in first:
                yield SettingsProblem(
                    path,
                    repr(name),
                    f"is already used by {first[name].rpartition('.')[0] or first[name]}",
                    "choose another name",
                    "duplicate-name",
                )
            first.setdefault(name, path)


def alternatives_are_other_machines(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse an alternative that repeats the pool's machine or another alternative."""
    for number, pool in enumerate(resolved.settings.pools):
        alternatives: tuple[str, ...] = getattr(pool, "alternatives", ())
        for place, name in enumerate(alternatives):
            if name in (pool.machine, *alternatives[:place]):
                path = f"pools.{number}.alternatives.{place}"
                yield SettingsProblem(path, repr(name), "is listed twice", "remove one of them", "duplicate-name")


def is_taken_namespace(name: str) -> bool:
    """Return whether the cluster or a controller uses a namespace of this name."""
    return name in _TAKEN_NAMESPACES or name.startswith(_TAKEN_PREFIXES)


def teams_do_not_take_a_namespace_of_the_cluster(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse a team with the name of a system namespace: a team's name is its namespace."""
    for number, team in enumerate(resolved.settings.teams):
        if is_taken_namespace(team.name):
            path = f"teams.{number}.name"
            yield SettingsProblem(path, repr(team.name), "is the name of a system namespace", "choose another name", "reserved-name")


def pods_of_queued_classes_preempt_none(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse preemption by pods of queued classes.

    The scheduler does not know shares. Before a node is added, it would make room for an admitted pod by evicting pods that run on
    guaranteed shares of other teams.
    """
    for name, each in resolved.known_classes.items():
        if each.queued and each.preempts:
            problem = "lets pods of a queued class preempt pods on GPUs that are guaranteed to other teams"
            remedy = "set it to false: Kueue decides by quota which queued work is preempted"
            yield SettingsProblem(f"classes.{name}.preempts", "true", problem, remedy, "queued-class-preempts")


def priority_classes_are_not_the_clusters_own(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse names of PriorityClasses that Kubernetes reserves: they begin with system-."""
    for name, each in resolved.known_classes.items():
        if each.priority_class.startswith("system-"):
            path = f"classes.{name}.priority_class"
            yield SettingsProblem(path, repr(each.priority_class), "is reserved for Kubernetes", "choose another name", "reserved-name")


def flavors_do_not_take_a_pools_name(pool: ResolvedPool) -> Iterator[SettingsProblem]:
    """Refuse pool names that begin with any-, the prefix of flavors of several pools."""
    if pool.name.startswith("any-"):
        remedy = "choose a name that does not begin with any-"
        yield SettingsProblem(
            f"{pool.path}.name",
            repr(pool.name),
            "begins with any-, the prefix of flavors that cover several pools",
            remedy,
            "reserved-name",
        )


def pools_do_not_take_a_name_of_the_platform(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse names of pools that the cluster creates itself. A second pool of the same name would fail in the middle of the deployment."""
    names, prefixes = _TAKEN_POOLS.get(resolved.settings.cloud, ((), ()))
    for pool in resolved.pools.values():
        if pool.name in names or pool.name.startswith(prefixes):
            yield SettingsProblem(
                f"{pool.path}.name", repr(pool.name), "is a pool name of the cluster itself", "choose another name", "reserved-name"
            )


def pools_serve_classes_that_exist(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse classes in `serves` that do not exist or are listed twice."""
    for number, pool in enumerate(resolved.settings.pools):
        for place, name in enumerate(pool.serves):
            path = f"pools.{number}.serves.{place}"
            if name in pool.serves[:place]:
                yield SettingsProblem(path, repr(name), "is listed twice", "remove one of them", "duplicate-name")
            elif name not in resolved.known_classes and name not in resolved.settings.classes:
                yield SettingsProblem(path, repr(name), "is not a class", nearest(name, resolved.known_classes), "unknown-class")


def every_class_has_a_pool(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse a class in the settings that no pool serves: its work would never run."""
    for name in resolved.settings.classes:
        if name in resolved.known_classes and name not in resolved.classes:
            pools = ", ".join(pool.name for pool in resolved.settings.pools)
            remedy = f"add it to `serves` of a pool ({pools}), or leave it out"
            yield SettingsProblem(f"classes.{name}", "", "no pool serves it", remedy, "class-without-pool")


def pools_are_in_the_order_of_their_classes(resolved: ResolvedSettings, pool: ResolvedPool) -> Iterator[SettingsProblem]:
    """Refuse a pool whose capacity type is not in the order of a class that it serves.

    Falling back on on-demand must be explicit, in the class and in a pool.
    """
    for name, each in _served(resolved, pool):
        if pool.settings.capacity_type not in each.capacity:
            problem = f"class {name} does not use {pool.settings.capacity_type} capacity; its order is {', '.join(each.capacity)}"
            remedy = f"add {pool.settings.capacity_type} to classes.{name}.capacity, at the right place in the order"
            yield SettingsProblem(f"{pool.path}.serves", name, problem, remedy, "capacity-outside-class-order")


def a_shared_pool_says_how_it_is_split(resolved: ResolvedSettings, pool: ResolvedPool) -> Iterator[SettingsProblem]:
    """Refuse a pool with queued and unqueued classes unless the GPUs of the unqueued ones are limited.

    Otherwise the queue would promise GPUs that an unqueued class has taken.
    """
    if pool.queued and pool.unqueued and not resolved.unqueued_gpus[pool.name]:
        problem = "mixes queued and unqueued classes"
        remedy = f"split the pool, or set in unqueued.{pool.name} how many of its GPUs each team's unqueued classes may use"
        written = ", ".join(pool.settings.serves)
        yield SettingsProblem(f"{pool.path}.serves", written, problem, remedy, "shared-pool-not-split")


def a_pool_has_one_decider(resolved: ResolvedSettings, pool: ResolvedPool) -> Iterator[SettingsProblem]:
    """Refuse a pool whose classes fall back for different reasons: quota and stock-outs would reverse each other's decisions."""
    deciders = {each.fallback for _, each in _served(resolved, pool)}
    if len(deciders) > 1:
        written = ", ".join(f"{name} ({each.fallback})" for name, each in _served(resolved, pool))
        problem = "the classes of a pool must have the same fallback"
        yield SettingsProblem(f"{pool.path}.serves", written, problem, "split the pool", "shared-pool-with-conflicting-classes")
    unqueued = [name for name, each in _served(resolved, pool) if not each.queued]
    if pool.settings.capacity_type is CapacityType.QUEUED and (Fallback.STOCK_OUT in deciders or unqueued):
        problem = "a pool with queued capacity can only serve classes that wait in a queue and fall back by quota"
        remedy = "list only queued classes with fallback: quota"
        written = ", ".join(pool.settings.serves)
        yield SettingsProblem(f"{pool.path}.serves", written, problem, remedy, "queued-capacity-without-queue")


def stock_outs_are_watched_where_flavors_are_pools(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse the watch for stock-outs where it cannot work.

    It maps a flavor to a pool by the pool's nodes. Autopilot has no pools, and the lab's fake nodes run no pods.
    """
    if not resolved.settings.queueing.stock_outs.watch:
        return
    path, local = "queueing.stock_outs.watch", resolved.settings.cloud is Platform.LOCAL
    if local or resolved.autopilot:
        problem = (
            "needs nodes that run pods, but the lab's nodes are fake"
            if local
            else "needs node pools to know which capacity is out of stock, but Autopilot has none"
        )
        yield SettingsProblem(path, "true", problem, "leave it out", "stock-outs-without-pools")


def orders_do_not_contradict(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse classes with opposite orders of capacity types.

    A queue has one order of flavors and a pool one weight, so the classes that share them need compatible orders.
    """
    groups = {
        "queued classes": {name: each.capacity for name, each in resolved.classes.items() if each.queued},
        "classes with fallback: stock-out": {
            name: each.capacity for name, each in resolved.classes.items() if each.fallback is Fallback.STOCK_OUT
        },
    }
    for group, orders in groups.items():
        try:
            if orders:
                merged_order(orders.values())
        except OrderConflictError as conflict:
            pair = _opposed(orders.values()) or conflict.capacity_types
            written = "; ".join(f"{name}: {', '.join(order)}" for name, order in orders.items())
            problem = f"{group} list {' and '.join(pair)} in opposite orders"
            remedy = "use the same order: a queue tries its flavors in one order for all work"
            yield SettingsProblem("classes", written, problem, remedy, "classes-disagree-on-order")


def _opposed(orders: Iterable[tuple[CapacityType, ...]]) -> tuple[CapacityType, ...]:
    """Return two capacity types that two orders have the other way round, or none if only three or more orders conflict."""
    seen: set[tuple[CapacityType, CapacityType]] = set()
    for order in orders:
        for pair in combinations(order, 2):
            if (pair[1], pair[0]) in seen:
                return tuple(sorted(pair))
            seen.add(pair)
    return ()


def compute_classes_do_not_share_pools(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse compute classes that share some but not all of their pools.

    One flavor covers all pools of a compute class. A pool in only one of two compute classes would be promised to both.
    """
    by_gpu: dict[str, dict[str, frozenset[str]]] = {}
    for pool in resolved.pools.values():
        climbing = frozenset(name for name, each in _served(resolved, pool) if each.fallback is Fallback.STOCK_OUT)
        if climbing and (pool.queued or resolved.words.compute_class_label):
            by_gpu.setdefault(pool.gpu.model, {})[pool.name] = climbing
        if resolved.words.compute_class_label and len(climbing) > 1:
            problem = "a pool can be in only one compute class"
            written = ", ".join(sorted(climbing))
            yield SettingsProblem(f"{pool.path}.serves", written, problem, "split the pool", "shared-pool-with-conflicting-classes")
    if resolved.words.compute_class_label:
        yield from _one_gpu_for_each_compute_class(resolved)
        return
    for gpu, pools in by_gpu.items():
        if len(set(pools.values())) > 1:
            written = "; ".join(f"{name}: {', '.join(sorted(classes))}" for name, classes in sorted(pools.items()))
            problem = f"queued pools of {gpu} serve different classes with fallback: stock-out, but one flavor would cover them all"
            yield SettingsProblem("pools", written, problem, "let them serve the same classes", "shared-pool-with-conflicting-classes")


def _one_gpu_for_each_compute_class(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    for name, each in resolved.classes.items():
        gpus = sorted({pool.gpu.name for pool in resolved.pools.values() if name in pool.settings.serves})
        if each.fallback is Fallback.STOCK_OUT and each.queued and len(gpus) > 1:
            problem = "its single flavor would put different GPUs under one quota"
            remedy = "split it into one class for each GPU type"
            yield SettingsProblem(f"classes.{name}", ", ".join(gpus), problem, remedy, "compute-class-with-several-gpus")


def a_class_has_one_kind_of_accelerator(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse a class whose pools have different kinds of accelerators. A pod requests one resource, so it could run in only one of them."""
    for name in resolved.classes:
        pools = sorted((pool for pool in resolved.pools.values() if name in pool.settings.serves), key=lambda pool: pool.name)
        kinds = dict.fromkeys(pool.gpu.accelerator.resource for pool in pools)
        if len(kinds) > 1:
            of_kind = {kind: [pool.name for pool in pools if pool.gpu.accelerator.resource == kind] for kind in kinds}
            written = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in of_kind.items())
            problem = "is served by pools with different accelerators, but its pods request only one of them"
            remedy = "add a class for each accelerator to `classes`, and list it in `serves` of the pools with that accelerator"
            yield SettingsProblem(f"classes.{name}", written, problem, remedy, "class-with-several-accelerators")


def what_is_interrupted_can_go_on(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Warn about long runs on Spot without checkpoints: a reclaimed node loses all their work."""
    for name, each in resolved.classes.items():
        on_spot = CapacityType.SPOT in each.capacity
        if on_spot and not each.checkpoint and (each.run_limit_hours is None or each.run_limit_hours > 24):  # noqa: PLR2004 -- a day
            problem = "its work may run for more than a day on Spot without checkpoints"
            remedy = "set checkpoint: true, or run_limit_hours to 24 or less"
            yield SettingsProblem(f"classes.{name}", "", problem, remedy, "long-spot-run-without-checkpoint", refused=False)


def _served(resolved: ResolvedSettings, pool: ResolvedPool) -> list[tuple[str, WorkloadClass]]:
    return [(name, resolved.classes[name]) for name in sorted(set(pool.settings.serves)) if name in resolved.classes]
