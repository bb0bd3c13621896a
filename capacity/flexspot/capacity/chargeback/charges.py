"""Charges: the lines of a report taken apart by what they are of, to the cent of the lines, for a finance department's own tools."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, model_validator

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.contract import Lasting, moment_problem
from flexspot.capacity.catalog.data_files import Record, read_records
from flexspot.capacity.catalog.machines import Vendor
from flexspot.capacity.chargeback.nodes import UNKNOWN, cloud_of
from flexspot.capacity.chargeback.queries import NONE
from flexspot.capacity.values.quantities import to_cents

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from flexspot.capacity.catalog.contract import SpendCommitment
    from flexspot.capacity.chargeback.nodes import NodeFacts
    from flexspot.capacity.chargeback.samples import Seconds


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
    """Return the supply that a node belongs to."""
    return Supply(facts.machine, facts.region, facts.bought_as, facts.pool, facts.gpu, rate, plan, credits_for)


def supply_of_plan(plan: SpendCommitment) -> Supply:
    """The hours of a commitment of US dollars an hour that nothing used."""
    return Supply(UNKNOWN, UNKNOWN, SPEND, UNKNOWN, NONE, Rate(Fraction(plan.usd_per_hour), None), plan)


class Credit(Lasting):
    """`usd` that are there of a credit for the report's period, as the cloud's console or bill says; more than is paid it does not take.

    It is for nodes of `cloud` from `start` until before `end`, both with an offset; without them for as long as anybody asks. `machines`,
    `regions` and `capacity_types` narrow it; empty means any. `source` says where the credit is told of.
    """

    name: Annotated[str, Field(min_length=1)]
    usd: Annotated[Decimal, Field(gt=Decimal(0), decimal_places=2)]
    cloud: Vendor
    source: Annotated[str, Field(min_length=10)]
    machines: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    capacity_types: tuple[CapacityType, ...] = ()

    @model_validator(mode="after")
    def _its_times_are_moments(self) -> Credit:
        for name, moment in (("start", self.start), ("end", self.end)):
            if problem := moment_problem(moment, name):
                raise ValueError(f"the credit {self.name}: {problem}")
        return self

    @property
    def what(self) -> str:
        """Name of the credit in messages."""
        return f"the credit {self.name}"

    def is_for(self, facts: NodeFacts, moment: Seconds) -> bool:
        """Whether it is for a node at a moment, in seconds since 1970 UTC."""
        first, last = self.holds(moment, moment + 1)
        place = facts.machine in (self.machines or (facts.machine,)) and facts.region in (self.regions or (facts.region,))
        bought = not self.capacity_types or facts.capacity_type in self.capacity_types
        return last > first and place and bought and cloud_of(facts.machine) is self.cloud


class CreditFile(Record):
    """The file: a list `credits`, in the order in which they are used up."""

    credits: list[Credit]

    @model_validator(mode="after")
    def _every_name_stands_once(self) -> CreditFile:
        names = [each.name for each in self.credits]
        if twice := sorted(each for each in set(names) if names.count(each) > 1):
            raise ValueError(f"{twice[0]} is the name of two credits")
        return self


def read_credits(path: Path) -> tuple[Credit, ...]:
    """What the file says. Raises DataFileError with every problem at once."""
    return tuple(read_records(path, CreditFile).credits)


def moments_of(granted: Iterable[Credit]) -> set[Seconds]:
    """When one of the credits begins or ends: at these the books must be cut."""
    return {int(moment.timestamp()) for each in granted for moment in (each.start, each.end) if moment is not None}


@dataclass(frozen=True)
class Credited:
    """What a credit took off: `lines` by team and project, in cents, which sum to `usd`."""

    credit: Credit
    usd: Decimal
    lines: dict[tuple[str, str], Decimal]

    @property
    def left_usd(self) -> Decimal:
        """What there was nothing to take off of."""
        return self.credit.usd - self.usd


def apply_credits(granted: Sequence[Credit], charges: Sequence[LineCharge]) -> tuple[Credited, ...]:
    """Each credit in its order, spread over those who pay for what it is for, by what they still pay for it."""
    left = [Fraction(each.usd) for each in charges]
    found: list[Credited] = []
    for credit in granted:
        numbers = [number for number, each in enumerate(charges) if credit.name in each.supply.credits and left[number] > 0]
        whole = sum((left[number] for number in numbers), Fraction(0))
        part = min(Fraction(1), Fraction(credit.usd) / whole) if whole else Fraction(0)
        exact: dict[tuple[str, str], Fraction] = {}
        for number in numbers:
            line = charges[number].line
            exact[line.team, line.project] = exact.get((line.team, line.project), Fraction(0)) + left[number] * part
            left[number] -= left[number] * part
        lines = to_cents(dict(sorted(exact.items())))
        found.append(Credited(credit, sum(lines.values(), Decimal("0.00")), lines))
    return tuple(found)
