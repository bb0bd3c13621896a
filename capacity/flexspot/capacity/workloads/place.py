"""The team, pools, queue and grace period for a request."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.platform import Platform
from flexspot.capacity.plan.queues import KARPENTER_STAY_ANNOTATION, STAY_ANNOTATION
from flexspot.capacity.values.errors import SettingsProblem, nearest
from flexspot.capacity.workloads.inputs import resource_problems
from flexspot.capacity.workloads.requests import image_problems, label_problems, refuse
from flexspot.capacity.workloads.suitable_pools import MIB_OF_GIB, amounts_without_gpus, quantity_problems, suitable_pools, wishes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flexspot.capacity.plan.model import CpuQueuePlan, FlavorQuota, Plan, PoolPlan, QueuePlan, RoutePlan, TeamPlan
    from flexspot.capacity.workloads.requests import WorkloadRequest


@dataclass(frozen=True)
class Place:
    """The team, pools and queue of a request that can run."""

    plan: Plan
    team: TeamPlan
    route: RoutePlan
    """The class's route, narrowed to the suitable pools. So are its affinity and tolerations."""
    pools: tuple[PoolPlan, ...]
    """The suitable pools of the plan. Empty for work without GPUs."""
    queue: QueuePlan | CpuQueuePlan | None
    """The team's queue, if the class is queued. Work without GPUs has another kind of queue."""
    grace_seconds: int
    """Time from SIGTERM, or from the start of a preStop hook, to the kill."""
    flavor_labels: tuple[dict[str, str], ...] = ()
    """Labels of the suitable flavors. Only set where the affinity to pools does not tell Kueue which flavors these are."""

    @property
    def namespace(self) -> str:
        """The team's namespace."""
        return self.team.namespace

    def most_of(self, quota: FlavorQuota) -> int:
        """Return the GPUs of a flavor that the queue can use at once, including borrowed ones."""
        ceiling = next(flavor.ceiling.gpus for flavor in self.plan.flavors if flavor.name == quota.flavor)
        return ceiling if quota.borrowing_limit is None else min(ceiling, quota.nominal.gpus + quota.borrowing_limit.gpus)

    @property
    def quotas(self) -> tuple[FlavorQuota, ...]:
        """The quotas of its queue for GPUs. Empty if it does not wait in such a queue."""
        return getattr(self.queue, "quotas", ())


def find_place(plan: Plan, request: WorkloadRequest, kind: str, *, queued: bool | None = None) -> Place:
    """Return the place of a request. `queued` is the kind's requirement: True for jobs, False for services, None for either.

    Raises WorkloadError with all problems of the request's team, class, image, labels, amounts, capacity and grace period.
    """
    workload = f"{kind} {request.name}"
    problems = [*image_problems(request), *label_problems(request), *quantity_problems(request)]
    problems += [*resource_problems(request.resources), *_bucket_problems(plan, request)]
    team = next((each for each in plan.teams if each.name == request.team), None)
    route = plan.route_of(request.workload_class)
    if team is None:
        teams = [each.name for each in plan.teams]
        problems.append(SettingsProblem("team", repr(request.team), "is not a team", nearest(request.team, teams)))
    elif request.project and team.projects and request.project not in team.projects:
        problems.append(
            SettingsProblem("project", repr(request.project), f"is not a project of {team.name}", nearest(request.project, team.projects))
        )
    if route is None:
        problems.append(_unknown_class_problem(plan, request))
    elif queued is not None and route.queued is not queued:
        problems.append(_queueing_problem(plan, route, queued=queued))
    refuse(workload, problems)
    assert team is not None and route is not None, "refused above"  # noqa: S101, PT018 -- tells the type checker what was checked
    if request.gpus == 0:
        return _without_gpus(plan, request, team, route, workload)
    queue = next((each for each in plan.queues if each.namespace == team.namespace), None) if route.queued else None
    suitable = suitable_pools(plan, request, team, route, queue)
    refuse(workload, [*suitable.problems, *_grace_problems(request, route)])
    grace_seconds = request.grace_seconds or route.grace_seconds
    return Place(plan, team, suitable.route, suitable.pools, queue, grace_seconds, suitable.flavor_labels)


def _grace_problems(request: WorkloadRequest, route: RoutePlan) -> list[SettingsProblem]:
    if request.grace_seconds is None or request.grace_seconds <= route.grace_seconds:
        return []
    allowed = f"allowed: 1 to {route.grace_seconds}; leave it out for {route.grace_seconds}"
    problem = f"is more than the grace period of class {route.workload_class} on its capacity"
    return [SettingsProblem("grace_seconds", str(request.grace_seconds), problem, allowed)]


_STAY: Mapping[Platform, dict[str, str]] = {
    Platform.GKE: {STAY_ANNOTATION: "false"},
    Platform.EKS: {KARPENTER_STAY_ANNOTATION: "true"},
    Platform.LOCAL: {KARPENTER_STAY_ANNOTATION: "true"},
}
"""Annotations on pods of jobs without GPUs: they share nodes with pods that may be moved, and a moved job starts again."""


def _without_gpus(plan: Plan, request: WorkloadRequest, team: TeamPlan, route: RoutePlan, workload: str) -> Place:
    """Return the place of work without GPUs. Kueue's flavor sets its node selectors, so the work has none itself."""
    work = plan.cpu_work
    queue = next((each for each in work.queues if each.namespace == team.namespace), None) if work else None
    problems = _grace_problems(request, route)
    if work is None:
        problem = "requires nodes without GPUs, which this stack does not have"
        problems.append(SettingsProblem("gpus", "0", problem, "request GPUs, or set max_vcpu and max_memory_gib in the stack's other_work"))
    else:
        cpu, mib = amounts_without_gpus(request)
        most = work.largest
        if cpu >= most.vcpu * 1000 or mib >= most.memory_mib:
            problem = f"is more than a node without GPUs has for a pod: less than {most.vcpu} vCPU and {most.memory_mib // MIB_OF_GIB}Gi"
            asked = f"{request.cpu or 'the default'} and {request.memory or 'the default'}"
            problems.append(SettingsProblem("cpu, memory", asked, problem, "request less per pod, and use more pods"))
    for wish, value in wishes(request).items():
        problems.append(SettingsProblem(wish, value, "chooses among GPU pools, but this work has no GPUs", "leave it out"))
    refuse(workload, problems)
    # Autopilot takes its annotation for a request for another sort of pod. It does not move pods without the annotation by its own choice.
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


def _unknown_class_problem(plan: Plan, request: WorkloadRequest) -> SettingsProblem:
    known = [each.workload_class for each in plan.routes]
    problem = "is not a class that a pool of this stack serves"
    return SettingsProblem("workload_class", repr(request.workload_class), problem, nearest(request.workload_class, known))


def _bucket_problems(plan: Plan, request: WorkloadRequest) -> list[SettingsProblem]:
    """Return the mounts that the request names although the platform has no bucket.

    Mounts that only a class requires are left out there.
    """
    if plan.cloud is not Platform.LOCAL:
        return []
    asked = {"checkpoints": request.checkpoints, "datasets": request.datasets}
    remedy = "leave it out: only stacks on gke and eks have buckets"
    return [
        SettingsProblem(name, "true", "cannot be mounted: the local platform has no bucket", remedy)
        for name, wanted in asked.items()
        if wanted
    ]


def _queueing_problem(plan: Plan, route: RoutePlan, *, queued: bool) -> SettingsProblem:
    fitting = [each.workload_class for each in plan.routes if each.queued is queued]
    problem = "is for services and has no queue" if queued else "waits in a queue, and a service would never return its quota"
    return SettingsProblem("workload_class", repr(route.workload_class), problem, nearest("", fitting))
