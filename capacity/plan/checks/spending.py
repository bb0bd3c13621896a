"""Money and cloud quota against what the plan can use, and whether what is recorded is read by anybody."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING

from capacity.catalog.capacity_type import CloudQuota
from capacity.catalog.platform import PrometheusKind
from capacity.catalog.price_book import HOURS_OF_A_MONTH, priced_as
from capacity.settings.platform import EksSettings, GkeSettings
from capacity.values.errors import SettingsProblem, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from capacity.plan.resolved_settings import ResolvedPool, ResolvedSettings


def usd_per_gpu_hour(resolved: ResolvedSettings, pool: ResolvedPool) -> Decimal | None:
    """The least that a GPU of a pool costs an hour; None when no price is known."""
    capacity_type = priced_as(pool.settings.capacity_type)
    prices = [resolved.prices.find(machine.name, resolved.region, capacity_type) for machine in pool.machines]
    known = [price.usd_per_hour for price in prices if price is not None]
    return min(known) / pool.gpus_per_node if known else None


def _cost(resolved: ResolvedSettings, gpus_of_pools: dict[str, int]) -> tuple[Decimal, list[str]]:
    """What GPUs cost in a month of use around the clock, and the pools whose price is not known."""
    cost, unknown = Decimal(0), list[str]()
    for name, gpus in sorted(gpus_of_pools.items()):
        if name not in resolved.pools or not gpus:
            continue
        usd = usd_per_gpu_hour(resolved, resolved.pools[name])
        if usd is None:
            unknown.append(name)
        else:
            cost += usd * gpus * HOURS_OF_A_MONTH
    return cost, unknown


def budgets_cover_what_is_guaranteed(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """A budget below the cost of the guaranteed shares, used around the clock, will be broken by teams that only use what is theirs."""
    settings = resolved.settings
    owned: dict[str, int] = {}
    for number, team in enumerate(settings.teams):
        shares = {name: team.shares.get(name, 0) + team.unqueued.get(name, 0) for name in {*team.shares, *team.unqueued}}
        for name, gpus in shares.items():
            owned[name] = owned.get(name, 0) + gpus
        if team.monthly_budget_usd is not None:
            yield from _over(f"teams.{number}.monthly_budget_usd", team.monthly_budget_usd, *_cost(resolved, shares))
    if settings.budget is not None:
        yield from _over("budget.monthly_usd", settings.budget.monthly_usd, *_cost(resolved, owned))


def _over(path: str, budget: int, cost: Decimal, unknown: list[str]) -> Iterator[SettingsProblem]:
    if cost <= budget:
        return
    rest = f", without {', '.join(unknown)} whose price is not known" if unknown else ""
    usd = cost.quantize(Decimal(1), ROUND_HALF_UP)
    problem = f"is below the {usd} USD a month of the guaranteed GPUs, used around the clock{rest}"
    yield SettingsProblem(path, str(budget), problem, "lower shares or ceilings, or raise it", "budget-below-guarantee", refused=False)


def cloud_quota_covers_the_ceilings(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """The project's GPU quota, where the settings say it: Spot, flex-start and queued capacity all use the preemptible one."""
    settings = resolved.settings
    if not isinstance(settings, GkeSettings):
        return
    used: dict[tuple[str, CloudQuota], dict[str, int]] = {}
    for pool in resolved.pools.values():
        quota = resolved.facts[pool.settings.capacity_type].quota
        used.setdefault((pool.gpu.name, quota), {})[f"{pool.name} ({pool.settings.capacity_type})"] = pool.ceiling.gpus
    accelerators = {pool.gpu.name for pool in resolved.pools.values()}
    for accelerator, granted in settings.gpu_quotas.items():
        path = f"gpu_quotas.{accelerator}"
        if accelerator not in accelerators:
            yield SettingsProblem(path, "", "is not an accelerator of a pool", nearest(accelerator, accelerators), "unknown-accelerator")
        for name, quota, gpus in (
            ("preemptible", CloudQuota.PREEMPTIBLE, granted.preemptible),
            ("on_demand", CloudQuota.ON_DEMAND, granted.on_demand),
        ):
            pools = used.get((accelerator, quota), {})
            if gpus is not None and sum(pools.values()) > gpus:
                problem = f"the pools that use it can have {sum(pools.values())} GPUs: {', '.join(sorted(pools))}"
                yield SettingsProblem(
                    f"{path}.{name}", str(gpus), problem, "lower ceilings, or ask for more quota", "cloud-quota-too-small"
                )


def managed_prometheus_is_on(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Google's objects are read by Google's service alone."""
    settings = resolved.settings
    if not isinstance(settings, GkeSettings) or settings.observability.managed_prometheus:
        return
    if settings.measurement.prometheus is PrometheusKind.MANAGED:
        problem = "is not there with observability.managed_prometheus false"
        remedy = f"name another Prometheus: {PrometheusKind.OPERATOR} or {PrometheusKind.ANNOTATIONS}"
        yield SettingsProblem("measurement.prometheus", PrometheusKind.MANAGED, problem, remedy, "prometheus-not-managed")


def monitor_labels_are_read(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Labels select objects of the Prometheus operator."""
    settings = resolved.settings
    if not isinstance(settings, GkeSettings | EksSettings):
        return
    wanted = settings.measurement
    if wanted.monitor_labels and wanted.prometheus is not PrometheusKind.OPERATOR:
        problem = f"select nothing with prometheus {wanted.prometheus}"
        remedy = f"leave them out, or set prometheus to {PrometheusKind.OPERATOR}"
        yield SettingsProblem("measurement.monitor_labels", str(wanted.monitor_labels), problem, remedy, "monitor-labels-not-read")


CHECKS = (
    budgets_cover_what_is_guaranteed,
    cloud_quota_covers_the_ceilings,
    managed_prometheus_is_on,
    monitor_labels_are_read,
)
