"""Monthly cost of a plan: by line, by team and in total. Unknown prices are named and never counted as zero."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.machines import machines_of
from flexspot.capacity.catalog.price_book import HOURS_OF_A_LONG_MONTH, HOURS_OF_A_MONTH, Measure, ServiceItem, priced_as
from flexspot.capacity.cost.figures import (
    NOTHING,
    Amounts,
    CostLine,
    Figures,
    PriceUsed,
    Section,
    divided,
    family_price_used,
    in_cents,
    price_used,
    price_with_source,
    service_price_used,
    shown_amount,
    total,
)
from flexspot.capacity.cost.worst_case import Shape, dearest_mixture, in_place_of_pools, most_with_borrowing
from flexspot.capacity.values.errors import nearest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from flexspot.capacity.catalog.price_book import PriceBook
    from flexspot.capacity.cost.costed_plan import CostedPlan, CostedPool, ExpectedUse
    from flexspot.capacity.plan.billed import BilledAmount

_ALWAYS = Decimal(1)
_MEBIBYTES = 1024


def plan_cost(plan: CostedPlan, book: PriceBook, use: ExpectedUse) -> PlanCost:
    """Return the cost of a month of `plan` at the prices of `book`, with the expected use."""
    lines = _Lines(plan, book, use)
    found = [
        *lines.pools(),
        *lines.committed(),
        *lines.system_nodes(),
        *lines.other_work(),
        *lines.services(),
        *lines.usage(),
    ]
    found += lines.made_by_itself(found)
    return summed(plan, found, tuple(notes_of(plan, book, use)))


class _Lines:
    def __init__(self, plan: CostedPlan, book: PriceBook, use: ExpectedUse) -> None:
        self._plan, self._book, self._use = plan, book, use
        self._disks = {each.pool: each.charges for each in plan.spending.disks}
        self._surges = {each.pool: each.surge_nodes for each in plan.spending.disks}
        # For each class its first capacity type: pools of the others are for the overflow.
        self._first = {each.workload_class: each.pools[0].capacity_type for each in plan.routes if each.pools}

    def pools(self) -> Iterator[CostLine]:
        """Yield nodes and disks of every pool. A reservation is billed whether it is used or not; its disks are not."""
        for pool in self._plan.pools:
            surge = self._surges.get(pool.name, 0)
            running = Amounts(Decimal(pool.max_nodes + surge), max(Decimal(pool.min_nodes), self._used(pool)), Decimal(pool.min_nodes))
            kept = Decimal(pool.max_nodes)
            billed = Amounts(kept, kept, kept) if pool.capacity_type is CapacityType.RESERVED else running
            yield self._nodes(Section.POOL, pool.name, pool.machines, pool.capacity_type, billed, pool.name)
            yield from self._fee(Section.FEE, pool.name, pool.machines, running)
            if charges := self._disks.get(pool.name):
                yield self._disk_line(Section.DISK, pool.name, charges, running)

    def _used(self, pool: CostedPool) -> Decimal:
        """Return the nodes in use on average: each class that shares the pool has an equal part of its ceiling."""
        shares = [
            self._use.of_class(each).share(pool.capacity_type, first=self._first.get(each, pool.capacity_type) is pool.capacity_type)
            for each in pool.serves
        ]
        return pool.max_nodes * sum(shares, start=Decimal(0)) / len(shares)

    def committed(self) -> Iterator[CostLine]:
        """Yield committed spend beyond the reserved pools, which are billed whole themselves."""
        reserved = [each for each in self._plan.pools if each.capacity_type is CapacityType.RESERVED]
        left = {each.name: each.max_nodes for each in reserved}
        for commitment in sorted(self._book.commitments, key=lambda each: each.pool is None):
            if commitment.region != self._plan.region:
                continue
            nodes = commitment.nodes
            for pool in reserved:
                if commitment.machine in pool.machines and commitment.pool in {None, pool.name}:
                    taken = min(nodes, left[pool.name])
                    left[pool.name] -= taken
                    nodes -= taken
            if nodes:
                kept = Decimal(nodes)
                name = f"committed: {commitment.what}"
                amounts = Amounts(kept, kept, kept)
                yield self._nodes(Section.COMMITMENT, name, (commitment.machine,), CapacityType.RESERVED, amounts, commitment.pool)

    def system_nodes(self) -> Iterator[CostLine]:
        """Yield the controllers' on-demand nodes and their disks."""
        nodes = self._plan.spending.system_nodes
        if nodes is None:
            return
        least, most = Decimal(nodes.min_nodes), Decimal(nodes.max_nodes)
        amounts = Amounts(most + nodes.surge_nodes, least + (most - least) * self._use.system_nodes_percent / 100, least)
        yield self._nodes(Section.SYSTEM, "system nodes", (nodes.machine,), CapacityType.ON_DEMAND, amounts)
        yield from self._fee(Section.SYSTEM, "Auto Mode's fee on system nodes", (nodes.machine,), amounts)
        yield self._disk_line(Section.SYSTEM, "disks of system nodes", nodes.charges, amounts)

    def other_work(self) -> Iterator[CostLine]:
        """Yield the room for nodes without GPUs: at worst the dearest mixture of machines that fits, as expected the one that fills it
        dearest.
        """
        room = self._plan.spending.other_work
        if room is None:
            return
        shapes, unknown = self._shapes(room.charges)
        alone = max(((each.most(room.max_vcpu, room.max_memory_gib), each.name) for each in shapes), default=None)
        if alone is None:
            missing = f"on-demand price of any machine without GPUs in {self._plan.region}"
            yield CostLine(Section.OTHER_WORK, "other work", f"up to {room.max_vcpu} vCPU", None, (), (missing,))
            return
        nodes = next(each.nodes(room.max_vcpu, room.max_memory_gib) for each in shapes if each.name == alone[1])
        expected = alone[0] * HOURS_OF_A_MONTH / HOURS_OF_A_LONG_MONTH * self._use.other_work_percent / 100
        # The limit of a GKE cluster is in whole GiB, rounded up.
        rounded = 0 if self._plan.spending.made_by_itself is None else 1
        worst = dearest_mixture(shapes, Decimal(room.max_vcpu), Decimal(room.max_memory_gib + rounded))
        quantity = f"up to {room.max_vcpu} vCPU and {room.max_memory_gib} GiB on demand with disks, such as {nodes} {alone[1]}"
        figures = in_cents(worst, expected, Decimal(0))
        prices = tuple(each.price for each in shapes if each.name == alone[1])
        yield CostLine(Section.OTHER_WORK, "other work", quantity, figures, prices, unknown)

    def _shapes(self, charges: Sequence[BilledAmount]) -> tuple[list[Shape], tuple[str, ...]]:
        """Return the priced machines without GPUs that an autoscaler may create, with a disk each, and the missing prices.

        In Auto Mode each includes its fee.
        """
        region, disk, missing = self._plan.region, Decimal(0), list[str]()
        for each in charges:
            price = self._book.find_service(each.item, region)
            if price is None:
                missing.append(f"price of {each.item} in {region}")
            else:
                disk += price.usd * each.amount
        shapes: list[Shape] = []
        for machine in machines_of(self._book.cloud).values():
            price = self._book.paid(machine.name, region, CapacityType.ON_DEMAND)
            if machine.gpu is None and price is not None:
                usd = price.usd_per_hour * self._with_fee(machine.name) * HOURS_OF_A_LONG_MONTH + disk
                memory = Decimal(machine.memory_mib) / _MEBIBYTES
                shapes.append(Shape(machine.name, Decimal(machine.vcpu), memory, usd, price_used(self._book, price)))
        for family in self._book.family_names:
            row = self._book.families.get((family, region))
            if row is None:
                continue
            usd = row.usd_per_hour * self._with_fee(family) * HOURS_OF_A_LONG_MONTH + disk
            name = f"of the smallest {family}"
            shapes.append(Shape(name, Decimal(row.vcpu), Decimal(row.memory_gib), usd, family_price_used(self._book, row)))
        if unpriced := self._book.unpriced_families(region):
            missing.append(f"on-demand price of {len(unpriced)} families of machines without GPUs in {region}")
        return shapes, tuple(missing)

    def _with_fee(self, machine: str) -> Decimal:
        """Return the cost of a machine or family for each dollar of its on-demand price: one, plus the fee in Auto Mode."""
        fee = self._book.fee_of(machine) if self._plan.spending.auto_mode else None
        return 1 + fee.percent / 100 if fee is not None else Decimal(1)

    def made_by_itself(self, lines: Sequence[CostLine]) -> Iterator[CostLine]:
        """Yield the extra cost of node auto-provisioning: its nodes in place of those of pools, within the cluster's limits."""
        room = self._plan.spending.made_by_itself
        if room is not None:
            yield from in_place_of_pools(self._plan, self._book, self._shapes(room.charges)[0], lines)

    def services(self) -> Iterator[CostLine]:
        """Yield the services that are billed while they exist. Temporary ones are expected to exist always."""
        for part in self._plan.spending.services:
            amounts = Amounts(Decimal(part.most), Decimal(part.most), Decimal(part.least))
            yield self._line(Section.SERVICE, part.name, [(part.item, _ALWAYS)], amounts)

    def usage(self) -> Iterator[CostLine]:
        """Yield the use that the user declares. The worst case is the same, as no plan limits it. An idle platform still keeps its data."""
        use = self._use
        for name, item, amount, idle in (
            ("data in buckets", ServiceItem.BUCKET_STORAGE, use.bucket_gib, use.bucket_gib),
            ("data in EFS", ServiceItem.EFS_STORAGE, use.efs_gib, use.efs_gib),
            ("data read from EFS", ServiceItem.EFS_READ, use.efs_read_gib, 0),
            ("data written to EFS", ServiceItem.EFS_WRITTEN, use.efs_written_gib, 0),
            ("data to the internet", ServiceItem.INTERNET_TRAFFIC, use.internet_gib, 0),
            ("data through the NAT", ServiceItem.NAT_TRAFFIC, use.nat_gib, 0),
            ("load balancers", ServiceItem.LOAD_BALANCER, use.load_balancers, use.load_balancers),
        ):
            if amount:
                yield self._line(Section.USAGE, name, [(item, _ALWAYS)], Amounts(Decimal(amount), Decimal(amount), Decimal(idle)))

    def _nodes(  # noqa: PLR0913, PLR0917 -- what a line is of
        self, section: Section, name: str, machines: Sequence[str], capacity_type: CapacityType, amounts: Amounts, pool: str | None = None
    ) -> CostLine:
        """Yield nodes of any of `machines`: at worst all of the dearest, as expected the first, idle the cheapest with a known price.

        A machine without a known price costs the on-demand price at worst.
        """
        region = self._plan.region
        paid = {each: self._book.paid(each, region, capacity_type, pool) for each in machines}
        at_most = {each: self._book.paid_at_most(each, region, capacity_type, pool) for each in machines}
        known = {each: price.usd_per_hour for each, price in paid.items() if price is not None}
        most = {each: price.usd_per_hour for each, price in at_most.items() if price is not None}
        named = {each: f"{priced_as(capacity_type)} price of {each} in {region}" for each in machines}
        unknown = tuple(named[each] for each in machines if each not in known)
        quantity = f"{', '.join(machines)} {capacity_type}: {amounts}"
        if not most:
            return CostLine(section, name, quantity, None, (), unknown)
        dearest = max(most.values())
        # The first machine is the requested one. Without its price, only the least price of the others is certain.
        first = known.get(machines[0], min(known.values(), default=Decimal(0)))
        figures = in_cents(
            amounts.worst * dearest * HOURS_OF_A_LONG_MONTH,
            amounts.expected * first * HOURS_OF_A_MONTH,
            amounts.floor * min(known.values(), default=Decimal(0)) * HOURS_OF_A_MONTH,
            amounts.expected * (most.get(machines[0], dearest) if unknown else first) * HOURS_OF_A_MONTH,
        )
        prices = tuple(price_used(self._book, each) for each in dict.fromkeys([*paid.values(), *at_most.values()]) if each)
        bounded = tuple(named[each] for each in machines if each not in known and each in most)
        return CostLine(section, name, quantity, figures, prices, unknown, bounded, priced=bool(known))

    def _fee(self, section: Section, name: str, machines: Sequence[str], amounts: Amounts) -> Iterator[CostLine]:
        """Yield the EKS Auto Mode fee for running nodes of any of `machines`, in the same amounts; nothing without Auto Mode."""
        if not self._plan.spending.auto_mode:
            return
        region, month = self._plan.region, HOURS_OF_A_MONTH
        found = {each: self._book.node_fee(each, region) for each in machines}
        known = {each: fee for each, fee in found.items() if fee is not None}
        unknown = tuple(f"Auto Mode's fee on {each} in {region}" for each in machines if each not in known)
        quantity = f"Auto Mode's fee on {', '.join(machines)}: {amounts}"
        if not known:
            yield CostLine(section, name, quantity, None, (), unknown)
            return
        usd = [each for _, each in known.values()]
        figures = in_cents(
            amounts.worst * max(usd) * HOURS_OF_A_LONG_MONTH, amounts.expected * usd[0] * month, amounts.floor * min(usd) * month
        )
        prices: list[PriceUsed] = []
        for machine, (fee, hour) in known.items():
            what = f"Auto Mode's fee on {machine}, {fee.percent} % of its on-demand price"
            prices.append(price_with_source(self._book.source_of(fee), what, hour))
        yield CostLine(section, name, quantity, figures, tuple(prices), unknown)

    def _disk_line(self, section: Section, name: str, charges: Sequence[BilledAmount], nodes: Amounts) -> CostLine:
        return self._line(section, name, [(each.item, Decimal(each.amount)) for each in charges], nodes)

    def _line(self, section: Section, name: str, items: Sequence[tuple[ServiceItem, Decimal]], amounts: Amounts) -> CostLine:
        """Return a line with each item in this quantity, times `amounts`."""
        region = self._plan.region
        figures: list[Figures] = []
        prices: list[PriceUsed] = []
        unknown: list[str] = []
        for item, each in items:
            price = self._book.find_service(item, region)
            if price is None:
                unknown.append(f"price of {item} in {region}")
                continue
            usual, most = (HOURS_OF_A_MONTH, HOURS_OF_A_LONG_MONTH) if item.measure is Measure.HOUR else (1, 1)
            usd = price.usd * each
            figures.append(in_cents(amounts.worst * usd * most, amounts.expected * usd * usual, amounts.floor * usd * usual))
            prices.append(service_price_used(self._book, price))
        of_each = ", ".join(f"{shown_amount(each)} {item.measure}" for item, each in items if each != 1)
        quantity = f"{of_each} each: {amounts}" if of_each else str(amounts)
        return CostLine(section, name, quantity, total(figures) if figures else None, tuple(prices), tuple(unknown))


def notes_of(plan: CostedPlan, book: PriceBook, use: ExpectedUse) -> Iterator[str]:
    """Yield notes about names in prices and expectations that the plan lacks. A misspelled name would otherwise be ignored silently."""
    pools = [each.name for each in plan.pools]
    named = {key[3] for key in book.of_pools} | {each.pool for each in book.commitments if each.pool is not None}
    for pool in sorted(named - set(pools)):
        yield f"a price or commitment is of pool {pool}, which the plan does not have, and counts for nothing there; {nearest(pool, pools)}"
    served = {each for pool in plan.pools for each in pool.serves} | {each.workload_class for each in plan.routes}
    known = sorted(served | set(use.shipped_classes))
    for name in sorted(set(use.classes) - set(known)):
        yield f"the expected use names class {name}, which the plan does not have, and counts for nothing; {nearest(name, known)}"


@dataclass(frozen=True)
class TeamCost:
    """A team's part of the pools, in GPUs and in money, as if it used nothing else.

    `budget` is in US dollars a month. `most_usd` is the worst-case monthly cost of the most GPUs that it may hold at once, including
    borrowed ones; None if the plan does not limit them. `unbounded` are missing prices that are in no worst case.
    """

    name: str
    gpus: int
    figures: Figures
    budget: Decimal | None
    unknown: tuple[str, ...]
    unbounded: tuple[str, ...]
    most_usd: Decimal | None

    @property
    def worst_usd(self) -> Decimal:
        """Worst case, with borrowed GPUs if the plan limits them."""
        return max(self.figures.worst_usd, self.most_usd or self.figures.worst_usd)


@dataclass(frozen=True)
class PlanCost:
    """The cost of a month of a plan.

    `unallocated` is the part of the pools without a team: a cohort's, or free to borrow. `platform` is shared by all. Teams, unallocated
    and platform sum to `total`, and so do the lines. `notes` name entries of prices or expectations that the plan lacks.
    """

    cloud: str
    environment: str
    region: str
    lines: tuple[CostLine, ...]
    teams: tuple[TeamCost, ...]
    unallocated: Figures
    platform: Figures
    total: Figures
    budget: Decimal | None
    notes: tuple[str, ...] = ()

    @property
    def unknown(self) -> tuple[str, ...]:
        """Missing prices, each once. If there are any, the expected amount and the floor are lower bounds."""
        return tuple(dict.fromkeys(each for line in self.lines for each in line.unknown))

    @property
    def unbounded(self) -> tuple[str, ...]:
        """Missing prices that are in no worst case. If there are any, it is a lower bound too."""
        return tuple(dict.fromkeys(each for line in self.lines for each in line.unbounded))

    @property
    def complete(self) -> bool:
        """True if every price is known, and all given prices and expectations apply to the plan."""
        return not self.unknown and not self.notes


def summed(plan: CostedPlan, lines: Sequence[CostLine], notes: tuple[str, ...] = ()) -> PlanCost:
    """Return the lines of a plan with their sums, with the pools' lines allocated to teams by their GPUs."""
    names = [team.name for team in plan.teams]
    of_teams: dict[str, list[Figures]] = {name: [] for name in names}
    missing: dict[str, list[CostLine]] = {name: [] for name in names}
    gpus = dict.fromkeys(names, 0)
    unallocated = NOTHING
    shares: dict[str, dict[str, int]] = {}
    for share in plan.spending.shares:
        shares.setdefault(share.pool, {})[share.team] = share.gpus
        gpus[share.team] += share.gpus
    ceilings = {pool.name: pool.ceiling.gpus for pool in plan.pools}
    for line in lines:
        if not line.section.of_pools:
            continue
        owners = shares.get(line.name, {})
        for team in owners:
            missing[team].append(line)
        if line.figures is not None:
            *parts, rest = divided(line.figures, [*owners.values(), max(0, ceilings[line.name] - sum(owners.values()))])
            unallocated += rest
            for team, part in zip(owners, parts, strict=True):
                of_teams[team].append(part)
    teams = tuple(
        TeamCost(
            each.name,
            gpus[each.name],
            total(of_teams[each.name]),
            None if each.budget is None else Decimal(each.budget),
            tuple(dict.fromkeys(price for line in missing[each.name] for price in line.unknown)),
            tuple(dict.fromkeys(price for line in missing[each.name] for price in line.unbounded)),
            most_with_borrowing(each, plan, lines),
        )
        for each in plan.teams
    )
    return PlanCost(
        cloud=plan.cloud.value,
        environment=plan.environment,
        region=plan.region,
        lines=tuple(lines),
        teams=teams,
        unallocated=unallocated,
        platform=total(line.figures for line in lines if not line.section.of_pools),
        total=total(line.figures for line in lines),
        budget=None if plan.spending.budget_usd is None else Decimal(plan.spending.budget_usd),
        notes=notes,
    )
