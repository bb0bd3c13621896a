"""From settings to plan, or to everything that keeps the settings from working."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.alignment import problems_of
from capacity.machines import Cloud, Machine, machines_of
from capacity.node_labels import CAPACITY_TYPE_LABEL, GPU_NAME_LABEL, GPU_RESOURCE
from capacity.plan import FlavorPlan, FlavorQuota, Plan, PoolPlan, PriorityPlan, QueuePlan, Taint, TeamPlan
from capacity.stack_file import SettingsError

if TYPE_CHECKING:
    from capacity.settings import PlatformSettings, PoolSettings, TeamSettings

ENVIRONMENT_LABEL = "flexspot.dev/environment"
OWNER_LABEL = "flexspot.dev/owner"
TEAM_LABEL = "flexspot.dev/team"
CLASS_TAINT = "flexspot.dev/class"
LOCAL_QUEUE = "default"
"""Kueue gives Jobs without a queue label to the LocalQueue of this name in their namespace."""


def build_plan(settings: PlatformSettings, source: str = "settings") -> Plan:
    """The plan that follows from settings. Raises SettingsError naming `source` with everything that cannot work."""
    machines = machines_of(Cloud.AWS)
    if problems := problems_of(settings, machines):
        raise SettingsError(source, problems)
    queued_classes = {each.name for each in settings.classes if each.queued}
    pools = {each.name: _pool(each, machines[each.machine]) for each in settings.pools}
    queued = {name: pool for name, pool in pools.items() if set(pool.serves) & queued_classes}
    return Plan(
        environment=settings.environment,
        labels={ENVIRONMENT_LABEL: settings.environment, OWNER_LABEL: settings.owner},
        pools=tuple(pools.values()),
        flavors=tuple(_flavor(pool) for pool in queued.values()),
        priorities=tuple(PriorityPlan(each.priority_class, each.priority, each.preempts, each.description) for each in settings.classes),
        teams=tuple(_team(each, pools, queued) for each in settings.teams),
        queues=tuple(_queue(each, settings.cohort, pools, machines) for each in settings.teams),
    )


def _pool(settings: PoolSettings, machine: Machine) -> PoolPlan:
    assert machine.gpu is not None, "problems_of refuses machines without GPU"  # noqa: S101 -- tells the type checker what was checked
    taints = [Taint(GPU_RESOURCE, "present")]
    if len(settings.serves) == 1:
        # Only a pool that serves one class says so: classes that share a pool would keep each other out.
        taints.append(Taint(CLASS_TAINT, settings.serves[0]))
    return PoolPlan(
        name=settings.name,
        machine=machine.name,
        capacity_type=settings.capacity_type,
        gpus_per_node=machine.gpu.count,
        max_nodes=settings.max_nodes,
        labels={CAPACITY_TYPE_LABEL: settings.capacity_type.value, GPU_NAME_LABEL: machine.gpu.name},
        taints=tuple(taints),
        serves=settings.serves,
    )


def _flavor(pool: PoolPlan) -> FlavorPlan:
    return FlavorPlan(pool.name, pool.labels, pool.taints)


def _team(settings: TeamSettings, pools: dict[str, PoolPlan], queued: dict[str, PoolPlan]) -> TeamPlan:
    # What the team may use: whole pools of which it has a share, because it may borrow the rest, and all that is not queued.
    usable = [pool for name, pool in pools.items() if name in settings.shares or name not in queued]
    return TeamPlan(settings.name, settings.name, sum(pool.max_gpus for pool in usable))


def _queue(settings: TeamSettings, cohort: str, pools: dict[str, PoolPlan], machines: dict[str, Machine]) -> QueuePlan:
    quotas = tuple(_quota(pools[pool], gpus, machines[pools[pool].machine]) for pool, gpus in settings.shares.items())
    return QueuePlan(settings.name, cohort, settings.name, LOCAL_QUEUE, quotas)


def _quota(pool: PoolPlan, gpus: int, machine: Machine) -> FlavorQuota:
    # CPU and memory in proportion, so that neither runs out before the GPUs do; rounded up for shares of a node.
    return FlavorQuota(pool.name, gpus, -(-gpus * machine.vcpu // pool.gpus_per_node), -(-gpus * machine.memory_mib // pool.gpus_per_node))
