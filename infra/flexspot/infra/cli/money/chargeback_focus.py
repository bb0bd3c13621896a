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
from flexspot.infra.cli.console import hours_of, priced, text_of
from flexspot.infra.cli.money.chargeback_formats import utc

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.capacity.catalog.contract import SpendCommitment
    from flexspot.capacity.chargeback.charges import LineCharge, Supply
    from flexspot.capacity.chargeback.report import ExtraCost, Report


def _billed(charge: LineCharge) -> Decimal:
    """What of a charge the fee of its commitment does not bill; without one all."""
    if charge.supply.plan is None:
        return charge.usd
    fee = to_cents({0: charge.supply.rate.fee * charge.machine_seconds / HOUR})[0]
    return min(fee, charge.usd)


def _discount(charge: LineCharge) -> dict[str, str]:
    """Which commitment pays, and how much of it that takes; nothing where none does."""
    supply = charge.supply
    if supply.plan is None:
        return {}
    spent = (supply.rate.paid - supply.rate.fee) * charge.machine_seconds / HOUR
    return {**_named(supply.plan, spent), "CommitmentDiscountStatus": _status(charge)}


def _status(charge: LineCharge) -> str:
    return "Unused" if charge.kind is ChargeKind.UNUSED else "Used"


def _named(plan: SpendCommitment, usd: Fraction) -> dict[str, str]:
    with localcontext(prec=60):
        quantity = (Decimal(usd.numerator) / usd.denominator).quantize(Decimal("1e-9"))
    return {
        "CommitmentDiscountCategory": "Spend",
        **dict.fromkeys(("CommitmentDiscountId", "CommitmentDiscountName"), spreadsheet_cell(plan.name)),
        "CommitmentDiscountQuantity": text_of(quantity),
        "CommitmentDiscountType": plan.kind.value,
        # Of an amount of spend, as the category is Spend.
        "CommitmentDiscountUnit": "USD",
    }


def _sku_of_plan(plan: SpendCommitment) -> dict[str, str]:
    """The commitment by its own name; the clouds' ids of its SKUs are in no price file."""
    name = spreadsheet_cell(plan.name)
    return {"SkuId": name, "SkuPriceId": f"{name}/{plan.kind}", "SkuMeter": "Committed hours", "SkuPriceDetails": "{}"}


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


_EXTRAS = {
    ExtraKind.STORAGE: {"ServiceCategory": "Storage", "ServiceSubcategory": "Other (Storage)", "ServiceName": "Storage"},
    ExtraKind.EGRESS: {"ServiceCategory": "Networking", "ServiceSubcategory": "Other (Networking)", "ServiceName": "Data transfer"},
}
"""How FOCUS names a cost that is no node's; the service's name is that of its meter as well."""


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
            **_costs(_billed(charge), charge.usd),
            **priced("Contracted", contracted, hours),
            **priced("List", listed, hours),
            "PricingQuantity": text_of(hours),
            "PricingUnit": "Hours",
            "PricingCategory": _pricing(supply),
            **_consumed(charge, hours),
            **_reservation(charge),
            **_discount(charge),
            **_compute(supply.cloud),
            # No table here has the clouds' display names of regions.
            **dict.fromkeys(("RegionId", "RegionName"), "" if supply.is_plan else spreadsheet_cell(supply.region)),
            **(_sku(supply) if not supply.is_plan or supply.plan is None else _sku_of_plan(supply.plan)),
            **_owner(line.team),
            **_tags(team=line.team, project=line.project, workload_type=line.workload_type, environment=line.environment, pool=line.pool),
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
        plan, price = each.plan, Fraction(each.plan.usd_per_hour)
        rows = [charge for charge in report.charges if charge.supply.plan == plan]
        hours = hours_of(Fraction(each.committed_usd) / price * HOUR)
        yield {
            **_named(plan, Fraction(each.committed_usd)),
            **_sku_of_plan(plan),
            **_costs(sum((charge.usd - _billed(charge) for charge in rows), Decimal("0.00")), 0),
            **priced("Contracted", price, hours),
            **priced("List", price, hours),
            **_compute(plan.kind.cloud),
            **_tags(),
            "ChargeCategory": "Purchase",
            "ChargeFrequency": "Recurring",
            "ChargeDescription": f"{plan.kind} {plan.name}: fee of {plan.usd_per_hour} USD an hour",
            "PricingCategory": "Standard",
            "PricingQuantity": text_of(hours),
            "PricingUnit": "Hours",
            "x_ChargeKind": "fee",
            "x_ListPriceKnown": "true",
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
        service = _EXTRAS[each.kind]
        meter = service["ServiceName"]
        yield {
            **_costs(each.usd, each.usd),
            **dict.fromkeys(("ContractedCost", "ContractedUnitPrice", "ListCost", "ListUnitPrice"), text_of(each.usd)),
            **dict.fromkeys(("ConsumedQuantity", "PricingQuantity"), "1"),
            **dict.fromkeys(("ConsumedUnit", "PricingUnit"), "Charges"),
            "PricingCategory": "Standard",
            **_provider(_cloud_of(each, clouds)),
            **service,
            **dict.fromkeys(("SkuId", "SkuPriceId", "x_ChargeKind"), each.kind.value),
            "SkuMeter": meter,
            **_owner(each.team),
            **_tags(team=each.team, project=each.project),
            "ChargeDescription": f"{meter}: {each.what}" if each.what else meter,
            "x_ListPriceKnown": "false",
        }


def _credits(report: Report) -> Iterator[dict[str, str]]:
    """A credit is of no SKU, so it has no unit prices, and all its costs are the same (the words of ContractedCost and ListCost)."""
    for credited in report.credits:
        for (team, project), usd in credited.lines.items():
            yield {
                **dict.fromkeys(("BilledCost", "EffectiveCost", "ContractedCost", "ListCost"), str(-usd)),
                **_compute(credited.credit.cloud),
                "ChargeCategory": "Credit",
                "ChargeFrequency": "One-Time",
                **_owner(team),
                **_tags(team=team, project=project),
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


def _costs(billed: Decimal, effective: Decimal | int) -> dict[str, str]:
    return {"BilledCost": str(billed), "EffectiveCost": str(effective)}


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
    return {"CapacityReservationId": reservation, "CapacityReservationStatus": _status(charge)}


def _provider(cloud: Vendor) -> dict[str, str]:
    """All three are the cloud. With another issuer of invoices FOCUS wants a BilledCost of 0 (BilledCost-C-005-C)."""
    return dict.fromkeys(("ProviderName", "PublisherName", "InvoiceIssuerName"), _PROVIDERS[cloud])


def _compute(cloud: Vendor) -> dict[str, str]:
    service = {"ServiceCategory": "Compute", "ServiceSubcategory": "Virtual Machines", "ServiceName": _COMPUTE[cloud]}
    return {**_provider(cloud), **service}


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


def _tags(**names: str) -> dict[str, str]:
    return {"Tags": json.dumps({name: value for name, value in names.items() if value not in _NOBODY})}
