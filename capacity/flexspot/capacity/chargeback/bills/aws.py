"""AWS's Cost and Usage Report: CUR 2.0 of Data Exports, and the legacy report, which has the same columns under other names.

Columns and line item types: https://docs.aws.amazon.com/cur/latest/userguide/table-dictionary-cur2.html and Lineitem-columns.html there;
the header of a legacy report as github.com/cloud-carbon-footprint/cloud-carbon-footprint has it in its tests (read 2026-11-27). Not tested
with a report of a real account.
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
"""Required columns."""

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
"""Optional columns, read where a report has them."""

_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def column(name: str) -> str:
    """Return a legacy column's name in the form of CUR 2.0: lineItem/UsageType is line_item_usage_type."""
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
"""Usage kinds whose hours are not counted. The machines in a capacity reservation are BoxUsage and the rest of it is UnusedBox, so the
reservation's own hours would count twice.
"""

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
"""Usage that a reservation or a plan pays for: it costs nothing here, or the plan's negation deducts it again."""

_CLUSTER_KEYS = re.compile(
    r"(?:user_)?(?:aws_eks_cluster_name|eks_cluster_name|eks_eks_cluster_name|karpenter_sh_nodepool|kubernetes_io_cluster_.+)"
)


def place_of(usage_type: str, region: str) -> tuple[BilledPlace, bool] | None:
    """Return the machine of an EC2 usage type and whether its amount is in hours of that machine. None for any other usage type."""
    if fee := _AUTO_MODE.fullmatch(usage_type):
        return BilledPlace(Vendor.AWS, region, fee["machine"], Bought.AUTO_MODE), True
    if (match := _USAGE.fullmatch(usage_type)) is None:
        return None
    bought = Bought.SPOT if match["kind"] == "SpotUsage" else Bought.ON_DEMAND
    return BilledPlace(Vendor.AWS, region, match["machine"], bought), match["kind"] not in _NO_TIME


def entries(row: Mapping[str, str]) -> Iterator[Entry]:
    """Yield the entries of a row. A net cost that differs adds a separate entry for the discount. Raises BillError."""
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
            # Disks, gateways and traffic all belong to this product.
            what = f"AmazonEC2 {_FIRST_WORD.sub('', _PREFIX.sub('', usage))}".strip()
        yield Entry(kind, Vendor.AWS, what, usd, start=start, end=end, identity=identity)
    else:
        place, is_time = found
        hours = Fraction(number(row["line_item_usage_amount"], "line_item_usage_amount")) if is_time else Fraction(0)
        if written == "SavingsPlanNegation":
            # Its hours are those of the usage that it deducts.
            hours = Fraction(0)
        covered = written in _COVERED
        yield Entry(Kind.MACHINE, Vendor.AWS, what, usd, place, hours, covered, _in_cluster(row), start, end, identity)
    if (less := _net(row, usd, kind)) is not None:
        yield Entry(Kind.DISCOUNT, Vendor.AWS, f"{product} net of discounts", less, start=start, end=end)


def _net(row: Mapping[str, str], usd: Decimal, kind: Kind) -> Decimal | None:
    """Return the net cost minus the cost, or None if they are equal.

    A discount with a separate row is contained in the net cost of the discounted row, so its own net cost is 0.
    """
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
    """Return whether one of the tags identifies a cluster, in any spelling of its key that exports use."""
    return any(value and _CLUSTER_KEYS.fullmatch(re.sub(r"[^a-z0-9]+", "_", key.lower())) for key, value in tags.items())


def _map(row: Mapping[str, str], name: str) -> dict[str, str]:
    """Parse a map column of CUR 2.0, which is JSON."""
    found = in_json(row, name)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise BillError(f"{name} is no map in JSON")
    return {str(key): str(value) for key, value in found.items() if value is not None}
