"""The worst case is a bound: no state that a cluster can reach within its ceilings costs more in any month.

The states are drawn here, node by node, from what each ceiling allows, and summed separately. They contain machines of a pool in any
mixture and other work of any family and size. On GKE the autoscaler creates nodes in place of declared ones. There are upgrades, and months
of up to 744 hours.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from settings_documents import LEAST
from valid_settings import valid_settings

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.machines import machines_of
from flexspot.capacity.catalog.platform import VOCABULARIES, Platform
from flexspot.capacity.catalog.price_book import Measure, prices_of
from flexspot.capacity.cost.costed_plan import costed, shipped_use
from flexspot.capacity.cost.plan_cost import PlanCost, plan_cost
from flexspot.capacity.plan.build import build_plan
from flexspot.capacity.settings.stack_file import parse_settings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexspot.capacity.catalog.price_book import PriceBook
    from flexspot.capacity.cost.costed_plan import CostedPlan, CostedPool
    from flexspot.capacity.plan.billed import BilledAmount

MEBIBYTES = 1024
SIMPLE = LEAST["eks"] | {
    "pools": [{"name": "h100", "machine": "p5.48xlarge", "capacity_type": "on-demand", "max_nodes": 2, "serves": ["inference"]}],
    "teams": [{"name": "red", "unqueued": {"h100": 16}}],
}
USE = shipped_use().model_copy(update=dict.fromkeys(("bucket_gib", "internet_gib", "nat_gib", "load_balancers"), 0))


@dataclass
class State:
    """A state during its drawing: its cost an hour and a month, and its use of the limits of a GKE cluster."""

    draw: st.DrawFn
    plan: CostedPlan
    book: PriceBook
    usd_per_hour: Fraction = Fraction(0)
    usd_per_month: Fraction = Fraction(0)
    vcpu: Fraction = Fraction(0)
    memory_gib: Fraction = Fraction(0)
    gpus: dict[str, int] = field(default_factory=dict[str, int])

    def disk(self, charges: Iterable[BilledAmount], nodes: int = 1) -> None:
        for each in charges:
            price = self.book.find_service(each.item, self.plan.region)
            self.usd_per_month += Fraction(price.usd if price else 0) * each.amount * nodes

    def price(self, machine: str, capacity_type: CapacityType, pool: str | None = None) -> Fraction | None:
        """Return the highest price: the book's, or if unknown, up to on-demand. None if neither is known."""
        found = self.book.paid(machine, self.plan.region, capacity_type, pool)
        if found is not None:
            return Fraction(found.usd_per_hour)
        listed = self.book.find(machine, self.plan.region, CapacityType.ON_DEMAND)
        return None if listed is None else Fraction(listed.usd_per_hour) * self.draw(st.integers(0, 100)) / 100

    def takes(self, vcpu: Fraction | int, memory_gib: Fraction | int, accelerator: str = "", gpus: int = 0) -> bool:
        """Use this part of the limits if it is left. Without limits, every node's own pool has its ceiling."""
        room = self.plan.spending.made_by_itself
        if room is not None:
            limits = dict(room.gpus)
            over = self.vcpu + vcpu > room.max_vcpu or self.memory_gib + memory_gib > room.max_memory_gib
            if over or (accelerator in limits and self.gpus.get(accelerator, 0) + gpus > limits[accelerator]):
                return False
        self.vcpu, self.memory_gib = self.vcpu + vcpu, self.memory_gib + memory_gib
        self.gpus[accelerator] = self.gpus.get(accelerator, 0) + gpus
        return True


def of_pool(state: State, pool: CostedPool, *, filled: bool) -> None:
    disks = {each.pool: each for each in state.plan.spending.disks}
    surge = disks[pool.name].surge_nodes if pool.name in disks else 0
    reserved = pool.capacity_type is CapacityType.RESERVED
    nodes = pool.max_nodes if filled or reserved else state.draw(st.integers(0, pool.max_nodes))
    vcpu, memory = Fraction(pool.ceiling.vcpu, pool.max_nodes), Fraction(pool.ceiling.memory_mib, MEBIBYTES * pool.max_nodes)
    for number in range(nodes + (surge if nodes == pool.max_nodes and state.draw(st.booleans()) else 0)):
        machine = state.draw(st.sampled_from(pool.machines))
        usd = state.price(machine, pool.capacity_type, pool.name)
        # A reservation is billed without its nodes too, which then count against no limit. An upgrade's nodes are additional.
        there = not reserved or state.draw(st.booleans())
        if there and number < pool.max_nodes and not state.takes(vcpu, memory, pool.accelerator, pool.ceiling.gpus // pool.max_nodes):
            if not reserved:
                return
            there = False
        state.usd_per_hour += usd or 0
        if there and pool.name in disks:
            state.disk(disks[pool.name].charges)


def of_system(state: State) -> None:
    nodes = state.plan.spending.system_nodes
    if nodes is None:
        return
    machine = machines_of(state.book.cloud)[nodes.machine]
    usd = state.price(nodes.machine, CapacityType.ON_DEMAND) or 0
    count = state.draw(st.integers(nodes.min_nodes, nodes.max_nodes))
    for number in range(count + (nodes.surge_nodes if state.draw(st.booleans()) else 0)):
        if number < nodes.max_nodes and not state.takes(machine.vcpu, Fraction(machine.memory_mib, MEBIBYTES)):
            return
        state.usd_per_hour += usd
        state.disk(nodes.charges)


def of_other_work(state: State) -> None:
    """Draw nodes without GPUs: Karpenter's under the ceilings of its pool, GKE's under those of the cluster."""
    room, by_itself = state.plan.spending.other_work, state.plan.spending.made_by_itself
    if room is None:
        return
    shapes = [
        (Fraction(each.vcpu), Fraction(each.memory_mib, MEBIBYTES), Fraction(price.usd_per_hour))
        for each in machines_of(state.book.cloud).values()
        if each.gpu is None and (price := state.book.find(each.name, state.plan.region, CapacityType.ON_DEMAND))
    ]
    for (_, region), row in state.book.families.items():
        if region == state.plan.region:
            # Prices rise exactly with size.
            size = state.draw(st.sampled_from([1, 2, 4, 16]))
            shapes.append((Fraction(row.vcpu * size), Fraction(row.memory_gib * size), Fraction(row.usd_per_hour) * size))
    if not shapes:
        return
    left = Fraction(room.max_vcpu), Fraction(room.max_memory_gib)
    for _ in range(40):
        vcpu, memory, usd = state.draw(st.sampled_from(shapes))
        most = state.draw(st.integers(1, 32))
        nodes = most if by_itself is not None else min(most, left[0] // vcpu, left[1] // memory)
        for _ in range(nodes):
            if by_itself is not None and not state.takes(vcpu, memory):
                break
            left = left[0] - vcpu, left[1] - memory
            state.usd_per_hour += usd
            state.disk(room.charges)


def of_gpus_made_by_itself(state: State) -> None:
    room = state.plan.spending.made_by_itself
    if room is None:
        return
    machines = [each for each in machines_of(state.book.cloud).values() if each.gpu and each.gpu.name in dict(room.gpus)]
    for _ in range(12 if machines else 0):
        machine = state.draw(st.sampled_from(machines))
        usd = state.book.find(machine.name, state.plan.region, CapacityType.ON_DEMAND)
        if usd is None or machine.gpu is None:
            continue
        for _ in range(state.draw(st.integers(0, 8))):
            if state.takes(machine.vcpu, Fraction(machine.memory_mib, MEBIBYTES), machine.gpu.name, machine.gpu.count):
                state.usd_per_hour += Fraction(usd.usd_per_hour)
                state.disk(room.charges)


def of_services(state: State) -> None:
    for part in state.plan.spending.services:
        price = state.book.find_service(part.item, state.plan.region)
        usd = Fraction(price.usd if price else 0) * state.draw(st.integers(part.least, part.most))
        if part.item.measure is Measure.HOUR:
            state.usd_per_hour += usd
        else:
            state.usd_per_month += usd


@st.composite
def reached(draw: st.DrawFn) -> tuple[PlanCost, Fraction]:
    """Draw the worst case of some settings, and the monthly cost of a state that they allow."""
    platform = draw(st.sampled_from([Platform.GKE, Platform.EKS]))
    plan = costed(build_plan(parse_settings(draw(valid_settings((platform,))), "drawn"), "drawn"))
    book = prices_of(VOCABULARIES[platform].catalog)
    state = State(draw, plan, book)
    # The first nodes take the room, in whichever order they arrive.
    parts = [of_system, of_other_work, of_gpus_made_by_itself]
    filled = draw(st.booleans())
    if draw(st.booleans()):
        parts = [*parts[::-1]]
    pools_first = draw(st.booleans())
    for pool in plan.pools if pools_first else ():
        of_pool(state, pool, filled=filled)
    for part in parts:
        part(state)
    for pool in () if pools_first else plan.pools:
        of_pool(state, pool, filled=filled)
    of_services(state)
    hours = draw(st.sampled_from([672, 696, 720, 743, 744]))
    return plan_cost(plan, book, USE), state.usd_per_hour * hours + state.usd_per_month


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(reached())
def test_no_state_that_settings_allow_costs_more_in_a_month_than_their_worst_case(drawn: tuple[PlanCost, Fraction]) -> None:
    """Items without a known price are in neither."""
    cost, usd = drawn

    assert usd <= Fraction(cost.total.worst_usd) + Fraction(len(cost.lines), 100)


def test_the_worst_case_is_reached_where_nothing_chooses() -> None:
    """Any bound that is far too high would pass the other test. For pools of one machine the bound is their exact cost, to the cent."""
    plan = costed(build_plan(parse_settings(SIMPLE, "simple"), "simple"))
    cost = plan_cost(plan, prices_of(VOCABULARIES[Platform.EKS].catalog), USE)
    [nodes] = [each for each in cost.lines if each.name == "h100" and each.section == "pool"]

    assert nodes.figures is not None
    assert nodes.figures.worst_usd == Decimal("55.04") * 2 * 744
