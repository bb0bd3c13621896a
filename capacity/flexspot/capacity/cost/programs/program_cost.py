"""Monthly cost of a program: each resource by the price book, the unknown parts by name, and the cost of a change."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from datetime import date
from decimal import Decimal  # noqa: TC003 -- a dataclass has it
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.data_files import Record, read_records
from flexspot.capacity.catalog.machines import Vendor
from flexspot.capacity.catalog.price_book import HOURS_OF_A_LONG_MONTH, HOURS_OF_A_MONTH, Measure, listed_price
from flexspot.capacity.cost.figures import NOTHING, Figures, PriceUsed, in_cents, price_used, service_price_used, total
from flexspot.capacity.cost.programs import aws, google, kubernetes
from flexspot.capacity.cost.programs.declared import NONE, Billed, MachinePart, ServiceUnits

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from flexspot.capacity.catalog.price_book import PriceBook
    from flexspot.capacity.cost.programs.declared import Declared, Program


class KnownTypes(Record):
    """Types that are not billed for existing; see the file."""

    as_of: date
    source: str
    free: tuple[str, ...]
    by_use: dict[str, str]
    makers_of_cloud_resources: tuple[str, ...]

    def is_free(self, kind: str) -> bool:
        """Return whether the resource itself costs nothing."""
        if kind.startswith("kubernetes:") and kind not in self.by_use:
            group = kind.split(":")[1].partition("/")[0]
            return not any(fnmatchcase(group, each) for each in self.makers_of_cloud_resources)
        return any(fnmatchcase(kind, each) for each in self.free)

    def used_for(self, kind: str) -> str | None:
        """Return the use that a resource is billed by. It costs nothing unused."""
        return next((what for each, what in self.by_use.items() if fnmatchcase(kind, each)), None)


@cache
def known_types() -> KnownTypes:
    """Return the shipped lists."""
    return read_records(Path(__file__).with_name("types.yaml"), KnownTypes)


@dataclass(frozen=True)
class ResourceCost:
    """A resource and its monthly cost.

    Of its figures, `expected_usd` is the declared amount, `worst_usd` the most, `floor_usd` the least. Unpriced parts and values that the
    program lacks (`missing`) are in no figure. The exception is a Spot price, which is at most the on-demand price. `unbounded`: even
    `worst_usd` is incomplete.
    """

    urn: str
    type: str
    name: str
    what: tuple[str, ...]
    figures: Figures
    prices: tuple[PriceUsed, ...]
    by_use: tuple[str, ...]
    missing: tuple[str, ...]
    unbounded: bool


@dataclass(frozen=True)
class CostChange:
    """A resource with a changed cost, before (None: it is new) and after (None: it is deleted)."""

    name: str
    type: str
    before: ResourceCost | None
    after: ResourceCost | None

    @property
    def difference(self) -> Figures:
        """Additional cost of the change."""
        before, after = (NOTHING if each is None else each.figures for each in (self.before, self.after))
        return after - before


@dataclass(frozen=True)
class ProgramCost:
    """The monthly cost of a program.

    `not_priced` counts resources by types without a known price; `before` is None if the present state is unknown.
    """

    name: str
    lines: tuple[ResourceCost, ...]
    not_priced: dict[str, int]
    before: tuple[ResourceCost, ...] | None
    not_shown: int

    @property
    def total(self) -> Figures:
        """Sum of all known costs."""
        return total(each.figures for each in self.lines)

    @property
    def missing(self) -> list[tuple[str, str]]:
        """Unknown values, each with its resource."""
        return [(each.name, what) for each in self.lines for what in each.missing]

    @property
    def complete(self) -> bool:
        """True if only parts that are billed by use are left out."""
        return not (self.missing or self.not_priced or self.not_shown)

    @property
    def changes(self) -> list[CostChange]:
        """Resources with a changed cost, or with exchanged machines and services."""
        if self.before is None:
            return []
        before, after = ({each.urn: each for each in side} for side in (self.before, self.lines))
        both = [(before.get(urn), after.get(urn)) for urn in dict.fromkeys((*after, *before))]
        return [
            CostChange(one.name, one.type, old, new) for old, new in both if (one := new or old) is not None and _shown(old) != _shown(new)
        ]

    @property
    def difference(self) -> Figures | None:
        """Additional cost of the change in all; None if the present state is unknown."""
        return None if self.before is None else self.total - total(each.figures for each in self.before)


def program_cost(program: Program, books: Mapping[Vendor, PriceBook]) -> ProgramCost:
    """Return the monthly cost of a program at the prices of the books."""
    lines, not_priced = _side(program.after, books, program.region)
    if program.before is None:
        return ProgramCost(program.name, tuple(lines), not_priced, None, program.not_shown)
    before, _ = _side(program.before, books, program.region)
    return ProgramCost(program.name, tuple(lines), not_priced, tuple(before), program.not_shown)


def compared(before: ProgramCost, after: ProgramCost) -> ProgramCost:
    """Return the cost of a program compared with that of another file, which provides the present state."""
    return ProgramCost(after.name, after.lines, after.not_priced, before.lines, after.not_shown + before.not_shown)


def _side(
    resources: Iterable[Declared], books: Mapping[Vendor, PriceBook], region: str | None
) -> tuple[list[ResourceCost], dict[str, int]]:
    resources = list(resources)
    around = _around(resources)
    places = _Places(around.linked, {cloud: _regions(resources, cloud) for cloud in Vendor}, region)
    lines: list[ResourceCost] = []
    not_priced: Counter[str] = Counter()
    for each in resources:
        billed = _billed(each, around)
        if billed is None:
            not_priced[each.type] += 1
        elif billed.parts or billed.by_use or billed.missing:
            lines.append(_priced(each, billed, books, places))
    return lines, dict(sorted(not_priced.items()))


def _regions(resources: list[Declared], cloud: Vendor) -> set[str]:
    """Return the regions of the program's resources in a cloud."""
    own = {each.region for each in resources if each.type.startswith(f"{cloud}:") and each.region}
    return own | {place for each in resources if kubernetes.cloud_of(each) is cloud and (place := kubernetes.place_of(each)) is not None}


_FORMS = {Vendor.AWS: re.compile(r".*-\d+"), Vendor.GCP: re.compile(r".*[a-z]\d+")}


@dataclass(frozen=True)
class _Places:
    """Regions of resources. `regions` are those that resources name themselves, `given` that of the others."""

    linked: Mapping[str, Declared]
    regions: Mapping[Vendor, set[str]]
    given: str | None

    def of(self, found: Declared, cloud: Vendor) -> str | None:
        """Return the region of a resource: its own or its cluster's, else the given one of this cloud, else the program's only one."""
        if (own := kubernetes.place_of(found) or found.region) is not None:
            return own
        for urn in found.depends.get("cluster", ()):
            if urn in self.linked and (cluster := self.linked[urn].region) is not None:
                return cluster
        if self.given is not None and _FORMS[cloud].fullmatch(self.given):
            return self.given
        return next(iter(self.regions[cloud])) if len(self.regions[cloud]) == 1 else None


def _around(resources: list[Declared]) -> kubernetes.Around:
    clouds = {cloud for cloud in Vendor for each in resources if each.type.startswith(f"{cloud}:")}
    if not clouds and any(each.type.endswith(":EC2NodeClass") for each in resources):
        clouds = {Vendor.AWS}
    return kubernetes.Around({each.urn: each for each in resources}, clouds.pop() if len(clouds) == 1 else None)


def _billed(found: Declared, around: kubernetes.Around) -> Billed | None:
    """Return the billed parts of a resource. None if they are unknown."""
    billed = Billed()
    for handlers in (aws.BILLED, google.BILLED):
        if found.type in handlers:
            handlers[found.type](billed, found, around.linked)
            return billed
    if kubernetes.bill(billed, found, around):
        return billed
    known = known_types()
    if (use := known.used_for(found.type)) is not None:
        billed.by_use.append(use)
        return billed
    return billed if known.is_free(found.type) else None


def _shown(cost: ResourceCost | None) -> tuple[Figures, tuple[str, ...]] | None:
    return None if cost is None else (cost.figures, cost.what)


@dataclass
class _Sums:
    """Running sums in US dollars a month (most, declared, least), with their prices and missing values."""

    prices: list[PriceUsed]
    missing: list[str]

    most: Decimal = NONE
    declared: Decimal = NONE
    least: Decimal = NONE
    at_most_declared: Decimal = NONE


def _priced(found: Declared, billed: Billed, books: Mapping[Vendor, PriceBook], places: _Places) -> ResourceCost:
    sums, what = _Sums([], list(billed.missing)), list[str]()
    missing = sums.missing
    unbounded = bool(billed.missing)
    for part in billed.parts:
        region = places.of(found, part.cloud)
        if region is None:
            missing.append("its region: neither it nor its provider says one; give --region")
            unbounded = True
        elif isinstance(part, MachinePart):
            unbounded |= _add_machines(part, books[part.cloud], region, sums)
            what.append(f"{part.nodes} x {_named(part)}")
        else:
            unbounded |= _add_service(part, books[part.cloud], region, sums)
            unit = "" if part.item.measure in {Measure.HOUR, Measure.MONTH} else f" {part.item.measure.value.removesuffix('-month')}"
            what.append(f"{part.units}{unit} {part.item}")
    figures = in_cents(sums.most, sums.declared, sums.least, sums.at_most_declared)
    unique = tuple(dict.fromkeys(sums.prices))
    return ResourceCost(
        found.urn, found.type, found.name, tuple(what), figures, unique, tuple(billed.by_use), tuple(dict.fromkeys(missing)), unbounded
    )


_NAMED = 3


def _named(part: MachinePart) -> str:
    names = ", ".join(part.machines[:_NAMED]) + (f" and {len(part.machines) - _NAMED} more" if len(part.machines) > _NAMED else "")
    return f"{names} {' or '.join(part.capacity_types)}"


def _add_service(part: ServiceUnits, book: PriceBook, region: str, sums: _Sums) -> bool:
    """Adds a service; returns whether the most is not all."""
    price = book.find_service(part.item, region)
    if price is None:
        sums.missing.append(f"the price of {part.item} in {region}")
        return True
    sums.prices.append(service_price_used(book, price))
    hourly = part.item.measure is Measure.HOUR
    usual, longest = (HOURS_OF_A_MONTH, HOURS_OF_A_LONG_MONTH) if hourly else (1, 1)
    sums.declared += part.units.declared * price.usd * usual
    sums.at_most_declared += part.units.declared * price.usd * usual
    sums.least += part.units.least * price.usd * usual
    sums.most += (part.units.most or NONE) * price.usd * longest
    return part.units.most is None


def _add_machines(part: MachinePart, book: PriceBook, region: str, sums: _Sums) -> bool:
    """Adds nodes; returns whether the most is not all."""
    most_usd: dict[str, Decimal] = {}
    first: Decimal | None = None
    for machine in part.machines:
        bounds: list[Decimal | None] = []
        for capacity_type in part.capacity_types:
            price = listed_price(book, machine, region, capacity_type)
            bound = price or listed_price(book, machine, region, CapacityType.ON_DEMAND)
            fee = _fee(part, book, machine, region)
            bounds.append(None if bound is None else bound.usd_per_hour + fee)
            declared = machine == part.machines[0] and capacity_type is part.capacity_types[0]
            if price is None and ((declared and part.nodes.declared) or bound is None):
                sums.missing.append(f"the price of {machine} {capacity_type} in {region}")
            if price is not None:
                sums.prices.append(price_used(book, price))
            if declared and price is not None:
                first = price.usd_per_hour + fee
            if declared and bound is not None:
                sums.at_most_declared += part.nodes.declared * (bound.usd_per_hour + fee) * HOURS_OF_A_MONTH
        if None not in bounds:
            most_usd[machine] = max(each for each in bounds if each is not None)
    if first is not None:
        sums.declared += part.nodes.declared * first * HOURS_OF_A_MONTH
        sums.least += part.nodes.least * first * HOURS_OF_A_MONTH
    if most_usd:
        sums.most += _most(part, most_usd) * HOURS_OF_A_LONG_MONTH
    return part.nodes.most is None or len(most_usd) < len(part.machines)


def _most(part: MachinePart, usd_per_hour: dict[str, Decimal]) -> Decimal:
    """Return US dollars an hour of the dearest possible nodes. Under limits no mix of machines costs more than the limits."""
    if part.nodes.most is None:
        return NONE
    if not part.limits:
        return part.nodes.most * max(usd_per_hour.values())
    if len(part.machines) == 1:
        return part.nodes.most * usd_per_hour[part.machines[0]]
    return min(each.most * max(usd / each.of_a_node[machine] for machine, usd in usd_per_hour.items()) for each in part.limits)


def _fee(part: MachinePart, book: PriceBook, machine: str, region: str) -> Decimal:
    """Return the EKS Auto Mode fee for a node."""
    if not part.managed:
        return NONE
    fee, price = book.fee_of(machine), listed_price(book, machine, region, CapacityType.ON_DEMAND)
    return NONE if fee is None or price is None else price.usd_per_hour * fee.percent / 100
