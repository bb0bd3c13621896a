"""Google Cloud's billing export to BigQuery, exported from there as JSON lines or CSV.

Columns: https://docs.cloud.google.com/billing/docs/how-to/export-data-bigquery-tables/detailed-usage and standard-usage there; rows as
github.com/project-koku/nise generates them (read 2026-11-27). Names of SKUs are in flexspot/capacity/catalog/gcp_skus.yaml. Not tested with
an export of a real project.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any

from flexspot.capacity.catalog.fresh_prices import gcp_gpu_skus
from flexspot.capacity.catalog.machines import Vendor, machines_of
from flexspot.capacity.chargeback.bills.entries import (
    BilledPlace,
    BillError,
    Bought,
    Entry,
    Kind,
    in_json,
    is_in_dollars,
    moment,
    number,
    refuse_another,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NEEDED = ("service_description", "sku_description", "cost", "currency", "credits", "usage_start_time")
"""Required columns."""

ALSO = (
    "usage_end_time",
    "cost_type",
    "currency_conversion_rate",
    "location_region",
    "labels",
    "system_labels",
    "usage_amount",
    "usage_unit",
    "usage_amount_in_pricing_units",
    "usage_pricing_unit",
)
"""Optional columns, read where an export has them."""

FAMILY = "-*"
"""Suffix of the name of a machine family."""

_COMPUTE = "Compute Engine"
_CORES = "compute.googleapis.com/cores"
_MACHINE = "compute.googleapis.com/machine_spec"
CLUSTER = "goog-k8s-cluster-name"
_SECONDS = 3600

_TAKEN = re.compile(r"Licensing Fee|Sole Tenancy|Reserved |Commitment")
_PART = re.compile(
    r"(?:(?:Spot Preemptible|Preemptible|DWS Defined Duration) )?"
    r"(?P<family>[A-Z]\d?[A-Z]?)(?:Plus|Mega|Ultra)? (?:AMD |Arm |Predefined |Custom |Memory-optimized )*(?:Instance )?(?P<part>Core|Ram)\b"
)
_SSD = "SSD backed Local Storage"

_COVERED = ("COMMITTED_USAGE_DISCOUNT", "FEE_UTILIZATION_OFFSET")
_DISCOUNTS = frozenset({"SUSTAINED_USAGE_DISCOUNT", "DISCOUNT", "RESELLER_MARGIN", "SUBSCRIPTION_BENEFIT"})
_COST_TYPES = {"tax": Kind.TAX, "adjustment": Kind.CORRECTION, "rounding_error": Kind.CORRECTION}


def column(name: str) -> str:
    """Return a column's name in one form, whether it was flattened with dots or with underscores."""
    return name.strip().lower().replace(".", "_")


def flat(row: dict[str, Any]) -> dict[str, str]:
    """Flatten a JSON object to a row of text: usage.amount becomes usage_amount, lists stay JSON."""
    found: dict[str, str] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            found.update({column(f"{name}_{inner}"): _text(each) for inner, each in value.items()})
        found[column(name)] = _text(value)
    return found


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def entries(row: Mapping[str, str]) -> Iterator[Entry]:
    """Yield the entries of a row; credits are separate entries. Raises BillError."""
    service, sku = row["service_description"].strip(), row["sku_description"].strip()
    start = moment(row["usage_start_time"], "usage_start_time")
    end = moment(row.get("usage_end_time", ""), "usage_end_time")
    rate = _per_usd(row)
    usd = number(row["cost"], "cost") / rate
    kind = _COST_TYPES.get(row.get("cost_type", "").strip().lower(), Kind.SERVICE)
    if kind is Kind.SERVICE and sku.startswith("Commitment"):
        kind = Kind.COMMITMENT
    found = machine_part(service, sku, row) if kind is Kind.SERVICE else None
    place, hours = found or (None, Fraction(0))
    cluster = place is not None and bool(_labels(row, "labels").get(CLUSTER))
    what = f"{service}: {sku}" if kind is Kind.COMMITMENT else service or "(no service)"
    given = [(name, amount / rate) for name, amount in _credits(row)]
    if place is None:
        yield Entry(kind, Vendor.GCP, what, usd, start=start, end=end)
    else:
        # A commitment may pay for only a part of the row's time.
        taken = min(-sum((amount for name, amount in given if name.startswith(_COVERED)), Decimal(0)), usd)
        share = Fraction(taken) / Fraction(usd) if taken > 0 else Fraction(0)
        if share:
            yield Entry(Kind.MACHINE, Vendor.GCP, what, taken, place, hours * share, True, cluster, start, end)
        if share < 1:
            rest = usd - taken if share else usd
            yield Entry(Kind.MACHINE, Vendor.GCP, what, rest, place, hours * (1 - share), False, cluster, start, end)
    for name, amount in given:
        if place is not None and name.startswith(_COVERED):
            yield Entry(Kind.MACHINE, Vendor.GCP, what, amount, place, Fraction(0), True, cluster, start, end)
        else:
            of = Kind.DISCOUNT if name in _DISCOUNTS or name.startswith(_COVERED) else Kind.CREDIT
            yield Entry(of, Vendor.GCP, f"{service} {name}", amount, start=start, end=end)


def _per_usd(row: Mapping[str, str]) -> Decimal:
    """Return the exchange rate of a row: units of its currency for a US dollar.

    The pages named above say of currency_conversion_rate: "The exchange rate from US dollars to the local currency. That is, cost ÷
    currency_conversion_rate is the cost in US dollars" (copies of them, read 2026-11-28). Amounts of credits are in that currency too.
    """
    if is_in_dollars(row["currency"]):
        return Decimal(1)
    rate = number(row.get("currency_conversion_rate", ""), "currency_conversion_rate")
    if rate <= 0:
        refuse_another(row["currency"], "currency")
    return rate


def machine_part(service: str, sku: str, row: Mapping[str, str]) -> tuple[BilledPlace, Fraction] | None:
    """Return the machine that a part belongs to, and the hours it adds. Only cores add hours, so that memory and GPUs do not count
    again.
    """
    if service != _COMPUTE or _TAKEN.search(sku):
        return None
    region = row.get("location_region", "").strip() or "(no region)"
    spot = "Spot Preemptible" in sku or sku.startswith("Preemptible")
    bought = Bought.SPOT if spot else Bought.FLEX_START if "DWS Defined Duration" in sku else Bought.ON_DEMAND
    part, gpu = _PART.match(sku), _gpu_family(sku)
    if part is None and gpu is None and not sku.startswith(_SSD):
        return None
    labels = _labels(row, "system_labels")
    machine = labels.get(_MACHINE, "").strip()
    if not machine:
        family = gpu if part is None else part["family"].lower()
        if not family:
            return None
        return BilledPlace(Vendor.GCP, region, f"{family}{FAMILY}", bought), _hours(row) if part and part["part"] == "Core" else Fraction(0)
    hours = Fraction(0)
    if part is not None and part["part"] == "Core":
        cores = _cores(machine, labels.get(_CORES, ""))
        hours = _hours(row) / cores
    return BilledPlace(Vendor.GCP, region, machine, bought), hours


def cores_of(machine: str) -> int | None:
    """Return the vCPUs of a machine of the catalog."""
    known = machines_of(Vendor.GCP).get(machine)
    return None if known is None else known.vcpu


def _cores(machine: str, label: str) -> Fraction:
    written = Fraction(number(label, _CORES)) if label.strip() else Fraction(cores_of(machine) or 0)
    if written <= 0:
        raise BillError(f"the number of cores of {machine[:60]} is unknown; the row needs the system label {_CORES}")
    return written


def _hours(row: Mapping[str, str]) -> Fraction:
    """Return the hours of vCPUs: from the pricing unit if that is the hour, otherwise from the seconds used."""
    unit, used = row.get("usage_pricing_unit", "").strip().lower(), row.get("usage_unit", "").strip().lower()
    if unit in {"hour", "hours"} and row.get("usage_amount_in_pricing_units", "").strip():
        return Fraction(number(row["usage_amount_in_pricing_units"], "usage.amount_in_pricing_units"))
    if used in {"seconds", "second"}:
        return Fraction(number(row.get("usage_amount", ""), "usage.amount")) / _SECONDS
    raise BillError("cores are in neither hours (usage.pricing_unit) nor seconds (usage.unit)")


@cache
def _gpu_families() -> tuple[tuple[str, str], ...]:
    """Return pairs of a GPU's name in SKUs and the machine family that has it."""
    return tuple(
        (name, next(each.name.partition("-")[0] for each in machines_of(Vendor.GCP).values() if each.gpu and each.gpu.name == gpu))
        for gpu, name in gcp_gpu_skus()
    )


def _gpu_family(sku: str) -> str | None:
    """Return the machine family of a GPU's SKU. Empty if only a label can tell the machine; None if the SKU is not for a GPU."""
    for name, family in _gpu_families():
        if sku == name or sku.startswith((f"{name} running", f"{name} attached")):
            return family
    return "" if re.search(r"\bGPU\b", sku, re.IGNORECASE) else None


def _credits(row: Mapping[str, str]) -> Iterator[tuple[str, Decimal]]:
    for each in _list(row, "credits"):
        kind = str(each.get("type") or "CREDIT").strip().upper()
        yield kind, number(_text(each.get("amount")), "credits.amount")


def _labels(row: Mapping[str, str], name: str) -> dict[str, str]:
    return {str(each.get("key", "")): _text(each.get("value")) for each in _list(row, name)}


def _list(row: Mapping[str, str], name: str) -> list[dict[str, Any]]:
    found = in_json(row, name)
    if found is None:
        return []
    if isinstance(found, dict):
        found = [{"key": key, "value": value} for key, value in found.items()]
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise BillError(f"{name} is not a JSON list of objects")
    return found
