"""Charges: the lines of a report taken apart by what they are of, to the cent of the lines, for a finance department's own tools."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.chargeback.nodes import UNKNOWN, cloud_of
from flexspot.capacity.chargeback.queries import NONE

if TYPE_CHECKING:
    from decimal import Decimal

    from flexspot.capacity.catalog.contract import SpendCommitment
    from flexspot.capacity.catalog.machines import Vendor
    from flexspot.capacity.chargeback.nodes import NodeFacts


SPEND = "spend-commitment"
"""Stands in place of a capacity type for what of a commitment of US dollars an hour nothing used."""


@dataclass(frozen=True, order=True)
class LineKey:
    """By what a line is told apart: who, for what, on what. `gpu` is the model of the catalog, (none) for nodes without GPUs."""

    team: str
    project: str
    workload_type: str
    environment: str
    capacity_type: str
    pool: str
    gpu: str


class ChargeKind(StrEnum):
    """What a charge is for.

    ALLOCATED: GPUs that somebody had. IDLE: GPUs that nobody had. PLATFORM: nodes without GPUs. UNUSED: what was committed to and was not
    there, or not used.
    """

    ALLOCATED = "allocated"
    IDLE = "idle"
    PLATFORM = "platform"
    UNUSED = "unused"


@dataclass(frozen=True)
class Rate:
    """What a machine costs an hour in US dollars, exactly: `paid`, and `listed` on demand with nothing off; None: that is not known.

    `contracted` is what it would cost without the commitment of US dollars an hour that pays for it; None: none does. `fee` is the part
    of `paid` that no commitment pays.
    """

    paid: Fraction
    listed: Fraction | None
    contracted: Fraction | None = None
    fee: Fraction = Fraction(0)


@dataclass(frozen=True)
class Supply:
    """Machines of one kind, bought in one way at one price. `pool` is that of the nodes, which is not that of the line where idle GPUs
    are paid by those who had GPUs of other pools. `plan` is the commitment of US dollars an hour that pays for them.
    `credits` are the names of those credits that are for them.

    Of a plan that nothing used it is hours of the plan itself, and no machines: see `is_plan`.
    """

    machine: str
    region: str
    capacity_type: str
    pool: str
    gpu: str
    rate: Rate
    plan: SpendCommitment | None = None
    credits: tuple[str, ...] = ()

    @property
    def is_plan(self) -> bool:
        """Whether it is the unused part of a commitment of US dollars an hour."""
        return self.capacity_type == SPEND

    @property
    def cloud(self) -> Vendor:
        """Whose they are. What has a price has a machine that tells it, or is a plan. Raises ValueError otherwise."""
        if self.plan is not None:
            return self.plan.kind.cloud
        cloud = cloud_of(self.machine)
        if cloud is None:
            raise ValueError(f"no cloud is known to sell {self.machine}")
        return cloud

    @property
    def reservation(self) -> str | None:
        """By what its reservation is told apart from others, as no metric knows the cloud's own id; None: it is of none."""
        if self.capacity_type != CapacityType.RESERVED:
            return None
        return "/".join(each for each in ("reserved", self.region, self.machine, self.pool) if each != UNKNOWN)


@dataclass(frozen=True)
class LineCharge:
    """What one line pays for one supply: in cents, which sum to the line's, and exactly how many machine and GPU seconds that is for.

    `gpu_seconds` are those of GPUs that were there; of an unused commitment there were none.
    """

    line: LineKey
    kind: ChargeKind
    supply: Supply
    usd: Decimal
    machine_seconds: Fraction
    gpu_seconds: Fraction


def supply_of(facts: NodeFacts, rate: Rate, plan: SpendCommitment | None = None, credits_for: tuple[str, ...] = ()) -> Supply:
    """What a node is a part of."""
    return Supply(facts.machine, facts.region, facts.bought_as, facts.pool, facts.gpu, rate, plan, credits_for)


def supply_of_plan(plan: SpendCommitment) -> Supply:
    """The hours of a commitment of US dollars an hour that nothing used."""
    return Supply(UNKNOWN, UNKNOWN, SPEND, UNKNOWN, NONE, Rate(Fraction(plan.usd_per_hour), None), plan)
