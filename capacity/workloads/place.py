"""Where a request runs, and how much vCPU and memory its pods ask for there beside their GPUs."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING

from capacity.catalog.platform import Platform
from capacity.plan.own_machines import machines_of_pool
from capacity.plan.queues import KARPENTER_STAY_ANNOTATION, STAY_ANNOTATION
from capacity.values.errors import SettingsProblem, nearest
from capacity.values.quantities import count_quantity, mib_quantity
from capacity.workloads.requests import image_problems, label_problems, refuse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from capacity.plan.cpu_work_model import CpuQueuePlan
    from capacity.plan.model import FlavorQuota, Plan, PoolPlan, QueuePlan, RoutePlan, RoutePool, TeamPlan
    from capacity.workloads.requests import WorkloadRequest


_CPU = re.compile(r"(?P<number>\d+(\.\d{1,3})?)(?P<unit>m?)")
_MEMORY = re.compile(r"(?P<number>\d+(\.\d{1,3})?)(?P<unit>Mi|Gi|Ti)")
_MIB = {"Mi": 1, "Gi": 1024, "Ti": 1024 * 1024}

_KEPT_BY_THE_NODE = 4
"""One part in so many is left to the kubelet, to daemons and, on GKE, to the sidecar that mounts buckets. GKE reserves a sixth of a machine
with 16 GiB and less of larger ones: https://docs.cloud.google.com/kubernetes-engine/docs/concepts/plan-node-sizes
"""

_GIB = 1024


def millicores(written: str) -> int | None:
    """Thousandths of a vCPU of 8, 1.5 or 500m; None for anything else, and for parts of a thousandth."""
    match = _CPU.fullmatch(written)
    return None if match is None else _whole(Decimal(match["number"]) * (1 if match["unit"] else 1000))


def mebibytes(written: str) -> int | None:
    """MiB of 512Mi, 32Gi or 1.5Ti; None for anything else, and for parts of a MiB."""
    match = _MEMORY.fullmatch(written)
    return None if match is None else _whole(Decimal(match["number"]) * _MIB[match["unit"]])


def quantity_problems(request: WorkloadRequest) -> list[SettingsProblem]:
    """Amounts of vCPU and memory that are none."""
    problems: list[SettingsProblem] = []
    if request.cpu is not None and not millicores(request.cpu):
        problems.append(SettingsProblem("cpu", repr(request.cpu), "is no number of vCPU above 0", "write one such as 8, 1.5 or 500m"))
    if request.memory is not None and not mebibytes(request.memory):
        problem = "is no amount of memory above 0"
        problems.append(SettingsProblem("memory", repr(request.memory), problem, "write one such as 512Mi or 32Gi"))
    return problems


def fits(plan: Plan, pool: PoolPlan, request: WorkloadRequest) -> bool:
    """Whether a node of the pool, its largest machine, can hold a pod of the request. A node never gives away all it has."""
    cpu, memory = millicores(request.cpu or "") or 0, mebibytes(request.memory or "") or 0
    nodes = machines_of_pool(plan, pool)
    return any(cpu < node.vcpu * 1000 and memory < node.memory_mib for node in nodes)


def requests_of(plan: Plan, pools: Iterable[PoolPlan], request: WorkloadRequest) -> dict[str, str]:
    """The cpu and memory that a pod asks for, in the API server's own spelling: as written, else its share of the smallest machine."""
    shares = [(node, pool.gpus_per_node) for pool in pools for node in machines_of_pool(plan, pool)]
    cpu, mib = amounts_without_gpus(request)
    if request.gpus:
        vcpu = min(1000 * node.vcpu * request.gpus // gpus for node, gpus in shares)
        memory = min(node.memory_mib * request.gpus // gpus for node, gpus in shares)
        cpu = millicores(request.cpu or "") or _rounded(vcpu - vcpu // _KEPT_BY_THE_NODE, 1000)
        mib = mebibytes(request.memory or "") or _rounded(memory - memory // _KEPT_BY_THE_NODE, _GIB)
    return {"cpu": count_quantity(cpu // 1000) if cpu % 1000 == 0 else f"{cpu}m", "memory": mib_quantity(mib)}


def amounts_without_gpus(request: WorkloadRequest) -> tuple[int, int]:
    """Thousandths of a vCPU and MiB of a pod without GPUs: as written, else those of a small machine's core."""
    return millicores(request.cpu or "") or 1000, mebibytes(request.memory or "") or 4 * _GIB


def _rounded(amount: int, step: int) -> int:
    """Down to a whole step, where there is one."""
    return amount // step * step or amount


def _whole(number: Decimal) -> int | None:
    return int(number) if number == number.to_integral_value() else None


@dataclass(frozen=True)
class Place:
    """`route` is the class's, narrowed to the pools that suit: so are its affinity and tolerations. `pools` are those pools of the plan.

    `queue` is the team's queue for queued classes, None for the others. Work without GPUs has a queue of another sort, and no pools.
    `grace_seconds` is what the pods have from SIGTERM, or from a preStop hook, to the kill.
    """

    plan: Plan
    team: TeamPlan
    route: RoutePlan
    pools: tuple[PoolPlan, ...]
    queue: QueuePlan | CpuQueuePlan | None
    grace_seconds: int

    @property
    def namespace(self) -> str:
        """The team's."""
        return self.team.namespace

    @property
    def quotas(self) -> tuple[FlavorQuota, ...]:
        """Those of its queue of GPUs; none where it waits in no such queue."""
        return getattr(self.queue, "quotas", ())


def find_place(plan: Plan, request: WorkloadRequest, kind: str, *, queued: bool | None = None) -> Place:
    """The place of a request. `queued` is what the kind needs the class to be: True for jobs, False for services, None for either.

    Raises WorkloadError with all that is wrong with the request's team, class, image, labels, amounts, capacity and grace.
    """
    whose = f"{kind} {request.name}"
    problems = [*image_problems(request), *label_problems(request), *quantity_problems(request), *_bucket_problems(plan, request)]
    team = next((each for each in plan.teams if each.name == request.team), None)
    route = next((each for each in plan.routes if each.workload_class == request.workload_class), None)
    if team is None:
        teams = [each.name for each in plan.teams]
        problems.append(SettingsProblem("team", repr(request.team), "is no team", nearest(request.team, teams)))
    elif request.project and team.projects and request.project not in team.projects:
        problems.append(
            SettingsProblem("project", repr(request.project), f"is no project of team {team.name}", nearest(request.project, team.projects))
        )
    if route is None:
        problems.append(_no_class(plan, request))
    elif queued is not None and route.queued is not queued:
        problems.append(_wrong_queueing(plan, route, queued=queued))
    refuse(whose, problems)
    assert team is not None and route is not None, "refused above"  # noqa: S101, PT018 -- tells the type checker what was checked
    if request.gpus == 0:
        return _without_gpus(plan, request, team, route, whose)
    queue = next((each for each in plan.queues if each.namespace == team.namespace), None) if route.queued else None
    narrowed = _Narrowing(plan, request, team, route, queue)
    candidates = narrowed.suitable()
    problems += [*narrowed.problems, *_grace_problems(request, route)]
    refuse(whose, problems)
    pools = tuple(pool for candidate in candidates for pool in plan.pools if pool.name == candidate.pool)
    grace_seconds = request.grace_seconds or route.grace_seconds
    return Place(plan, team, _narrowed(route, candidates, pools), pools, queue, grace_seconds)


def _grace_problems(request: WorkloadRequest, route: RoutePlan) -> list[SettingsProblem]:
    if request.grace_seconds is None or request.grace_seconds <= route.grace_seconds:
        return []
    allowed = f"1 to {route.grace_seconds} are allowed; leave it out for {route.grace_seconds}"
    problem = f"is more than pods of class {route.workload_class} get on the capacity that it uses"
    return [SettingsProblem("grace_seconds", str(request.grace_seconds), problem, allowed)]


_STAY: Mapping[Platform, dict[str, str]] = {
    Platform.GKE: {STAY_ANNOTATION: "false"},
    Platform.EKS: {KARPENTER_STAY_ANNOTATION: "true"},
    Platform.LOCAL: {KARPENTER_STAY_ANNOTATION: "true"},
}
"""On pods of jobs without GPUs: their nodes are shared with what may be moved, and a job that is moved begins anew."""


def _without_gpus(plan: Plan, request: WorkloadRequest, team: TeamPlan, route: RoutePlan, whose: str) -> Place:
    """The place of work without GPUs: Kueue's flavor leads it there, so that it selects and tolerates nothing itself."""
    work = plan.cpu_work
    queue = next((each for each in work.queues if each.namespace == team.namespace), None) if work else None
    problems = _grace_problems(request, route)
    if work is None:
        problem = "is work without GPUs, for which this stack has no room"
        problems.append(
            SettingsProblem("gpus", "0", problem, "ask for GPUs, or give the stack other_work with max_vcpu and max_memory_gib")
        )
    else:
        cpu, mib = amounts_without_gpus(request)
        most = work.largest
        if cpu >= most.vcpu * 1000 or mib >= most.memory_mib:
            problem = f"is more than a node without GPUs can give: less than {most.vcpu} vCPU and {most.memory_mib // _GIB}Gi"
            asked = f"{request.cpu or 'the default'} and {request.memory or 'the default'}"
            problems.append(SettingsProblem("cpu, memory", asked, problem, "ask for less a pod, and for more pods"))
    if request.capacity:
        told = ", ".join(each.value for each in request.capacity)
        problem = "is a choice between pools of GPUs, and this work has none"
        problems.append(SettingsProblem("capacity", told, problem, "leave it out"))
    refuse(whose, problems)
    # Autopilot reads its annotation as a wish for pods of another sort, and moves none by its own choice that says nothing.
    autopilot = plan.cloud is Platform.GKE and all(pool.pool_label is None for pool in plan.pools)
    own = replace(
        route,
        pools=(),
        node_selector={},
        node_affinity=None,
        tolerations=(),
        job_annotations={},
        pod_annotations={} if autopilot else _STAY[plan.cloud],
    )
    return Place(plan, team, own, (), queue, request.grace_seconds or route.grace_seconds)


def _narrowed(route: RoutePlan, candidates: tuple[RoutePool, ...], pools: tuple[PoolPlan, ...]) -> RoutePlan:
    """A route without the pools that are left out. Kueue passes over a flavor whose pool the affinity does not name: else it would admit
    a pod of eight GPUs to nodes of two, where it would wait until it is thrown out.
    """
    if candidates == route.pools:
        return route
    taints = sorted({taint for pool in pools for taint in pool.taints}, key=lambda taint: (taint.key, taint.value))
    affinity = None if route.node_affinity is None else (route.node_affinity[0], tuple(candidate.pool for candidate in candidates))
    return replace(route, pools=candidates, node_affinity=affinity, tolerations=tuple(taints))


class _Narrowing:
    """Leaves out pool after pool; where none is left, `problems` says which wish took the last."""

    def __init__(self, plan: Plan, request: WorkloadRequest, team: TeamPlan, route: RoutePlan, queue: QueuePlan | None) -> None:
        self.problems: list[SettingsProblem] = []
        self._plan, self._request, self._team, self._route, self._queue = plan, request, team, route, queue
        self._pool_of = {pool.name: pool for pool in plan.pools}

    def suitable(self) -> tuple[RoutePool, ...]:
        wanted = self._of_capacity(self._route.pools)
        shared = self._of_team(wanted)
        return self._with_room(self._with_gpus(shared))

    def _of_capacity(self, candidates: tuple[RoutePool, ...]) -> tuple[RoutePool, ...]:
        wanted = self._request.capacity
        if not wanted:
            return candidates
        found = tuple(candidate for candidate in candidates if candidate.capacity_type in wanted)
        if not found:
            has = ", ".join(dict.fromkeys(candidate.capacity_type.value for candidate in candidates))
            told = ", ".join(each.value for each in wanted)
            problem = f"is no capacity of class {self._route.workload_class} in this stack"
            remedy = f"it has {has}; name one of these, or add such a pool to the stack"
            self.problems.append(SettingsProblem("capacity", told, problem, remedy))
        return found

    def _of_team(self, candidates: tuple[RoutePool, ...]) -> tuple[RoutePool, ...]:
        """Kueue gives a team flavors of its queue alone; without a queue it is the namespace's quota that counts."""
        if not candidates:
            return ()
        if self._route.queued:
            flavors = {quota.flavor for quota in self._queue.quotas} if self._queue else set[str]()
            found = tuple(candidate for candidate in candidates if candidate.flavor in flavors)
        else:
            found = candidates if self._team.most_unqueued(self._route.resource) else ()
        if not found:
            names = ", ".join(candidate.pool for candidate in candidates)
            problem = f"has no share of the pools of class {self._route.workload_class} ({names})"
            where = "shares" if self._route.queued else "unqueued"
            remedy = f"classes that it has a share of: {', '.join(self._classes()) or '(none)'}; or give it one in teams.{where}"
            self.problems.append(SettingsProblem("team", repr(self._team.name), problem, remedy))
        return found

    def _classes(self) -> list[str]:
        flavors = {quota.flavor for queue in self._plan.queues if queue.namespace == self._team.namespace for quota in queue.quotas}
        return [
            route.workload_class
            for route in self._plan.routes
            if (any(candidate.flavor in flavors for candidate in route.pools) if route.queued else self._team.most_unqueued(route.resource))
        ]

    def _with_gpus(self, candidates: tuple[RoutePool, ...]) -> tuple[RoutePool, ...]:
        asked = self._request.gpus
        counts = {candidate.pool: self._pool_of[candidate.pool].gpus_per_node for candidate in candidates}
        found = tuple(candidate for candidate in candidates if counts[candidate.pool] >= asked)
        # Without a label that names the pool, Autopilot's pods cannot say which of several shapes they mean: all must do.
        unnamed = any(self._pool_of[candidate.pool].pool_label is None for candidate in candidates) and len(found) < len(candidates)
        if candidates and (not found or unnamed):
            most = min(counts.values()) if unnamed else max(counts.values())
            nodes = ", ".join(f"{pool} has {count}" for pool, count in counts.items())
            problem = f"is more than a node of class {self._route.workload_class} has ({nodes}), and a pod runs on one node"
            self.problems.append(SettingsProblem("gpus", str(asked), problem, f"ask for 1 to {most} a pod, and for more with more pods"))
            return ()
        return found

    def _with_room(self, candidates: tuple[RoutePool, ...]) -> tuple[RoutePool, ...]:
        found = tuple(candidate for candidate in candidates if fits(self._plan, self._pool_of[candidate.pool], self._request))
        if candidates and not found:
            machines = dict.fromkeys(name for candidate in candidates for name in self._pool_of[candidate.pool].machines)
            problem = f"is more than a node with {self._request.gpus} GPU(s) of class {self._route.workload_class} can give"
            remedy = f"its machines: {', '.join(machines)}; leave both out for the GPUs' share of one"
            asked = f"{self._request.cpu or 'the default'} and {self._request.memory or 'the default'}"
            self.problems.append(SettingsProblem("cpu, memory", asked, problem, remedy))
        return found


def _no_class(plan: Plan, request: WorkloadRequest) -> SettingsProblem:
    known = [each.workload_class for each in plan.routes]
    problem = "is no class that a pool of this stack serves"
    return SettingsProblem("workload_class", repr(request.workload_class), problem, nearest(request.workload_class, known))


def _bucket_problems(plan: Plan, request: WorkloadRequest) -> list[SettingsProblem]:
    """Mounts that were asked for by name where there is no bucket. What a class asks for is left out there."""
    if plan.cloud is not Platform.LOCAL:
        return []
    asked = {"checkpoints": request.checkpoints, "datasets": request.datasets}
    remedy = "leave it out here; stacks of gke and eks have buckets"
    return [
        SettingsProblem(name, "true", "cannot be: the local platform has no bucket", remedy) for name, wanted in asked.items() if wanted
    ]


def _wrong_queueing(plan: Plan, route: RoutePlan, *, queued: bool) -> SettingsProblem:
    fitting = [each.workload_class for each in plan.routes if each.queued is queued]
    problem = "is for services and waits in no queue" if queued else "waits in a queue, which a service would never give its quota back to"
    return SettingsProblem("workload_class", repr(route.workload_class), problem, nearest("", fitting))
