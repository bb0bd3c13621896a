"""What of a resource is billed: machines and services, how many at most, as declared and at least; and what is not known of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from capacity.catalog.capacity_type import CapacityType
    from capacity.catalog.machines import Cloud
    from capacity.catalog.price_book import ServiceItem

NONE = Decimal(0)


@dataclass(frozen=True)
class Counts:
    """How many there are: of what scales, between its bounds; `most` is None where nothing bounds it. `declared` is what runs at first."""

    declared: Decimal
    least: Decimal
    most: Decimal | None

    def __mul__(self, by: Decimal | int) -> Counts:
        return Counts(self.declared * by, self.least * by, None if self.most is None else self.most * by)

    def __str__(self) -> str:
        told = f"{self.declared.normalize():f}"
        if self.least == self.declared == self.most:
            return told
        return f"{told} ({self.least.normalize():f} to {'any' if self.most is None else f'{self.most.normalize():f}'})"


def fixed(number: Decimal | int = 1) -> Counts:
    """So many, always."""
    return Counts(Decimal(number), Decimal(number), Decimal(number))


@dataclass(frozen=True)
class Limit:
    """So much of something that all nodes together may have, and how much of it a node of each machine has."""

    what: str
    most: Decimal
    of_a_node: dict[str, Decimal]


@dataclass(frozen=True)
class MachinePart:
    """Nodes of one of several machines: the first is what is declared, the dearest what is counted at most.

    With `limits` it is they that bound the nodes, however machines and capacity types are mixed. `managed`: of EKS Auto Mode, with its fee.
    """

    cloud: Cloud
    machines: tuple[str, ...]
    capacity_types: tuple[CapacityType, ...]
    nodes: Counts
    limits: tuple[Limit, ...] = ()
    managed: bool = False


@dataclass(frozen=True)
class ServicePart:
    """Units of what is no machine: of an hourly item how many there are, of the others GiB, operations or keys in a month."""

    cloud: Cloud
    item: ServiceItem
    units: Counts


@dataclass
class Billed:
    """What is billed of one resource. `by_use`: what is billed by what is done with it; `missing`: what would have to be known."""

    parts: list[MachinePart | ServicePart] = field(default_factory=list["MachinePart | ServicePart"])
    by_use: list[str] = field(default_factory=list[str])
    missing: list[str] = field(default_factory=list[str])

    def service(self, cloud: Cloud, item: ServiceItem, units: Counts | Decimal | int = 1) -> None:
        """Adds units of a service."""
        self.parts.append(ServicePart(cloud, item, units if isinstance(units, Counts) else fixed(units)))

    def machine(self, cloud: Cloud, machines: tuple[str, ...], capacity_type: CapacityType, nodes: Counts) -> None:
        """Adds nodes."""
        self.parts.append(MachinePart(cloud, machines, (capacity_type,), nodes))
