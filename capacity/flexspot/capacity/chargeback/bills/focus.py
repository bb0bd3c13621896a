"""FOCUS 1.0 to 1.3, as AWS and Google Cloud export it.

Columns: https://focus.finops.org/focus-specification/v1-2/ and the samples FOCUS-1.2/focus_sample_costandusage_{aws,gcp}_1000.csv of
github.com/FinOps-Open-Cost-and-Usage-Spec/FOCUS-Sample-Data; AWS's x_UsageType of its FOCUS 1.0 and Google's x_SystemLabels as public
repositories list them (read 2026-11-27). Not tested with an export of a real account.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.machines import Vendor
from flexspot.capacity.chargeback.bills import aws, focus, gcp
from flexspot.capacity.chargeback.bills.entries import BilledPlace, BillError, Bought, Entry, Kind, in_json, moment, number, refuse_another

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


NEEDED = ("billedcost", "billingcurrency", "chargecategory", "chargeperiodstart", "servicename", "regionid")
"""Required columns, in addition to one of PROVIDERS."""

PROVIDERS = ("providername", "serviceprovidername", "invoiceissuername")
"""Columns that may name the cloud. FOCUS 1.4 no longer has the first."""

_USAGE_TYPES = ("x_usagetype", "skumeter", "skuid")
"""Columns in which AWS may have its usage type."""

ALSO = (
    *PROVIDERS,
    "chargeperiodend",
    "chargeclass",
    "chargedescription",
    "commitmentdiscountid",
    "commitmentdiscountstatus",
    "pricingcategory",
    "pricingquantity",
    "pricingunit",
    "consumedquantity",
    "consumedunit",
    "skupricedetails",
    "tags",
    "x_systemlabels",
    *_USAGE_TYPES,
)
"""Optional columns, read where an export has them."""

_MACHINES = frozenset({"amazonec2", "amazon elastic compute cloud", "amazon elastic compute cloud - compute", "compute engine"})
_KINDS = {"tax": Kind.TAX, "credit": Kind.CREDIT, "adjustment": Kind.CORRECTION}
_HOURS = frozenset({"hour", "hours", "hrs"})


def column(name: str) -> str:
    """Return a column's name in lower case; exports differ in their capital letters."""
    return name.strip().lower()


def entries(row: Mapping[str, str]) -> Iterator[Entry]:
    """Yield the entries of a row. Raises BillError."""
    refuse_another(row["billingcurrency"], "BillingCurrency")
    cloud = _cloud(row)
    usd = number(row["billedcost"], "BilledCost")
    start = moment(row["chargeperiodstart"], "ChargePeriodStart")
    end = moment(row.get("chargeperiodend", ""), "ChargePeriodEnd")
    service = row["servicename"].strip() or "(no service)"
    category = row["chargecategory"].strip().lower()
    kind = _KINDS.get(category, Kind.SERVICE)
    commitment = row.get("commitmentdiscountid", "").strip()
    status = row.get("commitmentdiscountstatus", "").strip().lower()
    if row.get("chargeclass", "").strip().lower() == "correction":
        kind = Kind.CORRECTION
    elif commitment and (category == "purchase" or status == "unused"):
        kind = Kind.COMMITMENT
    found = _machine(row, cloud) if kind is Kind.SERVICE and category == "usage" else None
    if found is None:
        what = service if kind is Kind.SERVICE and category == "usage" else f"{service} {category}"
        yield Entry(kind, cloud, what, usd, start=start, end=end)
        return
    place, hours = found
    covered = bool(commitment) or row.get("pricingcategory", "").strip().lower() == "committed"
    yield Entry(Kind.MACHINE, cloud, service, usd, place, hours, covered, _in_cluster(row), start, end)


def _cloud(row: Mapping[str, str]) -> Vendor:
    name = next((row[each].strip() for each in PROVIDERS if row.get(each, "").strip()), "")
    if re.search(r"\b(aws|amazon)\b", name, re.IGNORECASE):
        return Vendor.AWS
    if re.search(r"\b(google|gcp)\b", name, re.IGNORECASE):
        return Vendor.GCP
    raise BillError(f"the provider is {name[:40]!r}; bills of AWS and of Google Cloud can be read")


def _machine(row: Mapping[str, str], cloud: Vendor) -> tuple[BilledPlace, Fraction] | None:
    region = row["regionid"].strip() or "(no region)"
    if cloud is Vendor.AWS:
        for name in _USAGE_TYPES:
            if found := aws.place_of(row.get(name, "").strip(), region):
                place, is_time = found
                # The usage type implies hours; a column of units may use another word for them.
                return place, (_hours(row) or _quantity(row, "Consumed")) if is_time else Fraction(0)
    if row["servicename"].strip().lower() not in _MACHINES:
        return None
    machine = _details(row).get("InstanceType", "").strip()
    if machine and (hours := _hours(row)) is not None:
        dynamic = row.get("pricingcategory", "").strip().lower() == "dynamic"
        return BilledPlace(cloud, region, machine, Bought.SPOT if dynamic else Bought.ON_DEMAND), hours
    if cloud is not Vendor.GCP:
        return None
    # Google's rows are parts of machines, as in its own export.
    return gcp.machine_part(
        "Compute Engine",
        row.get("chargedescription", "").strip(),
        {
            "location_region": region,
            "system_labels": _system_labels(row),
            "usage_pricing_unit": row.get("consumedunit", ""),
            "usage_unit": row.get("consumedunit", ""),
            "usage_amount": row.get("consumedquantity", ""),
            "usage_amount_in_pricing_units": row.get("consumedquantity", ""),
        },
    )


def _hours(row: Mapping[str, str]) -> Fraction | None:
    """Return the hours of the machine, or None if neither quantity is in hours.

    Usage of machines with GPUs may be consumed in GPU hours and priced by the machine's.
    """
    for measured in ("Consumed", "Pricing"):
        if row.get(f"{measured}Unit".lower(), "").strip().lower() in _HOURS:
            return _quantity(row, measured)
    return None


def _quantity(row: Mapping[str, str], measured: str) -> Fraction:
    return Fraction(number(row.get(f"{measured}Quantity".lower(), ""), f"{measured}Quantity"))


def _details(row: Mapping[str, str]) -> dict[str, str]:
    return {key: str(value) for key, value in _object(row, "skupricedetails").items()}


def _system_labels(row: Mapping[str, str]) -> str:
    """Return the system labels with lower-case keys: Google writes Key and Value here."""
    written = row.get("x_systemlabels", "").strip()
    return written.replace('"Key"', '"key"').replace('"Value"', '"value"')


def _in_cluster(row: Mapping[str, str]) -> bool:
    tags = _object(row, "tags")
    return aws.names_cluster(tags) or bool(tags.get(gcp.CLUSTER))


def _object(row: Mapping[str, str], name: str) -> dict[str, object]:
    found = in_json(row, name)
    if found is None:
        return {}
    if isinstance(found, list):
        return {str(each.get("key", "")): each.get("value", "") for each in found if isinstance(each, dict)}
    if not isinstance(found, dict):
        raise BillError(f"{name} is not a JSON object")
    return found


MAX_COLUMNS = 2000
"""Most columns of a bill. Legacy reports have some hundreds, because of tags."""


MAX_EXPANSION = 200
"""Largest ratio of unpacked to compressed size, from 64 MiB on. Real bills unpack to 10 to 40 times their size; deflate can reach 1,000."""


_ALWAYS_ALLOWED = 64 * 2**20


@dataclass(frozen=True)
class BillForm:
    """A kind of bill and how to read it."""

    name: str
    needed: tuple[str, ...]
    """Columns that identify it."""

    also: tuple[str, ...]
    """Columns that are read if present."""

    column: Callable[[str], str]
    """Normalizes a column's name."""

    entries: Callable[[Mapping[str, str]], Iterator[Entry]]
    """Yields the entries of a row."""


AWS = BillForm("AWS Cost and Usage Report", aws.NEEDED, aws.ALSO, aws.column, aws.entries)


FOCUS = BillForm("FOCUS export", focus.NEEDED, focus.ALSO, focus.column, focus.entries)


GOOGLE = BillForm("Google Cloud billing export", gcp.NEEDED, gcp.ALSO, gcp.column, gcp.entries)


FORMS = (AWS, FOCUS, GOOGLE)


def most_unpacked(size: int) -> int:
    """Return the bytes that a compressed bill of `size` bytes may unpack to."""
    return max(_ALWAYS_ALLOWED, size * MAX_EXPANSION)


def form_of(header: Sequence[str]) -> BillForm:
    """Return the form of a file with these columns. Raises BillError with the columns missing from the most similar form."""
    if len(header) > MAX_COLUMNS:
        raise BillError(f"it has {len(header)} columns, implausible for a bill")
    best, missing = FORMS[0], list(FORMS[0].needed)
    for form in FORMS:
        names = [form.column(each) for each in header]
        lacking = [each for each in form.needed if each not in names]
        if not lacking:
            if repeated := sorted({each for each in form.needed if names.count(each) > 1}):
                raise BillError(f"its column {repeated[0]} is there more than once")
            if form is GOOGLE and "credits_amount" in names:
                raise BillError("its credits are unnested, which repeats a row's cost for each of them; export credits as one JSON column")
            return form
        if len(lacking) / len(form.needed) < len(missing) / len(best.needed):
            best, missing = form, lacking
    if len(missing) == len(best.needed):
        names = ", ".join(form.name for form in FORMS)
        raise BillError(
            f"its columns are not those of any bill that can be read ({names}); the first line of a table must name the columns"
        )
    raise BillError(f"it looks like a {best.name}, and these columns are missing: {', '.join(missing)}")
