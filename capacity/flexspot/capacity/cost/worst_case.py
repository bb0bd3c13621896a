"""Upper bounds of a month in which an autoscaler chooses: mixtures of machines, nodes in place of pools, and borrowed GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.machines import machines_of
from flexspot.capacity.catalog.platform import VOCABULARIES
from flexspot.capacity.catalog.price_book import HOURS_OF_A_LONG_MONTH
from flexspot.capacity.cost.figures import CostLine, PriceUsed, Section, in_cents, price_used
from flexspot.capacity.values.quantities import cents

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from flexspot.capacity.catalog.price_book import PriceBook
    from flexspot.capacity.cost.costed_plan import CostedPlan, CostedTeam
    from flexspot.capacity.plan.billed import AutoProvisionedNodes

_NOTHING = Decimal(0)
_MEBIBYTES = 1024


@dataclass(frozen=True)
class Shape:
    """A machine without GPUs that an autoscaler may create, with its monthly cost, disk included."""

    name: str
    vcpu: Decimal
    memory_gib: Decimal
    usd: Decimal
    price: PriceUsed

    def nodes(self, max_vcpu: int, max_memory_gib: int) -> int:
        """Return the number that fits under both ceilings."""
        return int(min(max_vcpu // self.vcpu, max_memory_gib // self.memory_gib))

    def most(self, max_vcpu: int, max_memory_gib: int) -> Decimal:
        """Return the cost of the number that fits."""
        return self.nodes(max_vcpu, max_memory_gib) * self.usd


@dataclass(frozen=True)
class ResourceRates:
    """US dollars a month of a vCPU and of a GiB, so that no machine costs more than its parts at these rates.

    Therefore all that fits under ceilings costs at most as much as the ceilings: the rates are a solution of the dual of the linear
    program.
    """

    usd_per_vcpu: Decimal
    usd_per_gib: Decimal

    def of(self, vcpu: Decimal | int, memory_gib: Decimal | int) -> Decimal:
        """Return the cost of this vCPU and memory at these rates."""
        return self.usd_per_vcpu * vcpu + self.usd_per_gib * memory_gib


def rates_over(shapes: Sequence[Shape]) -> list[ResourceRates]:
    """Return the lowest rates that no machine exceeds: all corners, one of which is the best for any two ceilings."""
    if not shapes:
        return [ResourceRates(_NOTHING, _NOTHING)]
    found = [
        ResourceRates(max(each.usd / each.vcpu for each in shapes), _NOTHING),
        ResourceRates(_NOTHING, max(each.usd / each.memory_gib for each in shapes)),
    ]
    for one, other in combinations(shapes, 2):
        determinant = one.vcpu * other.memory_gib - other.vcpu * one.memory_gib
        if determinant:
            rates = ResourceRates(
                (one.usd * other.memory_gib - other.usd * one.memory_gib) / determinant,
                (other.usd * one.vcpu - one.usd * other.vcpu) / determinant,
            )
            if min(rates.usd_per_vcpu, rates.usd_per_gib) >= 0 and _above_all(rates, shapes):
                found.append(rates)
    return found


_ROUNDING = Decimal("1e-12")
"""Rounding margin: the corner of two machines is above both except for the last digits of a division."""


def _above_all(rates: ResourceRates, shapes: Sequence[Shape]) -> bool:
    return all(each.usd <= rates.of(each.vcpu, each.memory_gib) * (1 + _ROUNDING) for each in shapes)


def dearest_mixture(shapes: Sequence[Shape], max_vcpu: Decimal, max_memory_gib: Decimal) -> Decimal:
    """Return an upper bound on the cost of any mix of machines within both limits."""
    return min(each.of(max_vcpu, max_memory_gib) for each in rates_over(shapes)) * (1 + _ROUNDING)


def most_with_borrowing(team: CostedTeam, plan: CostedPlan, lines: Sequence[CostLine]) -> Decimal | None:
    """Return the worst-case cost of the most GPUs that a team may hold at once, of the dearest pools first. None if that has no limit."""
    if team.max_gpus is None:
        return None
    usd = {pool.name: _NOTHING for pool in plan.pools}
    for line in lines:
        if line.section.of_pools and line.figures is not None:
            usd[line.name] += line.figures.worst_usd
    left, most = team.max_gpus, _NOTHING
    for pool in sorted(plan.pools, key=lambda each: usd[each.name] / each.ceiling.gpus, reverse=True):
        gpus = min(left, pool.ceiling.gpus)
        most += usd[pool.name] * gpus / pool.ceiling.gpus
        left -= gpus
    return cents(most)


@dataclass(frozen=True)
class _Kept:
    """Declared nodes that others may replace: their greatest number, the monthly cost of one, and its use of the limits."""

    nodes: int
    usd: Decimal
    vcpu: Decimal
    memory_gib: Decimal
    accelerator: str | None = None
    gpus: Decimal = _NOTHING


@dataclass(frozen=True)
class _GpuShape:
    """A machine with GPUs that node auto-provisioning may create on demand."""

    accelerator: str
    gpus: int
    shape: Shape


def in_place_of_pools(plan: CostedPlan, book: PriceBook, shapes: Sequence[Shape], lines: Sequence[CostLine]) -> Iterator[CostLine]:
    """Yield the extra cost of on-demand nodes that GKE creates in place of the declared ones.

    The cluster's limits hold for all nodes together. Their cost is at most that of the limits at rates that no machine exceeds, plus the
    cost of declared nodes above these rates, for as many of them as may exist. Reservations are billed in addition to created nodes.
    """
    room = plan.spending.made_by_itself
    if room is None:
        return
    with_gpus, unknown = _gpu_shapes(room, plan, book)
    kept = list(_kept(plan, lines))
    declared_usd = sum((each.nodes * each.usd for each in kept), _worst(lines, Section.OTHER_WORK))
    bound = min(_bound(rates, room, kept, with_gpus) for rates in rates_over(shapes)) * (1 + _ROUNDING)
    more = max(bound - declared_usd, _NOTHING)
    if more or unknown:
        quantity = ", ".join(f"{gpus} {name}" for name, gpus in room.gpus) or "no GPUs"
        prices = tuple(dict.fromkeys(each.price for each in ([one.shape for one in with_gpus] or shapes)))
        quantity_text = f"on demand, {quantity}, within {room.max_vcpu} vCPU and {room.max_memory_gib} GiB"
        yield CostLine(Section.INSTEAD, "made by GKE in place of pools", quantity_text, in_cents(more, _NOTHING, _NOTHING), prices, unknown)


def _bound(rates: ResourceRates, room: AutoProvisionedNodes, kept: Sequence[_Kept], with_gpus: Sequence[_GpuShape]) -> Decimal:
    of_gpu = {
        name: max(
            (
                (each.shape.usd - rates.of(each.shape.vcpu, each.shape.memory_gib)) / each.gpus
                for each in with_gpus
                if each.accelerator == name
            ),
            default=_NOTHING,
        )
        for name, _ in room.gpus
    }
    rate_of = {name: max(usd, _NOTHING) for name, usd in of_gpu.items()}
    bound = rates.of(room.max_vcpu, room.max_memory_gib) + sum((rate_of[name] * gpus for name, gpus in room.gpus), _NOTHING)
    for each in kept:
        inside = rates.of(each.vcpu, each.memory_gib) + rate_of.get(each.accelerator or "", _NOTHING) * each.gpus
        bound += each.nodes * max(each.usd - inside, _NOTHING)
    return bound


def _kept(plan: CostedPlan, lines: Sequence[CostLine]) -> Iterator[_Kept]:
    for pool in plan.pools:
        nodes = pool.max_nodes
        usd = _worst(lines, Section.POOL, pool.name) + _worst(lines, Section.DISK, pool.name)
        if pool.capacity_type is not CapacityType.RESERVED:
            ceiling = pool.ceiling
            memory = Decimal(ceiling.memory_mib) / _MEBIBYTES / nodes
            yield _Kept(nodes, usd / nodes, Decimal(ceiling.vcpu) / nodes, memory, pool.accelerator, Decimal(ceiling.gpus) / nodes)
    system = plan.spending.system_nodes
    machine = None if system is None else machines_of(VOCABULARIES[plan.cloud].catalog).get(system.machine)
    if system is not None and machine is not None:
        nodes = system.max_nodes
        usd = _worst(lines, Section.SYSTEM)
        yield _Kept(nodes, usd / nodes, Decimal(machine.vcpu), Decimal(machine.memory_mib) / _MEBIBYTES)


def _worst(lines: Sequence[CostLine], section: Section, name: str | None = None) -> Decimal:
    return sum(
        (each.figures.worst_usd for each in lines if each.section is section and each.figures and name in {None, each.name}), _NOTHING
    )


def _gpu_shapes(room: AutoProvisionedNodes, plan: CostedPlan, book: PriceBook) -> tuple[list[_GpuShape], tuple[str, ...]]:
    """Return the machines with these kinds of GPUs, and the kinds without a known on-demand price, which cannot be bounded."""
    disk = sum((price.usd * each.amount for each in room.charges if (price := book.find_service(each.item, plan.region))), _NOTHING)
    found: list[_GpuShape] = []
    for machine in machines_of(book.cloud).values():
        price = book.paid(machine.name, plan.region, CapacityType.ON_DEMAND)
        if machine.gpu is None or price is None:
            continue
        usd = price.usd_per_hour * HOURS_OF_A_LONG_MONTH + disk
        memory = Decimal(machine.memory_mib) / _MEBIBYTES
        shape = Shape(machine.name, Decimal(machine.vcpu), memory, usd, price_used(book, price))
        found.append(_GpuShape(machine.gpu.name, min(machine.gpu.counts), shape))
    wanted = [name for name, _ in room.gpus]
    known = {each.accelerator for each in found}
    unknown = tuple(f"on-demand price of machines with {name} in {plan.region}" for name in wanted if name not in known)
    return [each for each in found if each.accelerator in wanted], unknown
