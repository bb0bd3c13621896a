"""Numbers of a FOCUS dataset, and its rows of commitments of US dollars an hour: what they paid for, what nothing used, their fees.

A unit price times its quantity is the cost, to the last digit.

Columns: specification/columns of github.com/FinOps-Open-Cost-and-Usage-Spec/FOCUS_Spec (commitmentdiscountid, -status, -quantity, -unit,
pricingcategory, contractedcost), read 2026-11-27. What a commitment pays for is billed by the row of its fee (a purchase, whose effective
cost is 0), so the BilledCost of the other rows is what it does not pay: the fee of EKS Auto Mode, or nothing.
"""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.machines import Vendor, machines_of
from flexspot.capacity.chargeback.charges import ChargeKind
from flexspot.capacity.chargeback.nodes import UNKNOWN
from flexspot.capacity.chargeback.queries import CENTRAL, NO_TEAM, NONE, PLATFORM
from flexspot.capacity.chargeback.report import HOUR, ExtraKind
from flexspot.capacity.values.quantities import to_cents
from flexspot.capacity.values.shown_text import spreadsheet_cell
from flexspot.infra.cli.command_line import bad_usage
from flexspot.infra.cli.money.chargeback_formats import utc
from flexspot.infra.cli.tables import hours_of, priced, text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flexspot.capacity.catalog.contract import SpendCommitment
    from flexspot.capacity.chargeback.charges import LineCharge, LineKey, Supply
    from flexspot.capacity.chargeback.report import ExtraCost, Report, SpentPlan


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
        # Of an amount of spend, as the category is Spend.
        "CommitmentDiscountUnit": "USD",
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


COLUMNS = (
    "AvailabilityZone",
    "BilledCost",
    "BillingAccountId",
    "BillingAccountName",
    "BillingCurrency",
    "BillingPeriodEnd",
    "BillingPeriodStart",
    "CapacityReservationId",
    "CapacityReservationStatus",
    "ChargeCategory",
    "ChargeClass",
    "ChargeDescription",
    "ChargeFrequency",
    "ChargePeriodEnd",
    "ChargePeriodStart",
    "CommitmentDiscountCategory",
    "CommitmentDiscountId",
    "CommitmentDiscountName",
    "CommitmentDiscountQuantity",
    "CommitmentDiscountStatus",
    "CommitmentDiscountType",
    "CommitmentDiscountUnit",
    "ConsumedQuantity",
    "ConsumedUnit",
    "ContractedCost",
    "ContractedUnitPrice",
    "EffectiveCost",
    "InvoiceId",
    "InvoiceIssuerName",
    "ListCost",
    "ListUnitPrice",
    "PricingCategory",
    "PricingQuantity",
    "PricingUnit",
    "ProviderName",
    "PublisherName",
    "RegionId",
    "RegionName",
    "ResourceId",
    "ResourceName",
    "ResourceType",
    "ServiceCategory",
    "ServiceName",
    "ServiceSubcategory",
    "SkuId",
    "SkuMeter",
    "SkuPriceDetails",
    "SkuPriceId",
    "SubAccountId",
    "SubAccountName",
    "Tags",
    "x_ChargedTo",
    "x_ChargeKind",
    "x_CapacityType",
    "x_GpuModel",
    "x_ListPriceKnown",
    "x_MachineType",
    "x_NodePool",
)
"""Those of FOCUS by name, then our own. A row leaves out what it has no value for; tools ask for some of which no row has a value."""

_PROVIDERS = {Vendor.AWS: "AWS", Vendor.GCP: "Google Cloud"}
_COMPUTE = {Vendor.AWS: "Amazon Elastic Compute Cloud", Vendor.GCP: "Compute Engine"}
_NOBODY = frozenset({NO_TEAM, NONE, CENTRAL, PLATFORM, UNKNOWN})
"""What stands in a line for nothing. FOCUS has null for that, and no words."""

_FOR = {
    ChargeKind.ALLOCATED: "GPUs that pods had",
    ChargeKind.IDLE: "GPUs that no pod had",
    ChargeKind.PLATFORM: "nodes without GPUs",
    ChargeKind.UNUSED: "reserved and not there",
}


@dataclass(frozen=True)
class _Extra:
    """How FOCUS names a cost that is no node's."""

    category: str
    subcategory: str
    service: str
    said: str


_EXTRAS = {
    ExtraKind.STORAGE: _Extra("Storage", "Other (Storage)", "Storage", "Storage"),
    ExtraKind.EGRESS: _Extra("Networking", "Other (Networking)", "Data transfer", "Data transfer"),
}


def report_focus(report: Report, billing_account: str) -> str:
    """The charges of the report and its extra costs, with a heading.

    Raises ExplainedError where it is not known which cloud an extra cost is of.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    for row in (*_charges(report), *_purchases(report), *_extras(report), *_credits(report)):
        writer.writerow(_common(report, billing_account) | row)
    return text.getvalue()


def _common(report: Report, billing_account: str) -> dict[str, str]:
    return {
        "BillingAccountId": spreadsheet_cell(billing_account),
        "BillingCurrency": "USD",
        "BillingPeriodStart": utc(report.asked.start),
        "BillingPeriodEnd": utc(report.asked.end),
        "ChargeCategory": "Usage",
        "ChargeFrequency": "Usage-Based",
        "ChargePeriodStart": utc(report.period.start),
        "ChargePeriodEnd": utc(report.period.end),
    }


def _charges(report: Report) -> Iterator[dict[str, str]]:
    def order(charge: LineCharge) -> tuple[Any, ...]:
        supply = charge.supply
        return (charge.line, charge.kind, supply.region, supply.machine, supply.capacity_type, supply.pool, supply.rate.paid)

    for charge in sorted(report.charges, key=order):
        supply, line = charge.supply, charge.line
        hours = hours_of(charge.machine_seconds)
        contracted = supply.rate.paid if supply.rate.contracted is None else supply.rate.contracted
        listed = contracted if supply.rate.listed is None else supply.rate.listed
        yield {
            **(_usd(charge.usd) if supply.plan is None else committed_cost(charge)),
            **priced("Contracted", contracted, hours),
            **priced("List", listed, hours),
            "PricingQuantity": text_of(hours),
            "PricingUnit": "Hours",
            "PricingCategory": _pricing(supply),
            **_consumed(charge, hours),
            **_reservation(charge),
            **committed_discount(charge),
            **_provider(supply.cloud),
            # No table here has the clouds' display names of regions.
            **dict.fromkeys(("RegionId", "RegionName"), "" if supply.is_plan else spreadsheet_cell(supply.region)),
            "ServiceCategory": "Compute",
            "ServiceSubcategory": "Virtual Machines",
            "ServiceName": _COMPUTE[supply.cloud],
            **(_sku(supply) if not supply.is_plan or supply.plan is None else sku_of_plan(supply.plan)),
            **_owner(line.team),
            "Tags": _tags(line),
            "ChargeDescription": _described(charge),
            "x_ChargeKind": charge.kind.value,
            "x_CapacityType": supply.capacity_type,
            "x_GpuModel": "" if supply.gpu in _NOBODY else supply.gpu,
            "x_ListPriceKnown": "false" if supply.rate.listed is None else "true",
            "x_MachineType": "" if supply.is_plan else spreadsheet_cell(supply.machine),
            "x_NodePool": "" if supply.pool in _NOBODY else spreadsheet_cell(supply.pool),
        }


def _purchases(report: Report) -> Iterator[dict[str, str]]:
    """The fee of each commitment of US dollars an hour: what its rows of use leave unbilled, in cents that sum to the report."""
    for each in report.plans:
        rows = [charge for charge in report.charges if charge.supply.plan == each.plan]
        hours, price = hours_of_plan(each), Fraction(each.plan.usd_per_hour)
        yield {
            **fee_of_plan(each, rows),
            **priced("Contracted", price, hours),
            **priced("List", price, hours),
            **_provider(each.plan.kind.cloud),
            "ServiceCategory": "Compute",
            "ServiceSubcategory": "Virtual Machines",
            "ServiceName": _COMPUTE[each.plan.kind.cloud],
            "Tags": "{}",
        }


def _pricing(supply: Supply) -> str:
    # Spot alone has a price that the cloud changes without notice; a contract's is an agreed one.
    if supply.plan is not None:
        return "Committed"
    return "Dynamic" if supply.capacity_type == CapacityType.SPOT else "Standard"


def _described(charge: LineCharge) -> str:
    supply = charge.supply
    if supply.is_plan and supply.plan is not None:
        return f"{supply.plan.kind} {supply.plan.name}: committed and not used"
    return f"{supply.capacity_type} {supply.machine} in {supply.region}: {_FOR[charge.kind]}"


def _extras(report: Report) -> Iterator[dict[str, str]]:
    clouds = {each.supply.cloud for each in report.charges}
    for each in report.extra:
        named = _EXTRAS[each.kind]
        tags = {"team": each.team, "project": each.project}
        one = {"ConsumedQuantity": "1", "ConsumedUnit": "Charges", "PricingQuantity": "1", "PricingUnit": "Charges"}
        yield {
            **_usd(each.usd),
            **dict.fromkeys(("ContractedCost", "ContractedUnitPrice", "ListCost", "ListUnitPrice"), text_of(each.usd)),
            **one,
            "PricingCategory": "Standard",
            **_provider(_cloud_of(each, clouds)),
            "ServiceCategory": named.category,
            "ServiceSubcategory": named.subcategory,
            "ServiceName": named.service,
            **dict.fromkeys(("SkuId", "SkuPriceId", "x_ChargeKind"), each.kind.value),
            "SkuMeter": named.said,
            **_owner(each.team),
            "Tags": json.dumps({key: value for key, value in tags.items() if value not in _NOBODY}),
            "ChargeDescription": f"{named.said}: {each.what}" if each.what else named.said,
            "x_ListPriceKnown": "false",
        }


def _credits(report: Report) -> Iterator[dict[str, str]]:
    """A credit is of no SKU, so it has no unit prices, and all its costs are the same (the words of ContractedCost and ListCost)."""
    for credited in report.credits:
        for (team, project), usd in credited.lines.items():
            tags = {"team": team, "project": project}
            yield {
                **dict.fromkeys(("BilledCost", "EffectiveCost", "ContractedCost", "ListCost"), str(-usd)),
                **_provider(credited.credit.cloud),
                "ChargeCategory": "Credit",
                "ChargeFrequency": "One-Time",
                "ServiceCategory": "Compute",
                "ServiceSubcategory": "Virtual Machines",
                "ServiceName": _COMPUTE[credited.credit.cloud],
                **_owner(team),
                "Tags": json.dumps({key: value for key, value in tags.items() if value not in _NOBODY}),
                "ChargeDescription": f"Credit: {credited.credit.name}",
                "x_ChargeKind": "credit",
            }


def _cloud_of(extra: ExtraCost, clouds: set[Vendor]) -> Vendor:
    if extra.cloud is not None:
        return extra.cloud
    if len(clouds) == 1:
        return next(iter(clouds))
    raise bad_usage(
        f"it is not known which cloud bills {extra.kind} {extra.what or f'of {extra.team}'}, as the report has nodes of "
        f"{' and '.join(sorted(clouds)) or 'no cloud whose prices are known'}.",
        "give each cost in the file of --storage its cloud, as in cloud: aws.",
    )


def _usd(usd: Decimal) -> dict[str, str]:
    """What is billed is what is used: nothing here was paid in advance."""
    return {"BilledCost": str(usd), "EffectiveCost": str(usd)}


def _consumed(charge: LineCharge, hours: Decimal) -> dict[str, str]:
    """GPU hours of what has GPUs, machine hours of what has none; of what was reserved or committed and not there nothing was consumed."""
    if charge.supply.is_plan:
        # ConsumedQuantity-C-004-C: of the unused part of a commitment discount there is none.
        return {}
    if charge.kind is ChargeKind.PLATFORM or charge.supply.gpu == NONE:
        return {"ConsumedQuantity": "0" if charge.kind is ChargeKind.UNUSED else text_of(hours), "ConsumedUnit": "Hours"}
    return {"ConsumedQuantity": text_of(hours_of(charge.gpu_seconds)), "ConsumedUnit": "GPU-Hours"}


def _reservation(charge: LineCharge) -> dict[str, str]:
    reservation = charge.supply.reservation
    if reservation is None:
        return {}
    status = "Unused" if charge.kind is ChargeKind.UNUSED else "Used"
    return {"CapacityReservationId": reservation, "CapacityReservationStatus": status}


def _provider(cloud: Vendor) -> dict[str, str]:
    """All three are the cloud. With another issuer of invoices FOCUS wants a BilledCost of 0 (BilledCost-C-005-C)."""
    return dict.fromkeys(("ProviderName", "PublisherName", "InvoiceIssuerName"), _PROVIDERS[cloud])


def _sku(supply: Supply) -> dict[str, str]:
    """The keys of the price book, which is the price list here; the clouds' own ids of SKUs are not in it."""
    sku = f"{supply.region}/{supply.machine}"
    details: dict[str, str | int] = {"InstanceType": supply.machine}
    machine = machines_of(supply.cloud).get(supply.machine)
    if machine is not None:
        details["CoreCount"] = machine.vcpu
        if machine.gpu is not None and len(machine.gpu.counts) == 1:
            details["GpuCount"] = machine.gpu.count
    return {
        "SkuId": spreadsheet_cell(sku),
        "SkuPriceId": spreadsheet_cell(f"{sku}/{supply.capacity_type}"),
        "SkuMeter": "Instance hours",
        "SkuPriceDetails": json.dumps(details),
    }


def _owner(team: str) -> dict[str, str]:
    account = "" if team in _NOBODY else spreadsheet_cell(team)
    return {"SubAccountId": account, "SubAccountName": account, "x_ChargedTo": spreadsheet_cell(team)}


def _tags(line: LineKey) -> str:
    names = ("team", "project", "workload_type", "environment", "pool")
    return json.dumps({name: value for name in names if (value := getattr(line, name)) not in _NOBODY})
