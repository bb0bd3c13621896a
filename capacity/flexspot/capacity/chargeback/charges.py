"""Charges: the lines of a report split by kind and supply, to the cent of the lines, for a finance department's own tools."""

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
"""Replaces the capacity type for the unused part of a commitment of US dollars an hour."""


@dataclass(frozen=True, order=True)
class LineKey:
    """Key of a line."""

    team: str
    project: str
    workload_type: str
    environment: str
    capacity_type: str
    pool: str
    gpu: str
    """Model of the catalog; (none) for nodes without GPUs."""


class ChargeKind(StrEnum):
    """Kind of a charge."""

    ALLOCATED = "allocated"
    """GPUs that pods had."""

    IDLE = "idle"
    """GPUs that no pod had."""

    PLATFORM = "platform"
    """Nodes without GPUs."""

    UNUSED = "unused"
    """Committed nodes that did not exist, or commitments that were not used."""


@dataclass(frozen=True)
class Rate:
    """Exact hourly cost of a machine in US dollars."""

    paid: Fraction
    listed: Fraction | None
    """On-demand price without discounts; None if it is not known."""

    contracted: Fraction | None = None
    """Cost without the commitment of US dollars an hour that pays for it; None if none does."""

    fee: Fraction = Fraction(0)
    """The part of `paid` that no commitment pays."""


@dataclass(frozen=True)
class Supply:
    """Machines of one kind, bought in one way at one price.

    For the unused part of a commitment of US dollars an hour it is hours of the commitment, without machines: see `is_plan`.
    """

    machine: str
    region: str
    capacity_type: str
    pool: str
    """Pool of the nodes. It differs from the line's pool where teams with GPUs of other pools pay for idle GPUs."""

    gpu: str
    rate: Rate
    plan: SpendCommitment | None = None
    """The commitment of US dollars an hour that pays for the machines."""

    credits: tuple[str, ...] = ()
    """Names of the credits that apply to them."""

    @property
    def is_plan(self) -> bool:
        """True if it is the unused part of a commitment of US dollars an hour."""
        return self.capacity_type == SPEND

    @property
    def cloud(self) -> Vendor:
        """The cloud that sells them. Raises ValueError for a machine of no cloud; anything with a price has a known machine or is a
        plan.
        """
        if self.plan is not None:
            return self.plan.kind.cloud
        cloud = cloud_of(self.machine)
        if cloud is None:
            raise ValueError(f"no cloud is known to sell {self.machine}")
        return cloud

    @property
    def reservation(self) -> str | None:
        """Identifier of the reservation, as metrics do not have the cloud's ID. None if the machines are not reserved."""
        if self.capacity_type != CapacityType.RESERVED:
            return None
        return "/".join(each for each in ("reserved", self.region, self.machine, self.pool) if each != UNKNOWN)


@dataclass(frozen=True)
class LineCharge:
    """The amount that one line pays for one supply, and the exact time that it pays for."""

    line: LineKey
    kind: ChargeKind
    supply: Supply
    usd: Decimal
    """Cents, which sum to the line's."""

    machine_seconds: Fraction
    gpu_seconds: Fraction
    """Seconds of existing GPUs: zero for an unused commitment."""


def supply_of(facts: NodeFacts, rate: Rate, plan: SpendCommitment | None = None, credits_for: tuple[str, ...] = ()) -> Supply:
    """Return the supply that a node belongs to."""
    return Supply(facts.machine, facts.region, facts.bought_as, facts.pool, facts.gpu, rate, plan, credits_for)


def supply_of_plan(plan: SpendCommitment) -> Supply:
    """Return the supply for the unused hours of a commitment of US dollars an hour."""
    return Supply(UNKNOWN, UNKNOWN, SPEND, UNKNOWN, NONE, Rate(Fraction(plan.usd_per_hour), None), plan)


class Credit(Lasting):
    """A credit for nodes of `cloud` from `start` until before `end`.

    Both times need an offset; without them the credit always applies. `machines`, `regions` and `capacity_types` narrow it; empty means
    any.
    """

    name: Annotated[str, Field(min_length=1)]
    usd: Annotated[Decimal, Field(gt=Decimal(0), decimal_places=2)]
    """Amount available for the report's period, as the cloud's console or bill shows it. It is never applied beyond what is paid."""

    cloud: Vendor
    source: Annotated[str, Field(min_length=10)]
    """Document or page that states the credit."""

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
        """Return whether it applies to a node at a moment, in seconds since 1970 UTC."""
        first, last = self.holds(moment, moment + 1)
        place = facts.machine in (self.machines or (facts.machine,)) and facts.region in (self.regions or (facts.region,))
        bought = not self.capacity_types or facts.capacity_type in self.capacity_types
        return last > first and place and bought and cloud_of(facts.machine) is self.cloud


class CreditFile(Record):
    """A file with a list `credits`, in the order in which they are used up."""

    credits: list[Credit]

    @model_validator(mode="after")
    def _every_name_stands_once(self) -> CreditFile:
        names = [each.name for each in self.credits]
        if twice := sorted(each for each in set(names) if names.count(each) > 1):
            raise ValueError(f"{twice[0]} is the name of two credits")
        return self


def read_credits(path: Path) -> tuple[Credit, ...]:
    """Read the credits from a file. Raises DataFileError with every problem at once."""
    return tuple(read_records(path, CreditFile).credits)


def moments_of(granted: Iterable[Credit]) -> set[Seconds]:
    """Return the moments at which a credit begins or ends, where the books must be cut."""
    return {int(moment.timestamp()) for each in granted for moment in (each.start, each.end) if moment is not None}


@dataclass(frozen=True)
class Credited:
    """The amount that a credit took off."""

    credit: Credit
    usd: Decimal
    lines: dict[tuple[str, str], Decimal]
    """Amounts by team and project in cents, which sum to `usd`."""

    @property
    def left_usd(self) -> Decimal:
        """The unused part of the credit."""
        return self.credit.usd - self.usd


def apply_credits(granted: Sequence[Credit], charges: Sequence[LineCharge]) -> tuple[Credited, ...]:
    """Apply the credits in their order, each in proportion to what lines still pay for the nodes it is for."""
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
