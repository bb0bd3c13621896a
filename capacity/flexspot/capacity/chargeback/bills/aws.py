"""AWS's Cost and Usage Report: CUR 2.0 of Data Exports, and the legacy one, whose columns have other names for the same.

Columns and line item types: https://docs.aws.amazon.com/cur/latest/userguide/table-dictionary-cur2.html and Lineitem-columns.html there;
the header of a legacy report as github.com/cloud-carbon-footprint/cloud-carbon-footprint has it in its tests (read 2026-11-27). No report
of an account of our own has been read.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.machines import Vendor
from flexspot.capacity.chargeback.bills.entries import BilledPlace, BillError, Bought, Entry, Kind, in_json, moment, number, refuse_another

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from decimal import Decimal

NEEDED = (
    "line_item_line_item_type",
    "line_item_product_code",
    "line_item_usage_type",
    "line_item_usage_amount",
    "line_item_unblended_cost",
    "line_item_currency_code",
    "line_item_usage_start_date",
)
"""The columns without which nothing can be said."""

_CLUSTER_TAGS = (
    "resource_tags_aws_eks_cluster_name",
    "resource_tags_user_eks_cluster_name",
    "resource_tags_user_eks_eks_cluster_name",
    "resource_tags_user_karpenter_sh_nodepool",
)

ALSO = (
    "line_item_usage_end_date",
    "line_item_net_unblended_cost",
    "line_item_availability_zone",
    "identity_line_item_id",
    "identity_time_interval",
    "product_region_code",
    "product_region",
    "product",
    "resource_tags",
    *_CLUSTER_TAGS,
)
"""The columns that are read where a report has them."""

_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def column(name: str) -> str:
    """A legacy column's name in the form of CUR 2.0: lineItem/UsageType is line_item_usage_type."""
    if "/" not in name:
        return name.strip().lower()
    return re.sub(r"[^a-z0-9]+", "_", _BOUNDARY.sub("_", name.strip()).lower())


_USAGE = re.compile(
    r"(?:[A-Z0-9]{2,6}-)?"
    r"(?P<kind>BoxUsage|DedicatedUsage|SpotUsage|UnusedBox|UnusedDed|Reservation|DedicatedRes|HeavyUsage):(?P<machine>[a-z0-9-]+\.[a-z0-9-]+)"
)
_AUTO_MODE = re.compile(r"(?:[A-Z0-9]{2,6}-)?EKS-Auto:(?P<machine>[a-z0-9-]+\.[a-z0-9-]+?)-management-hours")

_PREFIX = re.compile(r"[A-Z]{2,4}[A-Z0-9]?\d?-(?=[A-Z])")
_FIRST_WORD = re.compile(r"[:\-.].*", re.DOTALL)

_NO_TIME = frozenset({"Reservation", "DedicatedRes", "HeavyUsage"})
"""All of a capacity reservation: the machines in it are BoxUsage, the rest of it is UnusedBox, so its own hours would count twice."""

_KINDS = {
    "RIFee": Kind.COMMITMENT,
    "SavingsPlanRecurringFee": Kind.COMMITMENT,
    "SavingsPlanUpfrontFee": Kind.COMMITMENT,
    "Credit": Kind.CREDIT,
    "Refund": Kind.CORRECTION,
    "Tax": Kind.TAX,
    "Discount": Kind.DISCOUNT,
    "BundledDiscount": Kind.DISCOUNT,
    "EdpDiscount": Kind.DISCOUNT,
    "PrivateRateDiscount": Kind.DISCOUNT,
    "SppDiscount": Kind.DISCOUNT,
    "RiVolumeDiscount": Kind.DISCOUNT,
    "DistributorDiscount": Kind.DISCOUNT,
}
_USED = frozenset({"Usage", "DiscountedUsage", "SavingsPlanCoveredUsage", "SavingsPlanNegation"})
_COVERED = _USED - {"Usage"}
"""Usage that a reservation or a plan pays: it costs nothing here, or is taken off again by the plan's negation."""

_CLUSTER_KEYS = re.compile(
    r"(?:user_)?(?:aws_eks_cluster_name|eks_cluster_name|eks_eks_cluster_name|karpenter_sh_nodepool|kubernetes_io_cluster_.+)"
)


def place_of(usage_type: str, region: str) -> tuple[BilledPlace, bool] | None:
    """The machine that a usage type of EC2 is of, and whether its amount is hours of that machine; None: it is of none."""
    if fee := _AUTO_MODE.fullmatch(usage_type):
        return BilledPlace(Vendor.AWS, region, fee["machine"], Bought.AUTO_MODE), True
    if (match := _USAGE.fullmatch(usage_type)) is None:
        return None
    bought = Bought.SPOT if match["kind"] == "SpotUsage" else Bought.ON_DEMAND
    return BilledPlace(Vendor.AWS, region, match["machine"], bought), match["kind"] not in _NO_TIME


def entries(row: Mapping[str, str]) -> Iterator[Entry]:
    """What a row says; its discounts, where its net cost is another, as an entry of its own. Raises BillError."""
    refuse_another(row["line_item_currency_code"], "line_item_currency_code")
    written = row["line_item_line_item_type"].strip()
    usage = row["line_item_usage_type"].strip()
    product = row["line_item_product_code"].strip() or "(no product)"
    usd = number(row["line_item_unblended_cost"], "line_item_unblended_cost")
    start = moment(row["line_item_usage_start_date"], "line_item_usage_start_date")
    end = moment(row.get("line_item_usage_end_date", ""), "line_item_usage_end_date")
    kind = _KINDS.get(written, Kind.SERVICE)
    found = place_of(usage, _region(row)) if written in _USED and product in {"AmazonEC2", "AmazonEKS"} else None
    what = f"{product} {written}" if kind is not Kind.SERVICE or written not in _USED else product
    own = row.get("identity_line_item_id", "").strip()
    identity = f"{own} {row.get('identity_time_interval', '').strip()} {usage} {written} {usd}" if own else ""
    if found is None:
        if what == "AmazonEC2":
            # Disks, gateways and traffic are all of this product.
            what = f"AmazonEC2 {_FIRST_WORD.sub('', _PREFIX.sub('', usage))}".strip()
        yield Entry(kind, Vendor.AWS, what, usd, start=start, end=end, identity=identity)
    else:
        place, is_time = found
        hours = Fraction(number(row["line_item_usage_amount"], "line_item_usage_amount")) if is_time else Fraction(0)
        if written == "SavingsPlanNegation":
            # Its time is that of the usage which it takes off again.
            hours = Fraction(0)
        covered = written in _COVERED
        yield Entry(Kind.MACHINE, Vendor.AWS, what, usd, place, hours, covered, _in_cluster(row), start, end, identity)
    if (less := _net(row, usd, kind)) is not None:
        yield Entry(Kind.DISCOUNT, Vendor.AWS, f"{product} net of discounts", less, start=start, end=end)


def _net(row: Mapping[str, str], usd: Decimal, kind: Kind) -> Decimal | None:
    """By how much the net cost is another. A discount with a row of its own is in the net cost of what it is off, and is 0 itself."""
    written = row.get("line_item_net_unblended_cost")
    if written is None or (not written.strip() and kind is not Kind.DISCOUNT):
        return None
    less = number(written, "line_item_net_unblended_cost") - usd
    return less or None


def _region(row: Mapping[str, str]) -> str:
    for name in ("product_region_code", "product_region"):
        if region := row.get(name, "").strip():
            return region
    product = _map(row, "product")
    zone = row.get("line_item_availability_zone", "").strip()
    return product.get("region_code") or product.get("region") or re.sub(r"(?<=\d)[a-z]$", "", zone) or "(no region)"


def _in_cluster(row: Mapping[str, str]) -> bool:
    if any(row.get(each, "").strip() for each in _CLUSTER_TAGS):
        return True
    return names_cluster(_map(row, "resource_tags"))


def names_cluster(tags: Mapping[str, object]) -> bool:
    """Whether one of the tags is a cluster's, in whatever way an export writes its key."""
    return any(value and _CLUSTER_KEYS.fullmatch(re.sub(r"[^a-z0-9]+", "_", key.lower())) for key, value in tags.items())


def _map(row: Mapping[str, str], name: str) -> dict[str, str]:
    """A column of CUR 2.0 that holds a map, as JSON."""
    found = in_json(row, name)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise BillError(f"{name} is no map in JSON")
    return {str(key): str(value) for key, value in found.items() if value is not None}
