"""An entry: one amount of a bill, in the words of all bills."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from capacity.chargeback.node_groups import AUTO_MODE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from capacity.catalog.machines import Cloud


class BillError(ValueError):
    """A bill that cannot be used: what is wrong and in which row."""


class Kind(StrEnum):
    """What is paid for.

    MACHINE is a machine's time. COMMITMENT is the fee of a reservation or a plan, whatever ran. DISCOUNT is less for everything of a kind,
    by contract; CREDIT is money given; CORRECTION takes back or adds to an earlier charge. SERVICE is all else.
    """

    MACHINE = "machine"
    COMMITMENT = "commitment"
    DISCOUNT = "discount"
    CREDIT = "credit"
    CORRECTION = "correction"
    TAX = "tax"
    SERVICE = "service"


class Bought(StrEnum):
    """What a bill says of how a machine was bought.

    It does not tell a machine of a capacity reservation from one on demand, nor a queued one from flex-start. AUTO_MODE is a fee.
    """

    ON_DEMAND = "on-demand"
    SPOT = "spot"
    FLEX_START = "flex-start"
    AUTO_MODE = AUTO_MODE


@dataclass(frozen=True, order=True)
class Place:
    """Which machine, where, and how it was bought. `machine` ends in -* for a family of which the row does not say the machine (GCP)."""

    cloud: Cloud
    region: str
    machine: str
    bought: Bought


@dataclass(frozen=True, slots=True)
class Entry:
    """One amount of a bill, in US dollars.

    `hours` are those of nodes, or of vCPUs where the place is a family; zero for what is no time of its own, such as memory. `covered`: a
    commitment pays for it. `cluster` says that the row names a cluster of Kubernetes. `start` and `end` are seconds of Unix time, where
    the row says them. `identity` is that of the row, where the cloud gives it one.
    """

    kind: Kind
    cloud: Cloud
    what: str
    usd: Decimal
    place: Place | None = None
    hours: Fraction = Fraction(0)
    covered: bool = False
    cluster: bool = False
    start: int | None = None
    end: int | None = None
    identity: str = ""


_NUMBER = re.compile(r"[+-]?(?:\d{1,18}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE]([+-]?\d{1,3}))?", re.ASCII)
_MAX_EXPONENT = 30


def number(text: str, what: str) -> Decimal:
    """A figure of a bill; empty is 0. Raises BillError for what is no finite number, or one that no bill has."""
    written = text.strip()
    if not written:
        return Decimal(0)
    match = _NUMBER.fullmatch(written)
    if match is None or abs(int(match[1] or 0)) > _MAX_EXPONENT:
        raise BillError(f"{what} is {written[:40]!r}, which is not a number")
    return Decimal(written)


@lru_cache(maxsize=4096)
def moment(text: str, what: str) -> int | None:
    """A time of a bill as seconds of Unix time, UTC unless it says otherwise; empty is None. Raises BillError."""
    written = text.strip()
    if not written:
        return None
    try:
        found = datetime.fromisoformat(written.removesuffix(" UTC"))
    except ValueError:
        raise BillError(f"{what} is {written[:40]!r}, which is not a time such as 2026-10-01T00:00:00Z") from None
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp())


def in_json(row: Mapping[str, str], name: str) -> Any:
    """What a column holds as JSON, numbers as they are written; empty, or null, is None. Raises BillError."""
    written = row.get(name, "").strip()
    if not written:
        return None
    try:
        return json.loads(written, parse_float=str, parse_int=str, parse_constant=str)
    except (ValueError, RecursionError):
        raise BillError(f"{name} is not JSON") from None


def is_in_dollars(currency: str) -> bool:
    """Return whether a bill's currency is that of reports."""
    return currency.strip().upper() == "USD"


def refuse_another(currency: str, column: str) -> None:
    """Raise BillError for an amount that is not in US dollars, in which reports are."""
    if not is_in_dollars(currency):
        raise BillError(
            f"{column} is {currency.strip()[:10] or 'empty'}, and reports are in USD. Export the bill in USD; of Google Cloud, give the "
            "standard or detailed billing export, whose rows have the exchange rate (currency_conversion_rate)"
        )
