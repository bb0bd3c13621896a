"""Selection of a class's pools for a request, and the requests and selectors of its pods, for Kueue and the autoscaler."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.node_labels import COMPUTE_CLASS_LABEL
from flexspot.capacity.catalog.platform import Platform
from flexspot.capacity.plan.queues import shared_labels
from flexspot.capacity.plan.resolve import machines_of_pool
from flexspot.capacity.values.errors import SettingsProblem
from flexspot.capacity.values.quantities import count_quantity, mib_quantity
from flexspot.capacity.workloads.fast_network import fast_network_hint, has_fast_network, interfaces_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from flexspot.capacity.plan.model import Plan, PoolPlan, QueuePlan, RoutePlan, RoutePool, TeamPlan
    from flexspot.capacity.workloads.requests import WorkloadRequest


@dataclass(frozen=True)
class SuitablePools:
    """The pools that suit a request, or its problems."""

    route: RoutePlan
    """The class's route, narrowed to `pools`. Not narrowed if there are problems."""
    pools: tuple[PoolPlan, ...]
    flavor_labels: tuple[dict[str, str], ...]
    """As in Place."""
    problems: tuple[SettingsProblem, ...]


def wishes(request: WorkloadRequest) -> dict[str, str]:
    """Return the inputs with which the request chooses among the pools of its class, as written. Inputs that are not set are left out."""
    written = {
        "capacity": ", ".join(each.value for each in request.capacity),
        "gpu_models": ", ".join(request.gpu_models),
        "gpu_memory_gb": str(request.gpu_memory_gb or ""),
        "fast_network": "true" if request.fast_network else "",
    }
    return {wish: value for wish, value in written.items() if value}


def suitable_pools(plan: Plan, request: WorkloadRequest, team: TeamPlan, route: RoutePlan, queue: QueuePlan | None) -> SuitablePools:
    """Return the pools of the class in which the team has a share, that match the wishes, and whose nodes can hold a pod of the request.

    A wish is rejected if no selector can separate its pools from the rest of the class. GKE accepts no selector in addition to a compute
    class, and on Autopilot no label names a pool.
    """
    narrowing = _Narrowing(plan, request, team, route, queue)
    candidates = narrowing.suitable()
    pools = tuple(narrowing.pool_of[each.pool] for each in candidates)
    narrowed, flavor_labels = route, ()
    if not narrowing.problems:
        narrowed = _narrowed(route, candidates, pools, wished=bool(narrowing.unwished))
        flavor_labels = _flavor_labels(plan, narrowed, left_out=(each for each in narrowing.reachable if each not in candidates))
        if not _excludes(narrowed, (narrowing.pool_of[name] for name in narrowing.unwished)):
            narrowing.problems.append(_inseparable_problem(request, route, pools))
    return SuitablePools(narrowed, pools, flavor_labels, tuple(narrowing.problems))


def _narrowed(route: RoutePlan, candidates: tuple[RoutePool, ...], pools: tuple[PoolPlan, ...], *, wished: bool) -> RoutePlan:
    """Return the route without the excluded pools. Kueue skips a flavor whose pool the affinity does not name.

    Otherwise it would admit a pod of eight GPUs to nodes with two, where the pod would wait until it is evicted.
    """
    if candidates == route.pools:
        return route
    taints = sorted({taint for pool in pools for taint in pool.taints}, key=lambda taint: (taint.key, taint.value))
    affinity = None if route.node_affinity is None else (route.node_affinity[0], tuple(candidate.pool for candidate in candidates))
    unnamed = wished and all(pool.pool_label is None for pool in pools) and COMPUTE_CLASS_LABEL not in route.node_selector
    selector = shared_labels(pool.labels for pool in pools) if unnamed else route.node_selector
    return replace(route, pools=candidates, node_affinity=affinity, node_selector=selector, tolerations=tuple(taints))


def _flavor_labels(plan: Plan, route: RoutePlan, *, left_out: Iterable[RoutePool]) -> tuple[dict[str, str], ...]:
    """Return the labels of the remaining flavors if Kueue could not otherwise distinguish them from the excluded ones.

    Kueue reads only those keys of an affinity that its flavors have. A flavor of several pools, among which the autoscaler chooses, names
    none of them.
    """
    if route.node_affinity is None or not route.queued:
        return ()
    kept = list(dict.fromkeys(each.flavor for each in route.pools))
    others = {each.flavor for each in left_out} - set(kept)
    labels = {flavor.name: flavor.node_labels for flavor in plan.flavors}
    if all(route.node_affinity[0] in labels[name] for name in others if name):
        return ()
    return tuple(labels[name] for name in kept if name)


def _excludes(route: RoutePlan, left_out: Iterable[PoolPlan]) -> bool:
    """Return whether pods of the route stay off the nodes of the excluded pools."""
    if route.node_affinity is not None:
        return True
    return all(any(pool.labels.get(key) != value for key, value in route.node_selector.items()) for pool in left_out)


def _inseparable_problem(request: WorkloadRequest, route: RoutePlan, pools: tuple[PoolPlan, ...]) -> SettingsProblem:
    written = wishes(request)
    fitting, every = (", ".join(each) for each in ([pool.name for pool in pools], [each.pool for each in route.pools]))
    problem = f"is met only by {fitting}, but GKE chooses among all pools of class {route.workload_class} ({every})"
    remedy = "leave it out, or add a separate class for them to the stack"
    return SettingsProblem(", ".join(written), "; ".join(written.values()), problem, remedy)


class _Narrowing:
    """Excludes pools step by step. If none is left, `problems` names the wish that excluded the last.

    `reachable` are the pools in which the team has a share. `unwished` are the names of pools that a wish excluded, rather than their size.
    """

    def __init__(self, plan: Plan, request: WorkloadRequest, team: TeamPlan, route: RoutePlan, queue: QueuePlan | None) -> None:
        self.problems: list[SettingsProblem] = []
        self.pool_of = {pool.name: pool for pool in plan.pools}
        self.reachable: tuple[RoutePool, ...] = ()
        self.unwished: set[str] = set()
        self._plan, self._request, self._team, self._route, self._queue = plan, request, team, route, queue

    def suitable(self) -> tuple[RoutePool, ...]:
        self.reachable = self._of_team(self._route.pools)
        found = self.reachable
        for narrow in (self._of_capacity, self._of_models, self._of_memory, self._of_network):
            kept = narrow(found)
            self.unwished |= {each.pool for each in found if each not in kept}
            found = kept
        return self._with_room(self._in_slices(self._of_size(found)))

    def _of_capacity(self, candidates: tuple[RoutePool, ...]) -> tuple[RoutePool, ...]:
        wanted = self._request.capacity
        has = ", ".join(dict.fromkeys(candidate.capacity_type.value for candidate in candidates))
        problem = f"is not capacity of class {self._route.workload_class} in which team {self._team.name} has a share"
        remedy = f"use {has}, or add such a pool to the stack"
        return self._wished("capacity", candidates, lambda each: not wanted or each.capacity_type in wanted, problem, remedy)

    def _of_models(self, candidates: tuple[RoutePool, ...]) -> tuple[RoutePool, ...]:
        wanted = self._request.gpu_models
        problem = f"is not a GPU that team {self._team.name} can use in class {self._route.workload_class}"
        remedy = f"allowed: {self._gpus(candidates)}{self._other_pools(candidates)}"

        def is_wanted(each: RoutePool) -> bool:
            return not wanted or any(_is_model(self.pool_of[each.pool], name) for name in wanted)

        return self._wished("gpu_models", candidates, is_wanted, problem, remedy)

    def _of_memory(self, candidates: tuple[RoutePool, ...]) -> tuple[RoutePool, ...]:
        wanted = self._request.gpu_memory_gb or 0
        problem = f"is above the memory of each GPU that team {self._team.name} can use in class {self._route.workload_class}"
        remedy = f"available: {self._gpus(candidates)}; spread the model over several GPUs, or add such a pool to the stack"
        return self._wished("gpu_memory_gb", candidates, lambda each: self.pool_of[each.pool].gpu_memory_gb >= wanted, problem, remedy)

    def _of_network(self, candidates: tuple[RoutePool, ...]) -> tuple[RoutePool, ...]:
        wanted, gpus = self._request.fast_network, self._request.gpus
        pools = [pool for pool in self._plan.pools if has_fast_network(pool)]
        what = "GPUDirect" if self._plan.cloud is Platform.GKE else "EFA interfaces"
        problem = f"needs a pool with {what} for a pod of {gpus} GPU(s), and class {self._route.workload_class} has none"
        offers = [
            f"{pool.name} ({interfaces_of(pool, pool.gpus_per_node)} for {pool.gpus_per_node} GPUs, for {', '.join(pool.serves)})"
            for pool in pools
        ]
        where = ", ".join(offers) or f"no pool ({fast_network_hint(self._plan, [self.pool_of[each.pool] for each in candidates])})"
        remedy = f"the stack has them in {where}; leave it out for the nodes' ordinary network"

        def has_share(each: RoutePool) -> bool:
            return not wanted or interfaces_of(self.pool_of[each.pool], gpus) > 0

        return self._wished("fast_network", candidates, has_share, problem, remedy)

    def _wished(
        self,
        wish: str,
        candidates: tuple[RoutePool, ...],
        is_wanted: Callable[[RoutePool], bool],
        problem: str,
        remedy: str,
    ) -> tuple[RoutePool, ...]:
        found = tuple(filter(is_wanted, candidates))
        if candidates and not found:
            self.problems.append(SettingsProblem(wish, wishes(self._request)[wish], problem, remedy))
        return found

    def _gpus(self, candidates: Iterable[RoutePool]) -> str:
        """Return the GPUs of these pools, with the pools' names."""
        pools: dict[str, list[str]] = {}
        for each in candidates:
            pool = self.pool_of[each.pool]
            pools.setdefault(f"{pool.gpu_model} ({pool.gpu_memory_gb} GB", []).append(pool.name)
        return ", ".join(f"{gpu}; {', '.join(names)})" for gpu, names in pools.items())

    def _other_pools(self, candidates: Iterable[RoutePool]) -> str:
        """Return the remedy: other pools of the stack with a requested GPU, or adding such a pool."""
        here = {each.pool for each in candidates}
        wanted = self._request.gpu_models
        others = [pool for pool in self._plan.pools if pool.name not in here and any(_is_model(pool, name) for name in wanted)]
        offers = [f"pool {pool.name} has it and serves {', '.join(pool.serves)}" for pool in others]
        return f"; {'; '.join(offers)}" if offers else "; use one of these, or add such a pool to the stack"

    def _of_team(self, candidates: tuple[RoutePool, ...]) -> tuple[RoutePool, ...]:
        """Return the pools in which the team has a share: of flavors of its queue, or outside of queues."""
        if self._route.queued:
            flavors = {quota.flavor for quota in self._queue.quotas} if self._queue else set[str]()
            found = tuple(candidate for candidate in candidates if candidate.flavor in flavors)
        else:
            found = tuple(candidate for candidate in candidates if candidate.pool in self._team.unqueued_pools)
        if not found:
            names = ", ".join(candidate.pool for candidate in candidates)
            problem = f"has no share of the pools of class {self._route.workload_class} ({names})"
            where = "shares" if self._route.queued else "unqueued"
            remedy = f"use a class in which it has a share ({', '.join(self._classes()) or 'none'}), or give it a share in teams.{where}"
            self.problems.append(SettingsProblem("team", repr(self._team.name), problem, remedy))
        return found

    def _classes(self) -> list[str]:
        flavors = {quota.flavor for queue in self._plan.queues if queue.namespace == self._team.namespace for quota in queue.quotas}
        return [
            route.workload_class
            for route in self._plan.routes
            if any(each.flavor in flavors if route.queued else each.pool in self._team.unqueued_pools for each in route.pools)
        ]

    def _in_slices(self, candidates: tuple[RoutePool, ...]) -> tuple[RoutePool, ...]:
        """Return the pools that satisfy the rules of TPU slices.

        Pods on a part of a slice would wait for the others forever. Pods of several slices must be separate jobs.
        """
        slices = {each.pool: self.pool_of[each.pool].slice_nodes for each in candidates if self.pool_of[each.pool].slice_nodes}
        pods: int = getattr(self._request, "pods", 1)
        found = tuple(each for each in candidates if slices.get(each.pool, pods) == pods)
        if candidates and not found:
            has = ", ".join(f"{name} has {nodes}" for name, nodes in slices.items())
            problem = f"is not a whole slice of class {self._route.workload_class} ({has}), and a job must use all nodes of a slice"
            remedy = f"request {' or '.join(map(str, sorted(set(slices.values()))))} pods, and use a CheckpointedJob or a FlexStartJob"
            self.problems.append(SettingsProblem("pods", str(pods), problem, remedy))
        return found

    def _of_size(self, candidates: tuple[RoutePool, ...]) -> tuple[RoutePool, ...]:
        """Return the pools whose nodes have enough GPUs for a pod, or as many as it requests where a pod uses a whole node."""
        asked = self._request.gpus
        pools = [self.pool_of[candidate.pool] for candidate in candidates]
        most = max((pool.gpus_per_node for pool in pools if not pool.whole_nodes), default=0)
        found = tuple(
            candidate
            for candidate, pool in zip(candidates, pools, strict=True)
            if (pool.gpus_per_node == asked if pool.whole_nodes else pool.gpus_per_node >= asked)
        )
        # Autopilot's pods cannot select a pool that has no pool label, so every candidate must have enough GPUs.
        cannot_select = any(pool.pool_label is None for pool in pools) and len(found) < len(candidates)
        if candidates and (not found or cannot_select):
            nodes = ", ".join(f"{pool.name} has {pool.gpus_per_node}{' to use as a whole' if pool.whole_nodes else ''}" for pool in pools)
            problem = f"does not fit a node of class {self._route.workload_class} ({nodes}), and a pod runs on one node"
            part = min(pool.gpus_per_node for pool in pools) if cannot_select else most
            sizes = [f"1 to {part}" if part > 1 else "1"] if part else []
            sizes += map(str, sorted({pool.gpus_per_node for pool in pools if pool.whole_nodes and pool.gpus_per_node > part}))
            remedy = f"request {' or '.join(sizes)} per pod, and use more pods for more"
            self.problems.append(SettingsProblem("gpus", str(asked), problem, remedy))
            return ()
        return found

    def _with_room(self, candidates: tuple[RoutePool, ...]) -> tuple[RoutePool, ...]:
        found = tuple(candidate for candidate in candidates if fits(self._plan, self.pool_of[candidate.pool], self._request))
        if candidates and not found:
            machines = dict.fromkeys(name for candidate in candidates for name in self.pool_of[candidate.pool].machines)
            problem = f"is more than a node with {self._request.gpus} GPU(s) of class {self._route.workload_class} has for a pod"
            remedy = f"request less (its machines: {', '.join(machines)}), or leave both out for the GPUs' share of a machine"
            asked = f"{self._request.cpu or 'the default'} and {self._request.memory or 'the default'}"
            self.problems.append(SettingsProblem("cpu, memory", asked, problem, remedy))
        return found


def _is_model(pool: PoolPlan, asked: str) -> bool:
    """Return whether the pool's GPU matches a name such as h100, h100-80gb or the cloud's nvidia-h100-80gb."""
    names = (pool.gpu_model, pool.accelerator, pool.accelerator.removeprefix("nvidia-"))
    return asked in names or pool.gpu_model.startswith(f"{asked}-")


_CPU = re.compile(r"(?P<number>\d+(\.\d{1,3})?)(?P<unit>m?)")
_MEMORY = re.compile(r"(?P<number>\d+(\.\d{1,3})?)(?P<unit>Mi|Gi|Ti)")
_MIB = {"Mi": 1, "Gi": 1024, "Ti": 1024 * 1024}

_NODE_RESERVE_DIVISOR = 4
"""One part in 4 is left to the kubelet, to daemons and, on GKE, to the sidecar that mounts buckets.

GKE reserves a sixth of a machine with 16 GiB and less of larger ones:
https://docs.cloud.google.com/kubernetes-engine/docs/concepts/plan-node-sizes
"""

MIB_OF_GIB = 1024


def millicores(written: str) -> int | None:
    """Return thousandths of a vCPU from 8, 1.5 or 500m. None for anything else, and for fractions of a thousandth."""
    match = _CPU.fullmatch(written)
    return None if match is None else _whole(Decimal(match["number"]) * (1 if match["unit"] else 1000))


def mebibytes(written: str) -> int | None:
    """Return MiB from 512Mi, 32Gi or 1.5Ti. None for anything else, and for fractions of a MiB."""
    match = _MEMORY.fullmatch(written)
    return None if match is None else _whole(Decimal(match["number"]) * _MIB[match["unit"]])


def quantity_problems(request: WorkloadRequest) -> list[SettingsProblem]:
    """Return the problems of malformed or zero amounts of vCPU and memory."""
    problems: list[SettingsProblem] = []
    if request.cpu is not None and not millicores(request.cpu):
        problems.append(SettingsProblem("cpu", repr(request.cpu), "is not a number of vCPU above 0", "write one such as 8, 1.5 or 500m"))
    if request.memory is not None and not mebibytes(request.memory):
        problem = "is not an amount of memory above 0"
        problems.append(SettingsProblem("memory", repr(request.memory), problem, "write one such as 512Mi or 32Gi"))
    return problems


def fits(plan: Plan, pool: PoolPlan, request: WorkloadRequest) -> bool:
    """Return whether a node of the pool's largest machine can hold a pod of the request. A pod never gets everything that a node has."""
    cpu, memory = millicores(request.cpu or "") or 0, mebibytes(request.memory or "") or 0
    nodes = machines_of_pool(plan, pool)
    return any(cpu < node.vcpu * 1000 and memory < node.memory_mib for node in nodes)


def requests_of(plan: Plan, pools: Iterable[PoolPlan], request: WorkloadRequest) -> dict[str, str]:
    """Return a pod's cpu and memory requests as the API server spells them: as written, or its share of the smallest machine."""
    shares = [(node, pool.gpus_per_node) for pool in pools for node in machines_of_pool(plan, pool)]
    cpu, mib = amounts_without_gpus(request)
    if request.gpus:
        vcpu = min(1000 * node.vcpu * request.gpus // gpus for node, gpus in shares)
        memory = min(node.memory_mib * request.gpus // gpus for node, gpus in shares)
        cpu = millicores(request.cpu or "") or _rounded(vcpu - vcpu // _NODE_RESERVE_DIVISOR, 1000)
        mib = mebibytes(request.memory or "") or _rounded(memory - memory // _NODE_RESERVE_DIVISOR, MIB_OF_GIB)
    return {"cpu": count_quantity(cpu // 1000) if cpu % 1000 == 0 else f"{cpu}m", "memory": mib_quantity(mib)}


def amounts_without_gpus(request: WorkloadRequest) -> tuple[int, int]:
    """Return thousandths of a vCPU and MiB of a pod without GPUs: as written, or those of one core of a small machine."""
    return millicores(request.cpu or "") or 1000, mebibytes(request.memory or "") or 4 * MIB_OF_GIB


def _rounded(amount: int, step: int) -> int:
    """Return the amount rounded down to a whole step, or the amount itself if it is smaller."""
    return amount // step * step or amount


def _whole(number: Decimal) -> int | None:
    return int(number) if number == number.to_integral_value() else None
