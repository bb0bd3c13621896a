"""Small bills and reports as files, written without the code that reads them."""

from __future__ import annotations

import csv
import io
import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

START, END = "2026-10-01T00:00:00Z", "2026-11-01T00:00:00Z"


def cur_row(**values: str) -> dict[str, str]:
    """Return usage of a g6.xlarge on Spot for an hour of October, with changed `values` by the end of a column's name."""
    row = {
        "line_item_line_item_type": "Usage",
        "line_item_usage_start_date": "2026-10-05T00:00:00.000Z",
        "line_item_usage_end_date": "2026-10-05T01:00:00.000Z",
        "line_item_product_code": "AmazonEC2",
        "line_item_usage_type": "SpotUsage:g6.xlarge",
        "line_item_usage_amount": "1",
        "line_item_currency_code": "USD",
        "line_item_unblended_cost": "0.5",
        "product_region_code": "us-east-1",
    }
    return _set(row, values)


def focus_row(**values: str) -> dict[str, str]:
    """Return an hour of a g6.xlarge on Spot, with changed `values`."""
    row = {
        "ProviderName": "AWS",
        "ChargePeriodStart": "2026-10-05T00:00:00Z",
        "ChargePeriodEnd": "2026-10-05T01:00:00Z",
        "ChargeCategory": "Usage",
        "BilledCost": "0.5",
        "PricingCategory": "Dynamic",
        "BillingCurrency": "USD",
        "ConsumedQuantity": "1",
        "ConsumedUnit": "Hours",
        "ServiceName": "AmazonEC2",
        "SkuPriceDetails": '{"InstanceType":"g6.xlarge","CoreCount":4}',
        "RegionId": "us-east-1",
    }
    return _set(row, values)


def gcp_row(sku: str, cost: str, vcpu_hours: str = "0", *, machine: str = "g2-standard-8", **more: Any) -> dict[str, Any]:
    """Return a row of the detailed export for a part of a machine."""
    spec = [{"key": "compute.googleapis.com/machine_spec", "value": machine}, {"key": "compute.googleapis.com/cores", "value": "8"}]
    return {
        "service": {"id": "6F81-5844-456A", "description": "Compute Engine"},
        "sku": {"id": "0000-0000-0000", "description": sku},
        "usage_start_time": "2026-10-05 00:00:00 UTC",
        "usage_end_time": "2026-10-05 01:00:00 UTC",
        "location": {"region": "us-central1"},
        "labels": [{"key": "goog-k8s-cluster-name", "value": "prod"}],
        "system_labels": spec if machine else [],
        "cost": float(cost),
        "currency": "USD",
        "usage": {"amount": 1, "unit": "seconds", "amount_in_pricing_units": float(vcpu_hours), "pricing_unit": "hour"},
        "credits": [],
        "invoice": {"month": "202610"},
        "cost_type": "regular",
    } | more


def _set(row: dict[str, str], values: dict[str, str]) -> dict[str, str]:
    for end, value in values.items():
        [name] = [each for each in row if each in {end, f"line_item_{end}"}] or [end]
        row[name] = value
    return row


def table(rows: Iterable[dict[str, str]]) -> str:
    """Return CSV with the columns of all rows."""
    found, text = list(rows), io.StringIO()
    writer = csv.DictWriter(text, list(dict.fromkeys(name for row in found for name in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(found)
    return text.getvalue()


def node(  # noqa: PLR0913 -- the properties of nodes
    machine: str = "g6.xlarge",
    usd: str = "50.00",
    hours: int = 100,
    *,
    cloud: str = "aws",
    region: str = "us-east-1",
    capacity_type: str = "spot",
    nodes: int = 1,
    unpriced: int = 0,
    unused: int = 0,
) -> dict[str, Any]:
    """Return nodes as in a report, with times in hours."""
    return {
        "cloud": cloud,
        "region": region,
        "machine": machine,
        "capacity_type": capacity_type,
        "nodes": nodes,
        "node_seconds": hours * 3600,
        "unpriced_seconds": unpriced * 3600,
        "unused_seconds": unused * 3600,
        "usd": usd,
    }


def report_file(folder: Path, *nodes: dict[str, Any], **more: Any) -> Path:
    """Write a report of October."""
    path = folder / "report.json"
    written = {
        "period": {"name": "2026-10", "timezone": "UTC", "from": START, "to": END},
        "step_seconds": 60,
        "complete": True,
        "node_usd": str(sum((Decimal(each["usd"]) for each in nodes), Decimal("0.00"))),
        "nodes": list(nodes),
    } | more
    path.write_text(json.dumps(written))
    return path
