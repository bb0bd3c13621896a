"""Numbers of a FOCUS dataset, and its rows of commitments of US dollars an hour: what they paid for, what nothing used, their fees.

A unit price times its quantity is the cost, to the last digit.

Columns: specification/columns of github.com/FinOps-Open-Cost-and-Usage-Spec/FOCUS_Spec (commitmentdiscountid, -status, -quantity, -unit,
pricingcategory, contractedcost), read 2026-11-27. What a commitment pays for is billed by the row of its fee (a purchase, whose effective
cost is 0), so the BilledCost of the other rows is what it does not pay: the fee of EKS Auto Mode, or nothing.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING

from capacity.chargeback.charges import ChargeKind
from capacity.chargeback.report import HOUR
from capacity.values.quantities import to_cents
from capacity.values.shown_text import spreadsheet_cell

if TYPE_CHECKING:
    from collections.abc import Iterable

    from capacity.catalog.contract import SpendCommitment
    from capacity.chargeback.charges import LineCharge
    from capacity.chargeback.report import SpentPlan


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


UNIT = "USD"
"""Of CommitmentDiscountQuantity, which is an amount of spend where the category is Spend."""


def committed_cost(charge: LineCharge) -> dict[str, str]:
    """What is effectively paid, and of that what the fee of the commitment does not bill."""
    return {"BilledCost": str(_billed(charge)), "EffectiveCost": str(charge.usd)}


def _billed(charge: LineCharge) -> Decimal:
    fee = to_cents({0: charge.supply.rate.fee * charge.machine_seconds / HOUR})[0]
    return min(fee, charge.usd)


def committed_discount(charge: LineCharge) -> dict[str, str]:
    """Which commitment pays, and how much of it that takes; nothing where none does."""
    supply = charge.supply
    if supply.plan is None:
        return {}
    spent = (supply.rate.paid - supply.rate.fee) * charge.machine_seconds / HOUR
    status = "Unused" if charge.kind is ChargeKind.UNUSED else "Used"
    return {**_named(supply.plan, spent), "CommitmentDiscountStatus": status}


def _named(plan: SpendCommitment, usd: Fraction) -> dict[str, str]:
    with localcontext(prec=60):
        quantity = (Decimal(usd.numerator) / usd.denominator).quantize(Decimal("1e-9"))
    return {
        "CommitmentDiscountCategory": "Spend",
        "CommitmentDiscountId": spreadsheet_cell(plan.name),
        "CommitmentDiscountName": spreadsheet_cell(plan.name),
        "CommitmentDiscountQuantity": text_of(quantity),
        "CommitmentDiscountType": plan.kind.value,
        "CommitmentDiscountUnit": UNIT,
    }


def sku_of_plan(plan: SpendCommitment) -> dict[str, str]:
    """The commitment by its own name; the clouds' ids of its SKUs are in no price file."""
    name = spreadsheet_cell(plan.name)
    return {"SkuId": name, "SkuPriceId": f"{name}/{plan.kind}", "SkuMeter": "Committed hours", "SkuPriceDetails": "{}"}


def hours_of_plan(spent: SpentPlan) -> Decimal:
    """For how long it was billed."""
    return hours_of(Fraction(spent.committed_usd) / Fraction(spent.plan.usd_per_hour) * HOUR)


def fee_of_plan(spent: SpentPlan, rows: Iterable[LineCharge]) -> dict[str, str]:
    """The row of the fee, which bills what the other `rows` of the commitment leave unbilled; without its prices."""
    plan, usd = spent.plan, sum((each.usd - _billed(each) for each in rows), Decimal("0.00"))
    hours = hours_of_plan(spent)
    return {
        **_named(plan, Fraction(spent.committed_usd)),
        **sku_of_plan(plan),
        "BilledCost": str(usd),
        "EffectiveCost": "0",
        "ChargeCategory": "Purchase",
        "ChargeFrequency": "Recurring",
        "ChargeDescription": f"{plan.kind} {plan.name}: fee of {plan.usd_per_hour} USD an hour",
        "PricingCategory": "Standard",
        "PricingQuantity": text_of(hours),
        "PricingUnit": "Hours",
        "x_ChargeKind": "fee",
        "x_ListPriceKnown": "true",
    }
