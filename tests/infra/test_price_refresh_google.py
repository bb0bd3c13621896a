"""`flexspot prices refresh` with replies of Google's billing catalog in the JSON of its API, without a network."""

from __future__ import annotations

import io
import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import google.auth
import pytest
import requests
from google.auth.credentials import AnonymousCredentials
from google.auth.transport.requests import AuthorizedSession
from price_refresh_command import refresh

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.fresh_prices import Sku, SkuPrices, skus_of_page
from flexspot.capacity.catalog.machines import Vendor, machines_of
from flexspot.capacity.catalog.price_book import prices_of

if TYPE_CHECKING:
    from pathlib import Path

SPOT, ON_DEMAND = CapacityType.SPOT, CapacityType.ON_DEMAND


def google_sku(description: str, nanos: int, *regions: str, unit: str = "h", currency: str = "USD") -> dict[str, Any]:
    """Return an SKU in the JSON of the Cloud Billing Catalog API, with the relevant parts only."""
    tier = {"startUsageAmount": 0, "unitPrice": {"currencyCode": currency, "units": "0", "nanos": nanos}}
    price = {"effectiveTime": "2026-11-20T00:00:00Z", "pricingExpression": {"usageUnit": unit, "tieredRates": [tier]}}
    return {"skuId": "0000-0000-0000", "description": description, "serviceRegions": list(regions), "pricingInfo": [price]}


GOOGLE: list[dict[str, Any]] = [
    google_sku("G2 Instance Core running in Americas", 24_988_000, "us-central1", "us-east1"),
    google_sku("G2 Instance Ram running in Americas", 2_927_000, "us-central1", "us-east1", unit="GiBy.h"),
    google_sku("Nvidia L4 GPU running in Americas", 560_004_000, "us-central1", "us-east1"),
    google_sku("Commitment v1: G2 Cpu in Americas for 1 Year", 1, "us-central1"),
    google_sku("Spot Preemptible G2 Instance Core running in Americas", 9_000_000, "us-central1"),
    google_sku("Spot Preemptible G2 Instance Ram running in Americas", 1_000_000, "us-central1", unit="GiBy.h"),
    google_sku("Nvidia L4 GPU attached to Spot Preemptible VMs running in Americas", 200_000_000, "us-central1"),
    google_sku("Nvidia L4 GPU running in Europe", 1, "us-central1", currency="EUR"),
    google_sku("Nvidia L4 GPU running in Nowhere", 1, "us-central1") | {"pricingInfo": []},
]


# Flex-start as on a bill of 2025-08-16 (zenn.dev). Descriptions as in the API; those other than flex-start from Spare Cores' tests.
H100: list[dict[str, Any]] = [
    google_sku("A3 Instance Core running in Americas", 29_327_000, "us-central1"),
    google_sku("A3 Instance Ram running in Americas", 2_553_000, "us-central1", unit="GiBy.h"),
    google_sku("Nvidia H100 80GB GPU running in Americas", 795_970_000, "us-central1"),
    google_sku("SSD backed Local Storage", 80_000_000, "us-central1", unit="GiBy.mo"),
    google_sku("SSD backed Local Storage in Netherlands", 88_000_000, "europe-west4", unit="GiBy.mo"),
    google_sku("DWS Defined Duration A3 Core running in Americas", 10_934_000, "us-central1"),
    google_sku("DWS Defined Duration A3 Ram running in Americas", 952_000, "us-central1", unit="GiBy.h"),
    google_sku("Nvidia H100 80GB GPU attached to DWS Defined Duration VMs running in Americas", 200_761_000, "us-central1"),
    google_sku("DWS Defined Duration SSD backed Local Storage running in Americas", 80_000_000, "us-central1", unit="GiBy.mo"),
    google_sku("Reserved Nvidia H100 80GB GPU in Americas in Calendar Mode", 4, "us-central1"),
    google_sku("Balanced PD Capacity", 100_000_000, "us-central1", unit="GiBy.mo"),
    google_sku("Balanced PD Capacity in Netherlands", 110_000_000, "europe-west4", unit="GiBy.mo"),
    google_sku("Regional Balanced PD Capacity", 200_000_000, "us-central1", unit="GiBy.mo"),
]
for number, dollars in ((2, "9"), (7, "4")):
    H100[number]["pricingInfo"][0]["pricingExpression"]["tieredRates"][0]["unitPrice"]["units"] = dollars


@pytest.fixture
def catalog(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the list of the API's pages, one per request, or errors to raise. Credentials of this machine are hidden."""
    pages: list[Any] = [{"skus": GOOGLE[:4], "nextPageToken": "more"}, {"skus": GOOGLE[4:]}]

    def get(_session: Any, url: str, *, params: dict[str, Any], timeout: float) -> requests.Response:
        assert url == "https://cloudbilling.googleapis.com/v1/services/6F81-5844-456A/skus"
        assert timeout > 0
        assert params["pageToken"] in {"", "more"}
        page = pages.pop(0)
        response = requests.Response()
        response.status_code = page if isinstance(page, int) else 200
        response.raw = io.BytesIO(json.dumps(page).encode())
        return response

    def default(*, scopes: list[str]) -> tuple[AnonymousCredentials, str]:
        assert scopes == ["https://www.googleapis.com/auth/cloud-billing.readonly"]
        return AnonymousCredentials(), "a-project"

    monkeypatch.setattr(google.auth, "default", default)
    monkeypatch.setattr(AuthorizedSession, "get", get)
    return pages


def test_machines_are_the_sums_of_their_parts_and_missing_prices_are_reported(catalog: list[Any], tmp_path: Path) -> None:
    """Flex-start is compared with the sum in the shipped price book, which was calculated from that bill by hand."""
    catalog[1] = {"skus": [*GOOGLE[4:], *H100]}
    own = tmp_path / "gcp.yaml"
    shipped = prices_of(Vendor.GCP).find("a3-highgpu-8g", "us-central1", CapacityType.FLEX_START)
    places = ("--region", "us-central1", "--region", "europe-west4")
    machines = ("--machine", "g2-standard-8", "--machine", "a3-highgpu-8g", "--machine", "a3-highgpu-1g")
    shown = refresh("--cloud", "gcp", "--file", own, *places, *machines)

    assert catalog == []
    book = prices_of(Vendor.GCP).overridden_by(own)
    # 8 cores, 32 GiB and one L4.
    assert book.prices["g2-standard-8", "us-central1", ON_DEMAND].usd_per_hour == Decimal("0.853572")
    assert book.prices["g2-standard-8", "us-central1", SPOT].usd_per_hour == Decimal("0.304")
    assert shipped is not None
    assert book.prices["a3-highgpu-8g", "us-central1", CapacityType.FLEX_START].usd_per_hour == shipped.usd_per_hour
    by_hand = 208 * Decimal("0.029327") + 1872 * Decimal("0.002553") + 8 * Decimal("9.79597") + 6000 * Decimal("0.08") / 730
    assert book.prices["a3-highgpu-8g", "us-central1", ON_DEMAND].usd_per_hour == by_hand.quantize(Decimal("0.000001"))
    assert "not found, so unchanged: spot price of a3-highgpu-8g in us-central1" in shown
    assert "spot price of a3-highgpu-1g in us-central1" in shown
    assert "on-demand price of a3-highgpu-1g" not in shown, "it is not sold on demand, so that nothing is missing"
    assert ("a3-highgpu-1g", "us-central1", ON_DEMAND) not in book.prices
    assert "not found, so unchanged: flex-start price of a3-highgpu-8g in europe-west4" in shown
    disks = {(item.value, region): row.usd for (item, region), row in book.services.items() if row.source.startswith("gcp.yaml")}
    assert disks == {
        ("pd-balanced", "us-central1"): Decimal("0.1"),
        ("pd-balanced", "europe-west4"): Decimal("0.11"),
        ("local-ssd", "us-central1"): Decimal("0.08"),
        ("local-ssd", "europe-west4"): Decimal("0.088"),
    }


@pytest.mark.parametrize(
    "page,kind", [(403, "HTTP 403"), ({"skus": [{"pricingInfo": [3]}]}, "MalformedCatalogError"), ([], "MalformedCatalogError")]
)
def test_a_refusal_of_google_is_shown_by_its_kind(catalog: list[Any], page: Any, kind: str, tmp_path: Path) -> None:
    catalog[:] = [page]

    assert f"Google returned no prices: {kind}" in refresh(
        "--cloud", "gcp", "--file", tmp_path / "gcp.yaml", "--region", "us-central1", code=1
    )


@pytest.mark.parametrize(
    "machine,region,bought",
    [
        ("g2-standard-8", "us-east1", SPOT),
        ("g2-standard-8", "us-central1", CapacityType.FLEX_START),
        ("n1-standard-8", "us-central1", ON_DEMAND),
        ("a2-ultragpu-1g", "us-central1", ON_DEMAND),
    ],
)
def test_a_machine_one_of_whose_parts_has_no_price_has_none(machine: str, region: str, bought: CapacityType) -> None:
    assert SkuPrices(skus_of_page({"skus": GOOGLE})).of_machine(machines_of(Vendor.GCP)[machine], region, bought) is None


def test_the_gpu_of_a3_mega_has_another_name_on_spot() -> None:
    """A cent per core, a tenth of a cent per GiB, eight GPUs, and 6,000 GiB of local SSD at 0.073 a month."""
    skus = [
        Sku(f"{prefix}{part} running in Americas", ("us-central1",), unit, Decimal(usd))
        for prefix in ("", "Spot Preemptible ")
        for part, unit, usd in (("A3Plus Instance Core", "h", "0.01"), ("A3Plus Instance Ram", "GiBy.h", "0.001"))
    ]
    skus += [
        Sku("Nvidia H100 80GB Plus GPU running in Americas", ("us-central1",), "h", Decimal(10)),
        Sku("Nvidia H100 80GB Mega GPU attached to Spot Preemptible VMs running in Americas", ("us-central1",), "h", Decimal(3)),
        Sku("SSD backed Local Storage", ("us-central1",), "GiBy.mo", Decimal("0.073")),
        Sku("SSD backed Local Storage attached to Spot Preemptible VMs", ("us-central1",), "GiBy.mo", Decimal("0.0365")),
    ]
    prices, machine = SkuPrices(skus), machines_of(Vendor.GCP)["a3-megagpu-8g"]

    assert prices.of_machine(machine, "us-central1", ON_DEMAND) == Decimal("2.08") + Decimal("1.872") + 80 + Decimal("0.6")
    assert prices.of_machine(machine, "us-central1", SPOT) == Decimal("2.08") + Decimal("1.872") + 24 + Decimal("0.3")
    assert prices.of_machine(machine, "us-central1", CapacityType.FLEX_START) is None


def test_a_part_with_two_prices_has_none() -> None:
    skus = [
        Sku(f"{part} running in {place}", ("us-central1",), "h", usd)
        for part in ("E2 Instance Core", "E2 Instance Ram")
        for place, usd in (("Americas", Decimal(1)), ("Iowa", Decimal(2)))
    ]

    assert SkuPrices(skus).of_machine(machines_of(Vendor.GCP)["e2-standard-4"], "us-central1", ON_DEMAND) is None
