"""Reports in US dollars to be told in another currency, and what an amount comes to by decimal, which nothing of the code uses."""

from __future__ import annotations

from datetime import date
from decimal import ROUND_HALF_UP, Decimal, localcontext
from functools import cache
from typing import TYPE_CHECKING

from hypothesis import strategies as st
from test_chargeback_focus import mixed_report

from capacity.catalog.exchange_rates import ExchangeRate, InCurrency

if TYPE_CHECKING:
    from capacity.chargeback.report import IdlePolicy, Report

RATES = st.decimals(min_value="0.0001", max_value="20000", places=6).filter(lambda each: each > 0)


def euros(per_usd: str | Decimal = "0.861234") -> InCurrency:
    rate = ExchangeRate(per_usd=Decimal(per_usd), as_of=date(2026, 10, 30), source="reference rates of the central bank")
    return InCurrency(currency="EUR", rate=rate)


@cache
def usd_report(policy: IdlePolicy) -> Report:
    return mixed_report(policy)


def in_euros(usd: Decimal, rate: Decimal) -> Decimal:
    with localcontext(prec=60):
        return (usd * rate).quantize(Decimal("0.01"), ROUND_HALF_UP)
