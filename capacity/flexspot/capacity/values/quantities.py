"""Kubernetes quantities as the API server writes them, and amounts in US dollars, always Decimal.

Source: k8s.io/apimachinery 0.36, pkg/api/resource, Quantity.CanonicalizeBytes: the largest suffix that leaves a whole number.
"""

from __future__ import annotations

import math
import re
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping


_DECIMAL = ("", "k", "M", "G", "T", "P", "E")
_BINARY = ("Mi", "Gi", "Ti", "Pi", "Ei")
_MIB_IN_A_GIB = 1024


def count_quantity(number: int) -> str:
    """Return a count as a quantity: 200 stays 200, 1000 becomes 1k."""
    step = 0
    while number and number % 1000 == 0 and step < len(_DECIMAL) - 1:
        number, step = number // 1000, step + 1
    return f"{number}{_DECIMAL[step]}"


def milli_quantity(milli: int) -> str:
    """Return thousandths of a vCPU as a quantity: 500 becomes 500m, 1000 becomes 1."""
    return f"{milli}m" if milli % 1000 else str(milli // 1000)


def mib_quantity(mib: int) -> str:
    """Return MiB as a quantity: 512 becomes 512Mi, 2048 becomes 2Gi."""
    if mib == 0:
        return "0"
    step = 0
    while mib % 1024 == 0 and step < len(_BINARY) - 1:
        mib, step = mib // 1024, step + 1
    return f"{mib}{_BINARY[step]}"


def gib_quantity(gib: int) -> str:
    """Return GiB as a quantity: 500 becomes 500Gi, 2048 becomes 2Ti."""
    return mib_quantity(gib * _MIB_IN_A_GIB)


_SUFFIXES = {
    "": Decimal(1),
    "m": Decimal("0.001"),
    **{suffix: Decimal(1000) ** power for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)},
}

_QUANTITY = re.compile(r"(?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+))(?:[eE](?P<exponent>[+-]?\d{1,3})|(?P<suffix>[KMGTPE]i|[mkMGTPE]?))")


def quantity(written: str | float) -> Decimal | None:
    """Return the value of a quantity such as 8, "8", "1k", "1e3" or "16Gi", or None if the API server would refuse it.

    Source: k8s.io/apimachinery/pkg/api/resource, the grammar of Quantity. The suffixes n and u, below a thousandth, are not supported.
    """
    match = _QUANTITY.fullmatch(str(written))
    if match is None:
        return None
    number = Decimal(match["number"])
    return number.scaleb(int(match["exponent"])) if match["exponent"] else number * _SUFFIXES[match["suffix"]]


HOURS_OF_A_YEAR = 8760
SECONDS_OF_AN_HOUR = 3600


def exact(number: float) -> Decimal:
    """Return the Decimal with the digits of a float: 0.1 becomes 0.1, not its binary neighbour.

    Raises ValueError for infinite numbers and NaN.
    """
    if not math.isfinite(number):
        raise ValueError(f"{number} is not an amount of money: it must be finite")
    return Decimal(repr(number))


def usd_of_hours(usd_per_hour: Decimal, hours: float, nodes: int = 1) -> Decimal:
    """Return the cost of `nodes` for `hours`. Raises ValueError as `exact` does."""
    return usd_per_hour * exact(hours) * nodes


def usd_of_seconds(usd_per_hour: Decimal, seconds: int, nodes: int = 1) -> Decimal:
    """Return the cost of `nodes` for whole `seconds`, the unit in which the clouds bill."""
    return usd_per_hour * seconds * nodes / SECONDS_OF_AN_HOUR


def as_decimal(number: Fraction) -> Decimal:
    """Return a fraction rounded to Decimal's 28 digits. Use it for output only, after all sums and comparisons."""
    return Decimal(number.numerator) / number.denominator


def cents(usd: Decimal) -> Decimal:
    """Round to cents as invoices do, half a cent up."""
    return usd.quantize(Decimal("0.01"), ROUND_HALF_UP)


def whole(usd: Decimal) -> Decimal:
    """Round to whole dollars."""
    return usd.quantize(Decimal(1), ROUND_HALF_UP)


def saved_percent(usd: Decimal, instead_of_usd: Decimal) -> Decimal:
    """Return the saving of `usd` compared with `instead_of_usd`, in percent. It is negative if `usd` is more."""
    return (1 - usd / instead_of_usd) * 100


KeyT = TypeVar("KeyT", bound="Hashable")

_CENTS = 100


def to_cents(amounts: Mapping[KeyT, Fraction], of: Decimal | None = None) -> dict[KeyT, Decimal]:
    """Round exact US dollars to cents so that the cents add up to the rounded sum.

    The total is the sum of `amounts`, rounded half up, or `of`, to which that sum was already rounded. No part is a cent or more off. The
    cents left over by rounding down go, one each, to the parts that lost most by it, the first of equals first.
    """
    exact = {key: amount * _CENTS for key, amount in amounts.items()}
    cents = {key: amount.numerator // amount.denominator for key, amount in exact.items()}
    whole = sum(exact.values(), Fraction(0)) + Fraction(1, 2) if of is None else Fraction(of * _CENTS)
    left = whole.numerator // whole.denominator - sum(cents.values())
    by_loss = sorted(exact, key=lambda key: (cents[key] == exact[key], cents[key] - exact[key]))
    for key in by_loss[:left]:
        cents[key] += 1
    return {key: Decimal(each).scaleb(-2) for key, each in cents.items()}
