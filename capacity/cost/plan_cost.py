"""What a plan costs in a month: line by line, by team, in all; what has no known price is named and never counted as zero."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING

from capacity.catalog.capacity_type import CapacityType
from capacity.catalog.machines import machines_of
from capacity.catalog.price_book import HOURS_OF_A_MONTH, Measure, ServiceItem, priced_as
from capacity.values.quantities import cents

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import date

    from capacity.catalog.price_book import Price, PriceBook, ServicePrice
    from capacity.cost.costed_plan import CostedPlan, CostedPool, ExpectedUse
    from capacity.plan.model import Charge


class Scenario(StrEnum):
    """Which month is meant.

    WORST: every enforced ceiling is reached all month. EXPECTED: as the expected use says. FLOOR: nothing runs; what is kept is paid.
    """

    WORST = "worst-case"
    EXPECTED = "expected"
    FLOOR = "idle-floor"


@dataclass(frozen=True)
class Figures:
    """US dollars a month, in whole cents."""

    worst_usd: Decimal
    expected_usd: Decimal
    floor_usd: Decimal

    def __add__(self, other: Figures) -> Figures:
        return Figures(self.worst_usd + other.worst_usd, self.expected_usd + other.expected_usd, self.floor_usd + other.floor_usd)

    def __sub__(self, other: Figures) -> Figures:
        return Figures(self.worst_usd - other.worst_usd, self.expected_usd - other.expected_usd, self.floor_usd - other.floor_usd)

    def of(self, scenario: Scenario) -> Decimal:
        """The figure of one of the three months."""
        return {Scenario.WORST: self.worst_usd, Scenario.EXPECTED: self.expected_usd, Scenario.FLOOR: self.floor_usd}[scenario]


NOTHING = Figures(Decimal("0.00"), Decimal("0.00"), Decimal("0.00"))


def in_cents(worst_usd: Decimal, expected_usd: Decimal, floor_usd: Decimal) -> Figures:
    """Amounts rounded as invoices are."""
    return Figures(cents(worst_usd), cents(expected_usd), cents(floor_usd))


def total(figures: Iterable[Figures | None]) -> Figures:
    """The sum of those that are known."""
    return sum((each for each in figures if each is not None), start=NOTHING)


def divided(figures: Figures, weights: Sequence[int]) -> list[Figures]:
    """The figures in parts by weight that sum to the whole, cent by cent. Raises ValueError when all weights are 0."""
    worst, expected, floor = (_divided(each, weights) for each in (figures.worst_usd, figures.expected_usd, figures.floor_usd))
    return [Figures(*parts) for parts in zip(worst, expected, floor, strict=True)]


def _divided(usd: Decimal, weights: Sequence[int]) -> list[Decimal]:
    # Each part ends where the parts so far must end, so that no cent is lost or paid twice.
    whole = sum(weights)
    if whole <= 0:
        raise ValueError(f"weights are {list(weights)}; one must be above 0")
    parts: list[Decimal] = []
    so_far, told = 0, Decimal("0.00")
    for weight in weights:
        so_far += weight
        reached = cents(usd * so_far / whole)
        parts.append(reached - told)
        told = reached
    return parts


_ALWAYS = Decimal(1)


@dataclass(frozen=True)
class Amounts:
    """How much of something there is on average in each of the three months: nodes, or units of a service."""

    worst: Decimal
    expected: Decimal
    floor: Decimal

    def __str__(self) -> str:
        if self.floor == self.worst:
            return _shown(self.worst)
        return f"{_shown(self.floor)} to {_shown(self.worst)}, {_shown(self.expected)} expected"


def plan_cost(plan: CostedPlan, book: PriceBook, use: ExpectedUse) -> PlanCost:
    """The cost of a month of `plan` at the prices of `book`, used as `use` expects."""
    lines = _Lines(plan, book, use)
    return summed(plan, [*lines.pools(), *lines.system_nodes(), *lines.other_work(), *lines.services(), *lines.usage()])


class _Lines:
    def __init__(self, plan: CostedPlan, book: PriceBook, use: ExpectedUse) -> None:
        self._plan, self._book, self._use = plan, book, use
        self._disks = {each.pool: each.charges for each in plan.spending.disks}
        # For each class its first capacity type: the pools of the others are for what the first does not hold.
        self._first = {each.workload_class: each.pools[0].capacity_type for each in plan.routes if each.pools}

    def pools(self) -> Iterator[CostLine]:
        """Nodes and disks of every pool. A reservation is billed whether anything runs on it or not; its disks are not."""
        for pool in self._plan.pools:
            running = Amounts(Decimal(pool.max_nodes), max(Decimal(pool.min_nodes), self._used(pool)), Decimal(pool.min_nodes))
            kept = Decimal(pool.max_nodes)
            billed = Amounts(kept, kept, kept) if pool.capacity_type is CapacityType.RESERVED else running
            yield self._nodes(Section.POOL, pool.name, pool.machines, pool.capacity_type, billed)
            yield from self._fee(Section.FEE, pool.name, pool.machines, running)
            if charges := self._disks.get(pool.name):
                yield self._disk_line(Section.DISK, pool.name, charges, running)

    def _used(self, pool: CostedPool) -> Decimal:
        """The nodes in use on average: each class that shares the pool has an equal part of its ceiling."""
        shares = [
            self._use.of_class(each).share(pool.capacity_type, first=self._first.get(each, pool.capacity_type) is pool.capacity_type)
            for each in pool.serves
        ]
        return pool.max_nodes * sum(shares, start=Decimal(0)) / len(shares)

    def system_nodes(self) -> Iterator[CostLine]:
        """The controllers' nodes, on demand, and their disks."""
        nodes = self._plan.spending.system_nodes
        if nodes is None:
            return
        least, most = Decimal(nodes.min_nodes), Decimal(nodes.max_nodes)
        amounts = Amounts(most, least + (most - least) * self._use.system_nodes_percent / 100, least)
        yield self._nodes(Section.SYSTEM, "system nodes", (nodes.machine,), CapacityType.ON_DEMAND, amounts)
        yield from self._fee(Section.SYSTEM, "Auto Mode's fee on system nodes", (nodes.machine,), amounts)
        yield self._disk_line(Section.SYSTEM, "disks of system nodes", nodes.charges, amounts)

    def other_work(self) -> Iterator[CostLine]:
        """Room for nodes without GPUs, filled with the machine of the catalog with which that costs most on demand."""
        room = self._plan.spending.other_work
        if room is None:
            return
        filled: list[tuple[Decimal, str, int]] = []
        for machine in machines_of(self._book.cloud).values():
            price = self._book.find(machine.name, self._plan.region, CapacityType.ON_DEMAND)
            if machine.gpu is None and price is not None:
                nodes = min(room.max_vcpu // machine.vcpu, room.max_memory_gib * 1024 // machine.memory_mib)
                filled.append((nodes * price.usd_per_hour, machine.name, nodes))
        dearest = max(filled, default=None)
        if dearest is None:
            missing = f"on-demand price of any machine without GPUs in {self._plan.region}"
            yield CostLine(Section.OTHER_WORK, "other work", f"up to {room.max_vcpu} vCPU", None, (), (missing,))
            return
        most = Decimal(dearest[2])
        amounts = Amounts(most, most * self._use.other_work_percent / 100, Decimal(0))
        yield self._nodes(Section.OTHER_WORK, "other work", (dearest[1],), CapacityType.ON_DEMAND, amounts)
        yield from self._fee(Section.OTHER_WORK, "Auto Mode's fee on other work", (dearest[1],), amounts)
        yield self._disk_line(Section.OTHER_WORK, "disks of other work", room.charges, amounts)

    def services(self) -> Iterator[CostLine]:
        """What is billed for being there; what is there at times is expected to be there always."""
        for part in self._plan.spending.services:
            amounts = Amounts(Decimal(part.most), Decimal(part.most), Decimal(part.least))
            yield self._line(Section.SERVICE, part.name, [(part.item, _ALWAYS)], amounts)

    def usage(self) -> Iterator[CostLine]:
        """What somebody says will be used. It is the same in the worst case, of which no plan knows anything; idle, data is still kept."""
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

    def _nodes(self, section: Section, name: str, machines: Sequence[str], capacity_type: CapacityType, amounts: Amounts) -> CostLine:
        """Nodes of any of `machines`: at worst all of the dearest, as expected of the first, idle of the cheapest whose price is known."""
        region = self._plan.region
        found = {each: self._book.find(each, region, priced_as(capacity_type)) for each in machines}
        known = {each: price.usd_per_hour for each, price in found.items() if price is not None}
        unknown = tuple(f"{priced_as(capacity_type)} price of {each} in {region}" for each in machines if each not in known)
        quantity = f"{', '.join(machines)} {capacity_type}: {amounts}"
        if not known:
            return CostLine(section, name, quantity, None, (), unknown)
        month = HOURS_OF_A_MONTH
        figures = in_cents(
            amounts.worst * max(known.values()) * month,
            amounts.expected * next(iter(known.values())) * month,
            amounts.floor * min(known.values()) * month,
        )
        return CostLine(section, name, quantity, figures, tuple(self._machine_price(each) for each in found.values() if each), unknown)

    def _fee(self, section: Section, name: str, machines: Sequence[str], amounts: Amounts) -> Iterator[CostLine]:
        """What EKS Auto Mode bills for running nodes of any of `machines`, as those themselves are counted; nothing elsewhere."""
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
        figures = in_cents(amounts.worst * max(usd) * month, amounts.expected * usd[0] * month, amounts.floor * min(usd) * month)
        prices: list[PriceUsed] = []
        for machine, (fee, hour) in known.items():
            source, what = self._book.source_of(fee), f"Auto Mode's fee on {machine}, {fee.percent} % of its on-demand price"
            prices.append(PriceUsed(what, hour, Measure.HOUR, source.citation, source.as_of, source.verified))
        yield CostLine(section, name, quantity, figures, tuple(prices), unknown)

    def _disk_line(self, section: Section, name: str, charges: Sequence[Charge], nodes: Amounts) -> CostLine:
        return self._line(section, name, [(each.item, Decimal(each.amount)) for each in charges], nodes)

    def _line(self, section: Section, name: str, items: Sequence[tuple[ServiceItem, Decimal]], amounts: Amounts) -> CostLine:
        """So much of each item for each of `amounts`."""
        region = self._plan.region
        figures: list[Figures] = []
        prices: list[PriceUsed] = []
        unknown: list[str] = []
        for item, each in items:
            price = self._book.find_service(item, region)
            if price is None:
                unknown.append(f"price of {item} in {region}")
                continue
            usd = price.usd * each * (HOURS_OF_A_MONTH if item.measure is Measure.HOUR else 1)
            figures.append(in_cents(amounts.worst * usd, amounts.expected * usd, amounts.floor * usd))
            prices.append(self._service_price(price))
        of_each = ", ".join(f"{_shown(each)} {item.measure}" for item, each in items if each != 1)
        quantity = f"{of_each} each: {amounts}" if of_each else str(amounts)
        return CostLine(section, name, quantity, total(figures) if figures else None, tuple(prices), tuple(unknown))

    def _machine_price(self, price: Price) -> PriceUsed:
        source = self._book.source_of(price)
        what = f"{price.machine} {price.capacity_type}"
        return PriceUsed(what, price.usd_per_hour, Measure.HOUR, source.citation, source.as_of, source.verified)

    def _service_price(self, price: ServicePrice) -> PriceUsed:
        source = self._book.source_of(price)
        return PriceUsed(price.item, price.usd, price.item.measure, source.citation, source.as_of, source.verified)


def _shown(amount: Decimal) -> str:
    """At most one decimal; a whole number without."""
    rounded = amount.quantize(Decimal("0.1"))
    return f"{rounded:f}".removesuffix(".0")


class Section(StrEnum):
    """What a line is about.

    POOL, FEE and DISK are shared out to the teams whose GPUs they are; FEE is what EKS Auto Mode bills for a pool's nodes. SYSTEM,
    OTHER_WORK, SERVICE and USAGE are the platform's: nodes of controllers, nodes without GPUs, what the cloud bills for being there, and
    what somebody said will be used.
    """

    POOL = "pool"
    FEE = "pool-fee"
    DISK = "pool-disk"
    SYSTEM = "system-nodes"
    OTHER_WORK = "other-work"
    SERVICE = "service"
    USAGE = "usage"

    @property
    def of_pools(self) -> bool:
        """Whether teams share it."""
        return self in {Section.POOL, Section.FEE, Section.DISK}


@dataclass(frozen=True)
class PriceUsed:
    """A price that a line was worked out with. `per` is the measure; `source` is the citation."""

    what: str
    usd: Decimal
    per: str
    source: str
    as_of: date
    verified: bool


@dataclass(frozen=True)
class CostLine:
    """One line. `quantity` says of how much; `figures` are None where no price is known, `unknown` names the prices that are missing.

    With both, the figures are the least: what has no price comes on top.
    """

    section: Section
    name: str
    quantity: str
    figures: Figures | None
    prices: tuple[PriceUsed, ...]
    unknown: tuple[str, ...]

    @property
    def key(self) -> tuple[Section, str]:
        """What makes it the same line in another plan."""
        return self.section, self.name


@dataclass(frozen=True)
class TeamCost:
    """The part of the pools that is a team's own, in GPUs and in money, as if it used nothing else. `budget` is in US dollars a month."""

    name: str
    gpus: int
    figures: Figures
    budget: int | None
    unknown: tuple[str, ...]


@dataclass(frozen=True)
class PlanCost:
    """A month of a plan.

    `unallocated` is the part of the pools that is no team's: a cohort's, or what anybody may borrow. `platform` is what all share. Teams,
    unallocated and platform sum to `total`, and so do the lines.
    """

    cloud: str
    environment: str
    region: str
    lines: tuple[CostLine, ...]
    teams: tuple[TeamCost, ...]
    unallocated: Figures
    platform: Figures
    total: Figures
    budget: int | None

    @property
    def unknown(self) -> tuple[str, ...]:
        """Every price that is missing, once; where there is one, all sums are the least."""
        return tuple(dict.fromkeys(each for line in self.lines for each in line.unknown))


def summed(plan: CostedPlan, lines: Sequence[CostLine]) -> PlanCost:
    """The lines of a plan with their sums, those of the pools shared out to the teams by their GPUs."""
    names = [team.name for team in plan.teams]
    of_teams: dict[str, list[Figures]] = {name: [] for name in names}
    missing: dict[str, list[str]] = {name: [] for name in names}
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
            missing[team] += line.unknown
        if line.figures is not None:
            *parts, rest = divided(line.figures, [*owners.values(), max(0, ceilings[line.name] - sum(owners.values()))])
            unallocated += rest
            for team, part in zip(owners, parts, strict=True):
                of_teams[team].append(part)
    teams = tuple(
        TeamCost(each.name, gpus[each.name], total(of_teams[each.name]), each.budget, tuple(dict.fromkeys(missing[each.name])))
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
        budget=plan.spending.budget_usd,
    )
