"""Figures of a month, and the lines of a cost: their section, prices and missing prices."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.fresh_prices import is_listed
from flexspot.capacity.catalog.price_book import LIST_PRICE_DAYS, SPOT_PRICE_DAYS, Measure
from flexspot.capacity.values.quantities import cents

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import date

    from flexspot.capacity.catalog.contract import FamilyPrice
    from flexspot.capacity.catalog.data_files import Source
    from flexspot.capacity.catalog.price_book import Price, PriceBook, ServicePrice


class Scenario(StrEnum):
    """The kind of month that a figure is for.

    WORST: every enforced ceiling is reached in every hour of a month of 31 days, at the highest price of any machine that may be created.
    EXPECTED: according to the expected use. FLOOR: nothing runs; only what is kept is paid.
    """

    WORST = "worst-case"
    EXPECTED = "expected"
    FLOOR = "idle-floor"


@dataclass(frozen=True)
class Figures:
    """US dollars a month, in whole cents.

    Items without a known price count in `worst_usd` and `expected_at_most_usd` at the on-demand price, an upper bound, and not in the
    others. If all prices are known, `expected_at_most_usd` equals `expected_usd`.
    """

    worst_usd: Decimal
    expected_usd: Decimal
    floor_usd: Decimal
    expected_at_most_usd: Decimal

    def __add__(self, other: Figures) -> Figures:
        return Figures(*(mine + theirs for mine, theirs in zip(_amounts(self), _amounts(other), strict=True)))

    def __sub__(self, other: Figures) -> Figures:
        return Figures(*(mine - theirs for mine, theirs in zip(_amounts(self), _amounts(other), strict=True)))

    def of(self, scenario: Scenario) -> Decimal:
        """Return the figure of one of the three months."""
        return {Scenario.WORST: self.worst_usd, Scenario.EXPECTED: self.expected_usd, Scenario.FLOOR: self.floor_usd}[scenario]


def _amounts(figures: Figures) -> tuple[Decimal, ...]:
    return figures.worst_usd, figures.expected_usd, figures.floor_usd, figures.expected_at_most_usd


NOTHING = Figures(*(Decimal("0.00"),) * 4)


def in_cents(worst_usd: Decimal, expected_usd: Decimal, floor_usd: Decimal, expected_at_most_usd: Decimal | None = None) -> Figures:
    """Return amounts rounded as on invoices. Without `expected_at_most_usd` the expected amount is known."""
    at_most = expected_usd if expected_at_most_usd is None else expected_at_most_usd
    return Figures(cents(worst_usd), cents(expected_usd), cents(floor_usd), cents(at_most))


def total(figures: Iterable[Figures | None]) -> Figures:
    """Return the sum of the known figures."""
    return sum((each for each in figures if each is not None), start=NOTHING)


def divided(figures: Figures, weights: Sequence[int]) -> list[Figures]:
    """Return the figures divided by weight into parts that sum to the whole, cent by cent. Raises ValueError if all weights are 0."""
    return [Figures(*parts) for parts in zip(*(_divided(each, weights) for each in _amounts(figures)), strict=True)]


def _divided(usd: Decimal, weights: Sequence[int]) -> list[Decimal]:
    # Each part ends where the parts so far must end, so that no cent is lost or paid twice.
    whole = sum(weights)
    if whole <= 0:
        raise ValueError(f"weights are {list(weights)}; one must be above 0")
    parts: list[Decimal] = []
    so_far, allocated = 0, Decimal("0.00")
    for weight in weights:
        so_far += weight
        reached = cents(usd * so_far / whole)
        parts.append(reached - allocated)
        allocated = reached
    return parts


@dataclass(frozen=True)
class Amounts:
    """Average amounts in each of the three months: nodes, or units of a service."""

    worst: Decimal
    expected: Decimal
    floor: Decimal

    def __str__(self) -> str:
        if self.floor == self.worst:
            return shown_amount(self.worst)
        return f"{shown_amount(self.floor)} to {shown_amount(self.worst)}, {shown_amount(self.expected)} expected"


def shown_amount(amount: Decimal) -> str:
    """Return a number with at most one decimal; a whole number without."""
    rounded = amount.quantize(Decimal("0.1"))
    return f"{rounded:f}".removesuffix(".0")


class Section(StrEnum):
    """The subject of a line.

    POOL, FEE and DISK are allocated to the teams that own the GPUs; FEE is the EKS Auto Mode fee on a pool's nodes. SYSTEM, OTHER_WORK,
    SERVICE and USAGE are the platform's: controller nodes, nodes without GPUs, items billed while they exist, and use that the user
    declares. COMMITMENT is committed spend beyond the reserved pools. INSTEAD is the extra cost of nodes that GKE creates in place of the
    declared ones.
    """

    POOL = "pool"
    FEE = "pool-fee"
    DISK = "pool-disk"
    SYSTEM = "system-nodes"
    OTHER_WORK = "other-work"
    SERVICE = "service"
    USAGE = "usage"
    COMMITMENT = "commitment"
    INSTEAD = "auto-provisioned"

    @property
    def of_pools(self) -> bool:
        """True if teams share it."""
        return self in {Section.POOL, Section.FEE, Section.DISK}


@dataclass(frozen=True)
class PriceUsed:
    """A price that a line was calculated with.

    `per` is the measure; `source` is the citation; for `undated` see Source. `listed` is whether `flexspot prices refresh` fetches such a
    price.
    """

    what: str
    usd: Decimal
    per: str
    source: str
    as_of: date
    verified: bool
    undated: bool = False
    spot: bool = False
    listed: bool = False


def price_data(price: PriceUsed) -> dict[str, Any]:
    """Return a price as data, money as text, with its item and source."""
    return {
        "what": price.what,
        "usd": str(price.usd),
        "per": price.per,
        "source": price.source,
        "as_of": price.as_of.isoformat(),
        "verified": price.verified,
        "undated": price.undated,
    }


def days_of(price: PriceUsed) -> int:
    """Return the days for which a price counts as current: Spot changes hourly, lists quarterly."""
    return SPOT_PRICE_DAYS if price.spot else LIST_PRICE_DAYS


def day_of(price: PriceUsed) -> str:
    """Return the day of a price, or the day it was read if it is undated."""
    return f"undated, read {price.as_of}" if price.undated else str(price.as_of)


def price_with_source(  # noqa: PLR0913 -- what a line tells of a price, given by name
    source: Source, what: str, usd: Decimal, *, per: str = Measure.HOUR, spot: bool = False, listed: bool = False
) -> PriceUsed:
    """Return a price with its source as text for a line."""
    return PriceUsed(what, usd, per, source.citation, source.as_of, source.verified, source.undated, spot, listed)


def price_used(book: PriceBook, price: Price) -> PriceUsed:
    """Return a machine's price for a line."""
    what = f"{price.machine} {price.capacity_type}" + (f" of pool {price.pool}" if price.pool else "")
    spot = price.capacity_type is CapacityType.SPOT
    return price_with_source(book.source_of(price), what, price.usd_per_hour, spot=spot, listed=is_listed(book.cloud, price))


def service_price_used(book: PriceBook, price: ServicePrice) -> PriceUsed:
    """Return the price of a service for a line."""
    listed = is_listed(book.cloud, price)
    return price_with_source(book.source_of(price), price.item, price.usd, per=price.item.measure, listed=listed)


def family_price_used(book: PriceBook, price: FamilyPrice) -> PriceUsed:
    """Return a family's price for a line."""
    return price_with_source(book.source_of(price), f"smallest {price.family} on-demand", price.usd_per_hour)


@dataclass(frozen=True)
class CostLine:
    """One line of a cost.

    `quantity` is the amount as text. `figures` are None without a known price; `unknown` names the missing prices. With both, the expected
    amount and the floor are lower bounds. Missing prices in `bounded` count in the worst case at the on-demand price. Without `priced` only
    that bound is known.
    """

    section: Section
    name: str
    quantity: str
    figures: Figures | None
    prices: tuple[PriceUsed, ...]
    unknown: tuple[str, ...]
    bounded: tuple[str, ...] = ()
    priced: bool = True

    @property
    def unbounded(self) -> tuple[str, ...]:
        """Missing prices that are not in the worst case either."""
        return tuple(each for each in self.unknown if each not in self.bounded)

    @property
    def key(self) -> tuple[Section, str]:
        """Identity of the line across plans."""
        return self.section, self.name
