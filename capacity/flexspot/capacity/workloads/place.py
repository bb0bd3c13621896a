"""Where a request runs."""

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
    """`route` is the class's, narrowed to the pools that suit: so are its affinity and tolerations. `pools` are those pools of the plan.

    `queue` is the team's queue for queued classes, None for the others. Work without GPUs has a queue of another sort, and no pools.
    `grace_seconds` is what the pods have from SIGTERM, or from a preStop hook, to the kill. `flavor_labels` are those of the flavors that
    suit, where the affinity to pools tells Kueue nothing of which these are.
    """

    plan: Plan
    team: TeamPlan
    route: RoutePlan
    pools: tuple[PoolPlan, ...]
    queue: QueuePlan | CpuQueuePlan | None
    grace_seconds: int
    flavor_labels: tuple[dict[str, str], ...] = ()

    @property
    def namespace(self) -> str:
        """The team's."""
        return self.team.namespace

    def most_of(self, quota: FlavorQuota) -> int:
        """GPUs of a flavor that the quota lets the queue hold, borrowed ones among them."""
        ceiling = next(flavor.ceiling.gpus for flavor in self.plan.flavors if flavor.name == quota.flavor)
        return ceiling if quota.borrowing_limit is None else min(ceiling, quota.nominal.gpus + quota.borrowing_limit.gpus)

    @property
    def quotas(self) -> tuple[FlavorQuota, ...]:
        """Those of its queue of GPUs; none where it waits in no such queue."""
        return getattr(self.queue, "quotas", ())


def find_place(plan: Plan, request: WorkloadRequest, kind: str, *, queued: bool | None = None) -> Place:
    """The place of a request. `queued` is what the kind needs the class to be: True for jobs, False for services, None for either.

    Raises WorkloadError with all that is wrong with the request's team, class, image, labels, amounts, capacity and grace.
    """
    whose = f"{kind} {request.name}"
    problems = [*image_problems(request), *label_problems(request), *quantity_problems(request)]
    problems += [*resource_problems(request.resources), *_bucket_problems(plan, request)]
    team = next((each for each in plan.teams if each.name == request.team), None)
    route = plan.route_of(request.workload_class)
    if team is None:
        teams = [each.name for each in plan.teams]
        problems.append(SettingsProblem("team", repr(request.team), "is not a team", nearest(request.team, teams)))
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
    suitable = suitable_pools(plan, request, team, route, queue)
    refuse(whose, [*suitable.problems, *_grace_problems(request, route)])
    grace_seconds = request.grace_seconds or route.grace_seconds
    return Place(plan, team, suitable.route, suitable.pools, queue, grace_seconds, suitable.flavor_labels)


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
            problem = f"is more than a node without GPUs can give: less than {most.vcpu} vCPU and {most.memory_mib // MIB_OF_GIB}Gi"
            asked = f"{request.cpu or 'the default'} and {request.memory or 'the default'}"
            problems.append(SettingsProblem("cpu, memory", asked, problem, "ask for less a pod, and for more pods"))
    for wish, told in wishes(request).items():
        problems.append(SettingsProblem(wish, told, "is a choice between pools of GPUs, and this work has none", "leave it out"))
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


def _no_class(plan: Plan, request: WorkloadRequest) -> SettingsProblem:
    known = [each.workload_class for each in plan.routes]
    problem = "is not a class that a pool of this stack serves"
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
