"""The chargeback report as a FOCUS dataset, with rows for commitments of US dollars an hour: used and unused parts, and fees.

A unit price times its quantity is exactly the cost.

Columns: specification/columns of github.com/FinOps-Open-Cost-and-Usage-Spec/FOCUS_Spec (commitmentdiscountid, -status, -quantity, -unit,
pricingcategory, contractedcost), read 2026-11-27. A commitment's fee has its own row, a purchase with an effective cost of 0. It bills the
usage that the commitment covers. The BilledCost of other rows is the rest: the fee of EKS Auto Mode, or nothing.
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
    """Return the part of a charge that its commitment's fee does not bill. Without a commitment, that is the whole charge."""
    if charge.supply.plan is None:
        return charge.usd
    fee = to_cents({0: charge.supply.rate.fee * charge.machine_seconds / HOUR})[0]
    return min(fee, charge.usd)


def _discount(charge: LineCharge) -> dict[str, str]:
    """Return the columns of the commitment that pays for a charge, with the amount that it takes. Empty without a commitment."""
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
        # The unit is money, because the category is Spend.
        "CommitmentDiscountUnit": "USD",
    }


def _sku_of_plan(plan: SpendCommitment) -> dict[str, str]:
    """Return SKU columns with the commitment's own name. No price file has the clouds' ids of its SKUs."""
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
"""FOCUS columns by name, then the project's own. A row omits columns without a value. Some tools require columns that are always empty."""

_PROVIDERS = {Vendor.AWS: "AWS", Vendor.GCP: "Google Cloud"}
_COMPUTE = {Vendor.AWS: "Amazon Elastic Compute Cloud", Vendor.GCP: "Compute Engine"}
_NO_VALUE = frozenset({NO_TEAM, NONE, CENTRAL, PLATFORM, UNKNOWN})
"""Values that stand for a missing one. FOCUS uses null for that."""

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
"""FOCUS names of costs that belong to no node. The service's name is also the name of its meter."""


def report_focus(report: Report, billing_account: str) -> str:
    """Return the report's charges and its extra costs, with a heading.

    Raises ExplainedError if the cloud of an extra cost is unknown.
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
            # There is no table of the clouds' display names of regions.
            **dict.fromkeys(("RegionId", "RegionName"), "" if supply.is_plan else spreadsheet_cell(supply.region)),
            **(_sku(supply) if not supply.is_plan or supply.plan is None else _sku_of_plan(supply.plan)),
            **_owner(line.team),
            **_tags(team=line.team, project=line.project, workload_type=line.workload_type, environment=line.environment, pool=line.pool),
            "ChargeDescription": _described(charge),
            "x_ChargeKind": charge.kind.value,
            "x_CapacityType": supply.capacity_type,
            "x_GpuModel": "" if supply.gpu in _NO_VALUE else supply.gpu,
            "x_ListPriceKnown": "false" if supply.rate.listed is None else "true",
            "x_MachineType": "" if supply.is_plan else spreadsheet_cell(supply.machine),
            "x_NodePool": "" if supply.pool in _NO_VALUE else spreadsheet_cell(supply.pool),
        }


def _purchases(report: Report) -> Iterator[dict[str, str]]:
    """Yield the fee of each commitment of US dollars an hour.

    It is the amount that its usage rows leave unbilled, in cents that sum to the report.
    """
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
    # Only Spot prices change without notice. A contract's price is agreed.
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
    """Yield the credits.

    A credit has no SKU, so it has no unit prices, and all its costs are equal, as FOCUS says of ContractedCost and ListCost.
    """
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
        f"--storage: the cloud of {extra.kind} {extra.what or f'of {extra.team}'} is not known, as the report has nodes of "
        f"{' and '.join(sorted(clouds)) or 'no cloud whose prices are known'}.",
        "add the cloud to each cost in that file, for example cloud: aws.",
    )


def _costs(billed: Decimal, effective: Decimal | int) -> dict[str, str]:
    return {"BilledCost": str(billed), "EffectiveCost": str(effective)}


def _consumed(charge: LineCharge, hours: Decimal) -> dict[str, str]:
    """Return GPU hours of nodes with GPUs, and machine hours of others.

    Reserved or committed machines that were not there consume nothing.
    """
    if charge.supply.is_plan:
        # ConsumedQuantity-C-004-C: the unused part of a commitment discount has none.
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
    """Return the cloud for all three columns. FOCUS requires a BilledCost of 0 for another invoice issuer (BilledCost-C-005-C)."""
    return dict.fromkeys(("ProviderName", "PublisherName", "InvoiceIssuerName"), _PROVIDERS[cloud])


def _compute(cloud: Vendor) -> dict[str, str]:
    service = {"ServiceCategory": "Compute", "ServiceSubcategory": "Virtual Machines", "ServiceName": _COMPUTE[cloud]}
    return {**_provider(cloud), **service}


def _sku(supply: Supply) -> dict[str, str]:
    """Return the price book's keys as SKU columns. The book does not have the clouds' own SKU ids."""
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
    account = "" if team in _NO_VALUE else spreadsheet_cell(team)
    return {"SubAccountId": account, "SubAccountName": account, "x_ChargedTo": spreadsheet_cell(team)}


def _tags(**names: str) -> dict[str, str]:
    return {"Tags": json.dumps({name: value for name, value in names.items() if value not in _NO_VALUE})}
