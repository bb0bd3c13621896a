"""The three figures of a month: the worst case, what is expected, and what idling costs; always in cents, so that parts sum to totals."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING

from capacity.values.usd import cents

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


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
