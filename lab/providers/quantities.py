"""Kubernetes quantities in the one spelling that the API server gives back, such as `4` for `4000m` and `1Gi` for `1024Mi`.

The Python client's own parser gives a number and forgets how it was written; the spelling depends on it.
Source: k8s.io/apimachinery/pkg/api/resource, Quantity.CanonicalizeBytes.
"""

from __future__ import annotations

import re
from decimal import ROUND_UP, Decimal

_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}

_QUANTITY = re.compile(r"(?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+))(?:(?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?\d{1,3}))?")

_SUFFIXES = {exponent: suffix for suffix, exponent in _DECIMAL.items()}


class NoQuantityError(ValueError):
    """The API server would not take it as a quantity."""


def canonical(written: str | float) -> str:
    """The spelling that the API server gives a quantity. Raises NoQuantityError."""
    match = _QUANTITY.fullmatch(str(written))
    if match is None or isinstance(written, bool):
        raise NoQuantityError(f"{written!r} is no quantity")
    number, suffix, exponent = Decimal(match["number"]), match["suffix"] or "", match["exponent"]
    if suffix in _BINARY:
        return _binary(number * 1024 ** _BINARY[suffix])
    if exponent is not None:
        digits, power = _thousands(number.scaleb(int(exponent)))
        return f"{digits}e{power}" if power else str(digits)
    digits, power = _thousands(number.scaleb(_DECIMAL[suffix]))
    return f"{digits}{_SUFFIXES[power]}"


def _binary(amount: Decimal) -> str:
    # Below 1 Ki there is no binary suffix, and so no reason to round to whole numbers.
    if abs(amount) < 1024:  # noqa: PLR2004 -- 1 Ki
        digits, power = _thousands(amount)
        return f"{digits}{_SUFFIXES[power]}"
    whole, power = int(amount.to_integral_value(ROUND_UP)), 0
    while whole % 1024 == 0 and power < len(_BINARY):
        whole, power = whole // 1024, power + 1
    return f"{whole}{list(_BINARY)[power - 1] if power else ''}"


def _thousands(amount: Decimal) -> tuple[int, int]:
    """The whole number without a factor of a thousand, and the power of ten that goes with it: (1500, -3) for 1.5."""
    power = -9
    whole = int(amount.scaleb(9).to_integral_value(ROUND_UP))
    while whole and whole % 1000 == 0 and power < max(_SUFFIXES):
        whole, power = whole // 1000, power + 3
    return (whole, power) if whole else (0, 0)
