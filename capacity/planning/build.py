"""From settings to plan: look names up, check that everything agrees, derive the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.alignment.checks import disagreements
from capacity.plan import Plan, PlanWarning, PoolPlan
from capacity.planning.admission import admission_plan
from capacity.planning.flavors import flavor_plans
from capacity.planning.gke import cluster_limits, ladder_plans
from capacity.planning.pools import owner_labels, pool_plans
from capacity.planning.queues import cohort_plans, queue_plans
from capacity.planning.readiness import pods_ready
from capacity.planning.resolve import resolve
from capacity.planning.routes import priority_plans, route_plans
from capacity.planning.spending import spending_plan
from capacity.planning.teams import team_plans
from capacity.planning.topologies import topology_plans
from capacity.platform import VOCABULARIES
from capacity.price_book import PriceBook, prices_of
from capacity.settings.problems import SettingsError

if TYPE_CHECKING:
    from capacity.planning.ground import Ground
    from capacity.settings.platform import PlatformSettings
    from capacity.settings.problems import SettingsProblem


def build_plan(settings: PlatformSettings, source: str = "settings", prices: PriceBook | None = None) -> Plan:
    """The plan that follows from settings.

    `prices` is the price book that budgets are checked against; default: the shipped one. Raises SettingsError naming `source` with
    everything that cannot work; what works and is probably not meant is in the plan's warnings.
    """
    ground, problems = resolve(settings, prices or prices_of(VOCABULARIES[settings.cloud].catalog))
    problems += disagreements(ground)
    if refused := [each for each in problems if each.refused]:
        raise SettingsError(source, refused)
    return _assemble(ground, problems)


def _assemble(ground: Ground, warnings: list[SettingsProblem]) -> Plan:
    settings = ground.settings
    pools = pool_plans(ground)
    flavors = flavor_plans(ground, pools)
    routes = route_plans(ground, pools, flavors)
    queues, cohorts = queue_plans(ground, flavors), cohort_plans(ground, flavors)
    return Plan(
        cloud=settings.cloud,
        environment=settings.environment,
        region=ground.region,
        labels=owner_labels(settings),
        pools=pools,
        accelerators=_accelerators(pools),
        limits=cluster_limits(ground, pools),
        ladders=ladder_plans(ground, routes),
        topologies=topology_plans(ground, flavors),
        flavors=flavors,
        pods_ready=pods_ready(ground),
        priorities=priority_plans(ground),
        cohorts=cohorts,
        queues=queues,
        teams=team_plans(ground, flavors, cohorts, queues),
        routes=routes,
        admission=admission_plan(settings),
        spending=spending_plan(ground),
        warnings=tuple(PlanWarning(each.rule, each.path, f"{each.problem}; {each.allowed}") for each in warnings),
    )


def _accelerators(pools: tuple[PoolPlan, ...]) -> dict[str, int]:
    ceilings: dict[str, int] = {}
    for pool in pools:
        ceilings[pool.accelerator] = ceilings.get(pool.accelerator, 0) + pool.max_gpus
    return dict(sorted(ceilings.items()))
