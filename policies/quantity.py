"""Kubernetes quantities: the numbers of limits and requests, as people write them."""

from __future__ import annotations

import re
from decimal import Decimal

_SUFFIXES = {
    "": Decimal(1),
    "m": Decimal("0.001"),
    **{suffix: Decimal(1000) ** power for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)},
}

_QUANTITY = re.compile(r"(?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+))(?:[eE](?P<exponent>[+-]?\d{1,3})|(?P<suffix>[KMGTPE]i|[mkMGTPE]?))")


def quantity(written: str | float) -> Decimal | None:
    """The number that a quantity such as 8, "8", "1k", "1e3" or "16Gi" means; None for what the API server would refuse.

    Source: k8s.io/apimachinery/pkg/api/resource, the grammar of Quantity (n and u, below a thousandth, are left out).
    """
    match = _QUANTITY.fullmatch(str(written))
    if match is None:
        return None
    number = Decimal(match["number"])
    return number.scaleb(int(match["exponent"])) if match["exponent"] else number * _SUFFIXES[match["suffix"]]
