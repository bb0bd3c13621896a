"""Teams: their namespaces, quotas and Kubernetes groups, and the part of a plan that a team can read."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from flexspot.capacity.catalog.accelerators import ACCELERATORS, BY_RESOURCE, NVIDIA
from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.machines import Machine
from flexspot.capacity.catalog.platform import Platform
from flexspot.capacity.catalog.workload_classes import Removal
from flexspot.capacity.plan.billed import SpendingPlan
from flexspot.capacity.plan.kueue_configuration import PodsReady
from flexspot.capacity.plan.model import Amount, CpuWorkPlan, Plan, TeamPlan, plan_data
from flexspot.capacity.plan.pools import compute_class_of
from flexspot.capacity.plan.versions import VersionPlan
from flexspot.capacity.settings.teams import AdmissionMode, Stop
from flexspot.capacity.values.quantities import count_quantity, gib_quantity, mib_quantity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexspot.capacity.plan.model import CohortPlan, CpuAmount, FlavorPlan, QueuePlan
    from flexspot.capacity.plan.resolve import ResolvedSettings
    from flexspot.capacity.settings.teams import TeamSettings


SUBMIT, VIEW = "submit", "view"
"""Names of a team's two Kubernetes roles."""


def is_role(member: str) -> bool:
    """Return whether a member of a team's submitters or viewers is an IAM role, and not a group."""
    return member.startswith("arn:")


def group_of_roles(team: str, right: str) -> str:
    """Return the group of all IAM roles that a team names for a right."""
    return f"flexspot:{team}:{right}"


def _groups_of(team: str, members: Iterable[str], right: str) -> tuple[str, ...]:
    """Return the groups that a team's right is bound to: those that it names, and one for all its IAM roles."""
    return tuple(sorted({group_of_roles(team, right) if is_role(each) else each for each in members}))


def groups_by_role(teams: Iterable[TeamSettings]) -> dict[str, list[str]]:
    """Return the groups of each IAM role, of all teams together, because EKS allows one access entry for a role."""
    found: dict[str, set[str]] = {}
    for team in teams:
        for right, members in ((SUBMIT, team.submitters), (VIEW, team.viewers)):
            for role in filter(is_role, members):
                found.setdefault(role, set()).add(group_of_roles(team.name, right))
    return {role: sorted(groups) for role, groups in sorted(found.items())}


LEAST_PODS = 200
"""Default limit of a namespace's pods: enough for what runs in addition to GPU work, and low enough to stop a loop that creates pods."""

_PODS_PER_GPU = 2
"""A pod that is being replaced counts until it is gone."""


def team_plans(
    resolved: ResolvedSettings,
    flavors: tuple[FlavorPlan, ...],
    cohorts: tuple[CohortPlan, ...],
    queues: tuple[QueuePlan, ...],
    cpu_work: CpuWorkPlan | None,
) -> tuple[TeamPlan, ...]:
    """Return each team's namespace, by name. Its quota never rejects what its queue would admit."""
    reach = _Reach(flavors, cohorts, queues)
    resource_of = {flavor.name: flavor.resource for flavor in flavors}
    by_team = {queue.namespace: queue for queue in queues}
    every_queue = (*queues, *(cpu_work.queues if cpu_work else ()))
    unqueued_classes = tuple(sorted(each.priority_class for each in resolved.classes.values() if not each.queued))
    counted = counted_resources(resolved)
    nodes: list[Amount | CpuAmount] = [*(node for pool in resolved.pools.values() for node in pool.nodes)]
    nodes += [cpu_work.largest] if cpu_work else []
    # A container with more than the largest node would be admitted, and wait forever.
    vcpu, memory_mib = max(node.vcpu for node in nodes), max(node.memory_mib for node in nodes)
    plans: list[TeamPlan] = []
    for team in sorted(resolved.settings.teams, key=lambda each: each.name):
        queue = by_team.get(team.name)
        unqueued = dict.fromkeys(counted, 0)
        for pool, gpus in team.unqueued.items():
            unqueued[resolved.pools[pool].gpu.accelerator.resource] += gpus
        most = dict(unqueued)
        if queue is not None:
            for quota in queue.quotas:
                most[resource_of[quota.flavor]] += reach.of(queue, quota.flavor)
        plans.append(
            TeamPlan(
                name=team.name,
                namespace=team.name,
                submitters=_groups_of(team.name, team.submitters, SUBMIT),
                viewers=_groups_of(team.name, team.viewers, VIEW),
                max_gpus=sum(most.values()),
                hard=_hard(team, most),
                unqueued_gpus=sum(unqueued.values()),
                unqueued_priority_classes=unqueued_classes,
                container_limits={"cpu": count_quantity(vcpu), "memory": mib_quantity(memory_mib)},
                cluster_queues=tuple(each.cluster_queue for each in every_queue if each.namespace == team.name),
                projects=tuple(sorted(set(team.projects))),
                monthly_budget_usd=team.monthly_budget_usd,
                unqueued_of=unqueued if len(counted) > 1 else {},
                unqueued_pools=_unqueued_pools(resolved, team),
            )
        )
    return tuple(plans)


def _unqueued_pools(resolved: ResolvedSettings, team: TeamSettings) -> tuple[str, ...]:
    """Return the pools that a team's unqueued pods may use. GKE chooses among all pools of a compute class."""
    own = {pool for pool, gpus in team.unqueued.items() if gpus}
    classes = {compute_class_of(resolved, resolved.pools[pool]) for pool in own} - {None}
    return tuple(sorted(own | {name for name, pool in resolved.pools.items() if compute_class_of(resolved, pool) in classes}))


_SMALL_OBJECTS = ("configmaps", "secrets", "count/cronjobs.batch")
# Limit of each: far more than work needs, and too few to fill the cluster's database (1 MiB each).
_MOST_SMALL_OBJECTS = 500


def counted_resources(resolved: ResolvedSettings) -> tuple[str, ...]:
    """Return the devices that namespaces have a quota of: those of the pools, and always NVIDIA's GPUs."""
    there = {pool.gpu.accelerator.resource for pool in resolved.pools.values()}
    return tuple(each.resource for each in ACCELERATORS if each is NVIDIA or each.resource in there)


def _devices(most: dict[str, int]) -> dict[str, str]:
    """Return the quota of each kind of device. It is zero for other names of the devices, under which no queue would count them."""
    kinds = [BY_RESOURCE[resource] for resource in most]
    uncounted = [f"requests.{part}" for kind in kinds for part in kind.parts]
    return {kind.quota_key: count_quantity(most[kind.resource]) for kind in kinds} | dict.fromkeys(uncounted, count_quantity(0))


def _hard(team: TeamSettings, most: dict[str, int]) -> dict[str, str]:
    max_gpus = sum(most.values())
    # Each GPU may be used by a separate pod. With fewer pods than GPUs, Kueue would admit work that the namespace then rejects.
    pods = max(LEAST_PODS, _PODS_PER_GPU * max_gpus) if team.max_pods is None else max(team.max_pods, max_gpus)
    return {
        **_devices(most),
        "pods": count_quantity(pods),
        "count/jobs.batch": count_quantity(team.max_jobs),
        **dict.fromkeys(_SMALL_OBJECTS, count_quantity(_MOST_SMALL_OBJECTS)),
        "persistentvolumeclaims": count_quantity(team.max_volumes),
        "requests.storage": gib_quantity(team.max_storage_gib),
    }


class _Reach:
    """The most GPUs of a flavor that a queue can use, borrowed ones included: the strictest limit on the way to the root applies."""

    def __init__(self, flavors: tuple[FlavorPlan, ...], cohorts: tuple[CohortPlan, ...], queues: tuple[QueuePlan, ...]) -> None:
        self._ceiling = {flavor.name: flavor.ceiling.gpus for flavor in flavors}
        self._parent = {cohort.name: cohort.parent for cohort in cohorts}
        self._limit: dict[tuple[str, str], int] = {}
        self._inside: dict[tuple[str, str], int] = {}
        for cohort in cohorts:
            for quota in cohort.quotas:
                self._add(cohort.name, quota.flavor, quota.nominal.gpus)
                if quota.borrowing_limit is not None:
                    self._limit[cohort.name, quota.flavor] = quota.borrowing_limit.gpus
        for queue in queues:
            for quota in queue.quotas:
                self._add(queue.cohort, quota.flavor, quota.nominal.gpus)

    def of(self, queue: QueuePlan, flavor: str) -> int:
        quota = next(each for each in queue.quotas if each.flavor == flavor)
        most = self._ceiling[flavor]
        if quota.borrowing_limit is not None:
            most = min(most, quota.nominal.gpus + quota.borrowing_limit.gpus)
        for cohort in self._way_up(queue.cohort):
            if (limit := self._limit.get((cohort, flavor))) is not None:
                most = min(most, self._inside[cohort, flavor] + limit)
        return most

    def _add(self, cohort: str, flavor: str, gpus: int) -> None:
        for each in self._way_up(cohort):
            self._inside[each, flavor] = self._inside.get((each, flavor), 0) + gpus

    def _way_up(self, cohort: str) -> Iterable[str]:
        at: str | None = cohort
        while at is not None:
            yield at
            at = self._parent[at]


CONFIG_MAP = "flexspot-platform"
"""Name of the ConfigMap with the team view in each team's namespace."""

KEY = "plan.json"

_NOTHING_BILLED = SpendingPlan(None, (), None, None, (), ())

_FORM = 1
"""Version of the format. It increases when an older release could not read a newer text, or would misread it."""


class TeamViewError(ValueError):
    """The text is not one that this release can read."""


def team_views(plan: Plan) -> dict[str, str]:
    """Return the part of the plan that concerns each team's work, by the team's name, as JSON on one line."""
    shared = plan_data(
        replace(
            plan,
            accelerators={},
            limits=None,
            compute_classes=(),
            topologies=(),
            priorities=(),
            cohorts=(),
            teams=tuple(replace(each, monthly_budget_usd=None) for each in plan.teams),
            versions=VersionPlan(None, None, {}, {}),
            spending=_NOTHING_BILLED,
            warnings=(),
        )
    )
    return {team["name"]: json.dumps({"form": _FORM, "plan": _of_team(shared, team)}, separators=(",", ":")) for team in shared["teams"]}


def _of_team(shared: dict[str, Any], team: dict[str, Any]) -> dict[str, Any]:
    namespace, work = team["namespace"], shared["cpu_work"]
    return {
        **shared,
        "teams": [team],
        "queues": [each for each in shared["queues"] if each["namespace"] == namespace],
        "cpu_work": None if work is None else _cpu_work(work, namespace),
    }


def _cpu_work(work: dict[str, Any], namespace: str) -> dict[str, Any]:
    """Return the CPU queues of one team. Other teams' quota counts as unowned, which leaves the most that the team can use the same."""
    others = [each["nominal"] for each in work["queues"] if each["namespace"] != namespace]
    unowned = {field: sum(each[field] for each in (work["unowned"], *others)) for field in work["unowned"]}
    return {**work, "unowned": unowned, "queues": [each for each in work["queues"] if each["namespace"] == namespace]}


def read_team_view(text: str) -> Plan:
    """Return the plan of one of `team_views`. Raises TeamViewError for another format or a text that was changed."""
    try:
        written = json.loads(text)
        form = written["form"]
    except (ValueError, KeyError, TypeError) as error:
        raise TeamViewError("it is not the plan of a team") from error
    if form != _FORM:
        raise TeamViewError(f"it has format {form}, but this release of flexspot reads format {_FORM}")
    try:
        return _reader().validate_python(written["plan"])
    except (ValidationError, KeyError) as error:
        first = error.errors()[0] if isinstance(error, ValidationError) else {"loc": ("plan",), "msg": "is missing"}
        raise TeamViewError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error


@cache
def _reader() -> TypeAdapter[Plan]:
    # The dataclasses of the plan import these types only for type checking. Pydantic needs them at run time.
    known = (AdmissionMode, CapacityType, CpuWorkPlan, Machine, Platform, PodsReady, Removal, SpendingPlan, Stop, VersionPlan)
    adapter: TypeAdapter[Plan] = TypeAdapter(Plan)
    adapter.rebuild(force=True, _types_namespace={each.__name__: each for each in known})
    return adapter
