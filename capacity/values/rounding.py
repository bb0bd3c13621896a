"""Exact amounts in cents, of which the sum is right too."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping


KeyT = TypeVar("KeyT", bound="Hashable")

_CENTS = 100


def to_cents(amounts: Mapping[KeyT, Fraction], of: Decimal | None = None) -> dict[KeyT, Decimal]:
    """Exact US dollars in cents. Their sum is that of `amounts`, rounded half up, or `of`, to which that was rounded; no part is a cent
    or more off.

    What rounding down leaves over goes, a cent each, to those that lost most by it, the first of equals first.
    """
    exact = {key: amount * _CENTS for key, amount in amounts.items()}
    cents = {key: amount.numerator // amount.denominator for key, amount in exact.items()}
    whole = sum(exact.values(), Fraction(0)) + Fraction(1, 2) if of is None else Fraction(of * _CENTS)
    left = whole.numerator // whole.denominator - sum(cents.values())
    by_loss = sorted(exact, key=lambda key: (cents[key] == exact[key], cents[key] - exact[key]))
    for key in by_loss[:left]:
        cents[key] += 1
    return {key: Decimal(each).scaleb(-2) for key, each in cents.items()}
