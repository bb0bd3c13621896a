"""Checks of shares, budgets, quotas, CPU work, metrics and access: promises against the capacity that can exist."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.capacity_type import CloudQuota
from flexspot.capacity.catalog.platform import PrometheusKind, partition_of
from flexspot.capacity.catalog.price_book import HOURS_OF_A_MONTH
from flexspot.capacity.plan.cpu_work import CPU_QUEUE, cpu_names, has_room, room_of
from flexspot.capacity.plan.pools import has_shared_large_nodes, shared_flavor, uses_whole_nodes
from flexspot.capacity.plan.teams import is_role
from flexspot.capacity.settings.platform import EksSettings, GkeSettings, LocalSettings
from flexspot.capacity.settings.teams import RESERVED_GROUPS, AdmissionMode, CohortSettings, Stop
from flexspot.capacity.values.errors import SettingsProblem, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.capacity.plan.resolve import ResolvedPool, ResolvedSettings
    from flexspot.capacity.settings.teams import GpusOfPools, TeamSettings


def parents_exist_and_end_at_the_root(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse unknown parents, and cohorts that are their own ancestors: Kueue disables the whole tree of such a cohort."""
    settings = resolved.settings
    parents = {each.name: each.parent or settings.cohort for each in settings.cohorts}
    known = [settings.cohort, *parents]
    if settings.cohort in parents:
        # Another check reports the duplicate name. The root of the tree is ambiguous here.
        return
    for number, cohort in enumerate(settings.cohorts):
        parent = parents[cohort.name]
        if parent not in known:
            path = f"cohorts.{number}.parent"
            yield SettingsProblem(path, repr(parent), "is not a cohort", nearest(parent, known), "unknown-cohort")
        way, at = [cohort.name], parent
        while at in parents and at not in way:
            way.append(at)
            at = parents[at]
        # A cycle is reported once, at the first of its names.
        if at == cohort.name == min(way):
            problem = f"is its own ancestor: {' in '.join([*way, at])}"
            remedy = f"choose a parent that leads to the root of the tree, {settings.cohort}"
            yield SettingsProblem(f"cohorts.{number}.parent", repr(cohort.parent), problem, remedy, "cohort-cycle")
    for number, team in enumerate(settings.teams):
        if team.cohort is not None and team.cohort not in known:
            path = f"teams.{number}.cohort"
            yield SettingsProblem(path, repr(team.cohort), "is not a cohort", nearest(team.cohort, known), "unknown-cohort")


def limits_need_another_queue(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Warn about limits and weights of a queue that is alone in its tree. It can neither borrow nor be weighed against another."""
    sharing = [number for number, team in enumerate(resolved.settings.teams) if team.shares]
    if len(sharing) != 1:
        return
    [number] = sharing
    team = resolved.settings.teams[number]
    promised = Counter(team.shares)
    left = any(resolved.queue_gpus(pool) > promised[name] for name, pool in resolved.queued_pools.items() if name in promised)
    inert = [
        *(["borrowing_limits"] if team.borrowing_limits and not left else []),
        *(["lending_limits"] if team.lending_limits else []),
        *(["weight"] if team.weight != 1 else []),
    ]
    for field in inert:
        problem = f"has no effect: no other team has a share in cohort {team.cohort or resolved.settings.cohort}"
        remedy = "give another team of the cohort a share, or leave it out"
        yield SettingsProblem(f"teams.{number}.{field}", "", problem, remedy, "alone-in-cohort", refused=False)


def stopped_teams_have_a_queue(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Warn about `stop` for a team without shares. It has no queue, and its services keep running."""
    for number, team in enumerate(resolved.settings.teams):
        if team.stop is not Stop.NONE and not team.shares:
            problem = f"has no effect: team {team.name} has no queue"
            remedy = "leave it out: owners scale down work outside queues themselves"
            yield SettingsProblem(f"teams.{number}.stop", repr(team.stop.value), problem, remedy, "stop-without-queue", refused=False)


@dataclass(frozen=True)
class _Owner:
    path: str
    settings: TeamSettings | CohortSettings


def _owners(resolved: ResolvedSettings) -> list[_Owner]:
    teams = [_Owner(f"teams.{number}", team) for number, team in enumerate(resolved.settings.teams)]
    return [*(_Owner(f"cohorts.{number}", cohort) for number, cohort in enumerate(resolved.settings.cohorts)), *teams]


def shares_are_of_queued_pools(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse shares of pools that serve no queued class. A queue only admits to GPUs of pools that do."""
    for owner in _owners(resolved):
        for name in owner.settings.shares:
            if name not in resolved.queued_pools and name not in resolved.doubtful_pools:
                allowed = nearest(name, resolved.queued_pools)
                path = f"{owner.path}.shares.{name}"
                yield SettingsProblem(path, "", "is not a pool that serves a queued class", allowed, "share-of-no-queued-pool")


def limits_are_of_shares(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse limits without a share, which have no effect, and teams' lending limits above their share."""
    for owner in _owners(resolved):
        shares = owner.settings.shares
        for field, limits in {"borrowing_limits": owner.settings.borrowing_limits, "lending_limits": owner.settings.lending_limits}.items():
            for name in limits:
                path = f"{owner.path}.{field}.{name}"
                if name not in resolved.queued_pools and name not in resolved.doubtful_pools:
                    allowed = nearest(name, shares or resolved.queued_pools)
                    yield SettingsProblem(path, "", "is not a pool that serves a queued class", allowed, "share-of-no-queued-pool")
                elif name not in shares:
                    remedy = f"set shares.{name} too (0 means: only borrow)"
                    yield SettingsProblem(path, str(limits[name]), "needs a share of the same pool", remedy, "limit-without-share")
        if isinstance(owner.settings, CohortSettings):
            # A cohort may lend more than its own shares: its teams' shares count too.
            continue
        for name, limit in owner.settings.lending_limits.items():
            if limit > shares.get(name, limit):
                problem = f"is above the share of {shares[name]}"
                path = f"{owner.path}.lending_limits.{name}"
                yield SettingsProblem(path, str(limit), problem, f"allowed: 0 to {shares[name]}", "lending-more-than-owned")


def shares_fit_into_their_pool(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse guaranteed shares that add up to more than the pool's ceiling."""
    promised: dict[str, int] = {}
    for owner in _owners(resolved):
        for name, gpus in owner.settings.shares.items():
            promised[name] = promised.get(name, 0) + gpus
    for name, pool in resolved.queued_pools.items():
        own, unqueued = promised.get(name, 0), resolved.unqueued_gpus[name]
        if own + unqueued > pool.ceiling.gpus:
            outside = f" and {unqueued} for unqueued classes" if unqueued else ""
            problem = f"the shares of pool {name} add up to {own} GPUs{outside}, but its ceiling is {pool.ceiling.gpus}"
            remedy = "lower the shares, or raise the ceiling of the pool"
            yield SettingsProblem("teams", "", problem, remedy, "quota-above-ceiling")


def shares_are_whole_nodes(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse shares of parts of nodes or slices whose pods use all devices: the part is unusable."""
    for owner in _owners(resolved):
        for field in ("shares", "borrowing_limits", "lending_limits", "unqueued"):
            amounts: GpusOfPools = getattr(owner.settings, field, {})
            yield from _parts_of_nodes(resolved, f"{owner.path}.{field}", amounts)


def _parts_of_nodes(resolved: ResolvedSettings, path: str, amounts: GpusOfPools) -> Iterator[SettingsProblem]:
    for name, gpus in amounts.items():
        if (pool := resolved.pools.get(name)) and uses_whole_nodes(resolved, pool):
            is_slice = getattr(pool.settings, "tpu_topology", None) is not None
            unit = pool.ceiling.gpus if is_slice else pool.gpus_per_node
            if gpus % unit:
                what = f"the {unit} chips of the slice" if is_slice else f"the {unit} devices of a {pool.machines[0].name}"
                problem = f"is not a multiple of {what}, which workloads use as a whole"
                lower = gpus // unit * unit
                near = f"{lower} or {lower + unit}" if lower + unit <= pool.ceiling.gpus else str(lower)
                yield SettingsProblem(f"{path}.{name}", str(gpus), problem, f"allowed: {near}", "part-of-a-node")


def pools_of_a_flavor_have_nodes_of_one_size(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse nodes of different sizes behind one flavor, if a pod uses a whole node of one of them: Kueue could not tell where it fits."""
    sizes: dict[str, dict[str, int]] = {}
    for name, pool in resolved.queued_pools.items():
        if flavor := shared_flavor(resolved, pool):
            sizes.setdefault(flavor, {})[name] = pool.gpus_per_node
    for pools in sizes.values():
        whole = [name for name in pools if uses_whole_nodes(resolved, resolved.pools[name])]
        if whole and len(set(pools.values())) > 1:
            has = ", ".join(f"{name} has {gpus}" for name, gpus in pools.items())
            problem = f"one flavor stands for nodes with different numbers of GPUs ({has}), and a pod of {whole[0]} uses a whole node"
            remedy = "use machines with the same number of GPUs, or set node_sharing: true on these pools"
            yield SettingsProblem(resolved.pools[whole[0]].path, repr(whole[0]), problem, remedy, "nodes-of-different-sizes")


def shares_hold_on_whole_nodes_only(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Warn about pools whose pods may use parts of nodes although several teams use them."""
    for pool in resolved.queued_pools.values():
        if has_shared_large_nodes(resolved, pool) and not uses_whole_nodes(resolved, pool):
            problem = "pods of one team may leave no node with enough free GPUs for a pod within another's share"
            remedy = "leave it out, or use machines with one GPU"
            yield SettingsProblem(f"{pool.path}.node_sharing", "true", problem, remedy, "guarantee-not-held", refused=False)


def unqueued_gpus_are_of_unqueued_pools(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse unqueued GPUs of pools that serve no unqueued class. Warn if teams may use more of them than exist, or none."""
    open_pools = {name: pool for name, pool in resolved.pools.items() if pool.unqueued}
    for number, team in enumerate(resolved.settings.teams):
        for name in team.unqueued:
            if name not in open_pools and name not in resolved.doubtful_pools:
                path = f"teams.{number}.unqueued.{name}"
                allowed = nearest(name, open_pools)
                yield SettingsProblem(path, "", "is not a pool that serves an unqueued class", allowed, "unqueued-gpus-of-no-such-pool")
    for name, pool in open_pools.items():
        promised = resolved.unqueued_gpus[name]
        if not pool.queued and promised > pool.ceiling.gpus:
            problem = f"teams may use {promised} GPUs of pool {name} at once, but its ceiling is {pool.ceiling.gpus}: some pods would wait"
            yield SettingsProblem(
                "teams", "", problem, "lower the teams' unqueued GPUs, or raise the ceiling", "unqueued-gpus-above-ceiling", refused=False
            )
        if promised == 0 and not pool.queued:
            problem = f"no team may use pool {name}: none has unqueued GPUs of it"
            remedy = f"set unqueued.{name} for the teams that run services"
            yield SettingsProblem("teams", "", problem, remedy, "pool-that-nobody-may-use", refused=False)


def every_queued_pool_has_an_owner_or_a_borrower(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Warn about a queued pool in which no team has a share: it would be paid for and never used."""
    named = {name for team in resolved.settings.teams for name in team.shares}
    for name in resolved.queued_pools:
        if name not in named:
            problem = f"no team may use pool {name}: none has a share of it"
            remedy = f"set shares.{name} for a team (0 means: only borrow)"
            yield SettingsProblem("teams", "", problem, remedy, "pool-that-nobody-may-use", refused=False)


def usd_per_gpu_hour(resolved: ResolvedSettings, pool: ResolvedPool) -> Decimal | None:
    """Return the lowest hourly cost of a GPU of a pool, with Auto Mode's fee, or None if no price is known."""
    kind = pool.settings.capacity_type
    known: list[Decimal] = []
    for machine in pool.machines:
        price = resolved.prices.paid(machine.name, resolved.region, kind, pool.settings.name)
        fee = resolved.prices.node_fee(machine.name, resolved.region) if resolved.auto_mode else None
        if price is not None:
            known.append(price.usd_per_hour + (fee[1] if fee else 0))
    return min(known) / pool.gpus_per_node if known else None


def _cost(resolved: ResolvedSettings, gpus_of_pools: dict[str, int]) -> tuple[Decimal, list[str]]:
    """Return the cost of GPUs in a month of use around the clock, and the pools without a known price."""
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


def budgets_cover_guaranteed_shares(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Warn about a budget below the cost of the guaranteed shares, used around the clock: ordinary use would exceed it."""
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
    rest = f", not counting {', '.join(unknown)} without a known price" if unknown else ""
    usd = cost.quantize(Decimal(1), ROUND_HALF_UP)
    problem = f"is below the {usd} USD a month that the guaranteed GPUs cost around the clock{rest}"
    yield SettingsProblem(path, str(budget), problem, "raise it, or lower shares or ceilings", "budget-below-guarantee", refused=False)


def cloud_quota_covers_the_ceilings(resolved: ResolvedSettings, settings: GkeSettings) -> Iterator[SettingsProblem]:
    """Refuse ceilings above the GPU quotas in the settings. Spot, flex-start and queued capacity use the preemptible quota."""
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
                problem = f"the pools that use this quota can have {sum(pools.values())} GPUs: {', '.join(sorted(pools))}"
                yield SettingsProblem(
                    f"{path}.{name}", str(gpus), problem, "lower the ceilings, or request more quota", "cloud-quota-too-small"
                )


def managed_prometheus_is_on(settings: GkeSettings) -> Iterator[SettingsProblem]:
    """Refuse managed Prometheus objects on a cluster without it: only Google's service reads them."""
    if settings.observability.managed_prometheus:
        return
    if settings.measurement.prometheus is PrometheusKind.MANAGED:
        problem = "is not available with observability.managed_prometheus: false"
        remedy = f"name another Prometheus: {PrometheusKind.OPERATOR} or {PrometheusKind.ANNOTATIONS}"
        yield SettingsProblem("measurement.prometheus", PrometheusKind.MANAGED, problem, remedy, "prometheus-not-managed")


def monitor_labels_are_read(settings: GkeSettings | EksSettings) -> Iterator[SettingsProblem]:
    """Refuse monitor labels without the Prometheus Operator, which alone selects objects by them."""
    wanted = settings.measurement
    if wanted.monitor_labels and wanted.prometheus is not PrometheusKind.OPERATOR:
        problem = f"have no effect with prometheus: {wanted.prometheus}"
        remedy = f"leave them out, or set prometheus to {PrometheusKind.OPERATOR}"
        yield SettingsProblem("measurement.monitor_labels", str(wanted.monitor_labels), problem, remedy, "monitor-labels-not-read")


def cpu_work_fits_into_its_room(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse shares of CPU work above the nodes that can exist: admitted pods would wait forever."""
    settings = resolved.settings
    room = room_of(settings)
    owners = [(number, team.cpu_work) for number, team in enumerate(settings.teams) if team.cpu_work is not None]
    path = "other_work" if isinstance(settings, LocalSettings) else "cluster.other_work"
    for number, own in owners:
        if not has_room(settings) and (own.vcpu or own.memory_gib):
            problem = f"requests {own.vcpu} vCPU and {own.memory_gib} GiB, but the stack has no nodes for work without GPUs"
            remedy = f"leave it out, or set max_vcpu and max_memory_gib in {path}"
            yield SettingsProblem(f"teams.{number}.cpu_work", "", problem, remedy, "cpu-work-without-room")
    if not has_room(settings) or not owners:
        return
    for field, ceiling, of_all in (("vcpu", "max_vcpu", room.max_vcpu), ("memory_gib", "max_memory_gib", room.max_memory_gib)):
        amounts = [getattr(own, field) for _, own in owners]
        if (promised := sum(amounts)) > of_all:
            last = owners[-1][0]
            problem = f"brings the total of all teams to {' + '.join(map(str, amounts))} = {promised}, but {path}.{ceiling} is {of_all}"
            remedy = f"give the teams at most {of_all} in total, or raise {path}.{ceiling}"
            yield SettingsProblem(f"teams.{last}.cpu_work.{field}", str(amounts[-1]), problem, remedy, "cpu-work-above-room")


def names_of_cpu_queues_are_free(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse names that the queues for work without GPUs use for their ClusterQueues, cohort, flavor or NodePool."""
    settings = resolved.settings
    if not has_room(settings):
        return
    name, cluster_queues = cpu_names(settings)
    owner_of = {queue: team for team, queue in cluster_queues.items()}
    for number, team in enumerate(settings.teams):
        if team.name in owner_of:
            problem = f"is the name of team {owner_of[team.name]}'s queue for work without GPUs"
            remedy = f"choose a name that is not another team's name with -{CPU_QUEUE} appended"
            yield SettingsProblem(f"teams.{number}.name", repr(team.name), problem, remedy, "name-of-cpu-queue")
    for number, cohort in enumerate(settings.cohorts):
        if cohort.name == name:
            problem, remedy = "is the name of the cohort for work without GPUs", "choose another name"
            yield SettingsProblem(f"cohorts.{number}.name", repr(name), problem, remedy, "name-of-cpu-queue")
    for number, pool in enumerate(settings.pools):
        if pool.name == name:
            problem, remedy = "is the name of the flavor for work without GPUs", "choose another name"
            yield SettingsProblem(f"pools.{number}.name", repr(name), problem, remedy, "name-of-cpu-queue")


def roles_are_of_the_clusters_partition(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse IAM roles of other partitions, and IAM roles on other clouds."""
    settings = resolved.settings
    for path, role in [*_members(resolved, roles=True), *_admins(resolved)]:
        if not isinstance(settings, EksSettings):
            yield SettingsProblem(path, role, "is an IAM role, which only EKS can map to a group", "name a group", "role-without-eks")
        elif role.split(":")[1] != (partition := partition_of(settings.region)):
            problem = f"is a role of another partition: {settings.region} is in {partition}"
            yield SettingsProblem(path, role, problem, f"use a role arn:{partition}:iam::...", "role-of-another-partition")


def roles_have_one_access_entry(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse duplicate roles. EKS refuses a second access entry of a role, and an administrator has all rights of a team anyway."""
    admins: set[str] = set()
    for path, role in _admins(resolved):
        if role in admins:
            yield SettingsProblem(path, role, "is listed twice", "remove one of them", "duplicate-name")
        admins.add(role)
    for path, role in _members(resolved, roles=True):
        if role in admins:
            problem = "is one of cluster.admin_roles, which have all rights of a team"
            yield SettingsProblem(path, role, problem, "remove it from one of the two lists", "role-is-administrator")


def groups_can_have_members(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Refuse groups with reserved names on EKS, which accepts no access entry with them, so they could have no members."""
    if not isinstance(resolved.settings, EksSettings):
        return
    for path, group in _members(resolved, roles=False):
        if group.startswith(RESERVED_GROUPS):
            problem = f"is a group that no access entry can name: EKS reserves {', '.join(RESERVED_GROUPS)}"
            yield SettingsProblem(path, group, problem, "choose another name, or name an IAM role", "reserved-name")


def the_api_server_enforces_guarantees(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Warn about several teams without enforced policies: whoever may create Jobs could use GPUs that no queue counts."""
    mode = resolved.settings.admission.mode
    if mode is not AdmissionMode.ENFORCE and len(resolved.settings.teams) > 1:
        problem = "rejects nothing, so members of one team can take GPUs that are guaranteed to another"
        yield SettingsProblem(
            "admission.mode", repr(mode.value), problem, f"use {AdmissionMode.ENFORCE}", "guarantee-not-held", refused=False
        )


def _members(resolved: ResolvedSettings, *, roles: bool) -> Iterator[tuple[str, str]]:
    for number, team in enumerate(resolved.settings.teams):
        for field, members in (("submitters", team.submitters), ("viewers", team.viewers)):
            yield from ((f"teams.{number}.{field}.{each}", member) for each, member in enumerate(members) if is_role(member) == roles)


def _admins(resolved: ResolvedSettings) -> Iterator[tuple[str, str]]:
    """Yield the admin roles of a new cluster. The owner of an existing one manages its access."""
    if isinstance(resolved.settings, EksSettings) and resolved.settings.cluster.existing is None:
        yield from ((f"cluster.admin_roles.{number}", role) for number, role in enumerate(resolved.settings.cluster.admin_roles))
