"""Quantities, prices and costs as FOCUS has them: a unit price times its quantity is the cost, to the last digit."""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import TYPE_CHECKING

from capacity.chargeback.report import HOUR

if TYPE_CHECKING:
    from fractions import Fraction

_PLACES = Decimal("1e-9")
"""Quantities are rounded to so much of an hour: of the dearest machine that is a ten-millionth of a dollar."""


def priced(which: str, usd_per_hour: Fraction, hours: Decimal) -> dict[str, str]:
    """The unit price and the cost at it, which is their product to the last digit, as FOCUS has it."""
    with localcontext(prec=60):
        price = Decimal(usd_per_hour.numerator) / usd_per_hour.denominator
        return {f"{which}UnitPrice": text_of(price), f"{which}Cost": text_of(price * hours)}


def hours_of(seconds: Fraction) -> Decimal:
    """Hours, rounded."""
    with localcontext(prec=60):
        return (Decimal(seconds.numerator) / seconds.denominator / HOUR).quantize(_PLACES)


def text_of(number: Decimal) -> str:
    """As FOCUS writes numbers: a point, no exponent, no digit that says nothing."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
