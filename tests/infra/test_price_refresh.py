"""`flexspot prices refresh`: AWS through botocore's own models of its APIs, Google in the JSON of its API, neither over a network."""

from __future__ import annotations

import io
import json
import sys
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import boto3
import google.auth
import pytest
import requests
from botocore.stub import ANY, Stubber
from google.auth.credentials import AnonymousCredentials
from google.auth.transport.requests import AuthorizedSession
from typer.testing import CliRunner

from capacity.catalog.capacity_type import CapacityType
from capacity.catalog.fresh_prices import Sku, SkuPrices, on_demand_usd, product_filters, skus_of_page, spot_usd
from capacity.catalog.machines import Cloud, machines_of
from capacity.catalog.price_book import ServiceItem, prices_of
from capacity.values.errors import ExplainedError
from infra.cli import price_refresh
from infra.cli.app import app
from infra.cli.stacks import planned, stack_names

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SPOT, ON_DEMAND = CapacityType.SPOT, CapacityType.ON_DEMAND

OWN = """\
cloud: aws
sources:
  contract: {citation: our contract with AWS, as_of: 2026-01-01, verified: true}
  old-list: {citation: what the list said in spring, as_of: 2026-04-01, verified: true}
services:
  - {item: cluster, usd: "0.09", source: contract}
prices:
  - {machine: g6.xlarge, region: us-east-1, capacity_type: on-demand, usd_per_hour: "0.90", source: old-list}
  - {machine: p5.48xlarge, region: eu-west-1, capacity_type: reserved, usd_per_hour: "31.00", source: contract}
"""


def refresh(*arguments: str | Path, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["prices", "refresh", *map(str, arguments)], env={"COLUMNS": "160"})
    if isinstance(result.exception, ExplainedError):
        assert result.exception.exit_code == code
        return str(result.exception)
    assert result.exit_code == code, result.output
    return result.output


def product(usd: str, unit: str = "Hrs") -> str:
    """As GetProducts has it, in the parts that count."""
    dimension = {"unit": unit, "pricePerUnit": {"USD": usd}, "description": f"${usd} per On Demand Linux g6.xlarge Instance Hour"}
    attributes = {"instanceType": "g6.xlarge", "operatingSystem": "Linux", "tenancy": "Shared"}
    return json.dumps({"product": {"attributes": attributes}, "terms": {"OnDemand": {"A.B": {"priceDimensions": {"A.B.C": dimension}}}}})


def spot(zone: str, usd: str, hour: int = 1, machine: str = "g6.xlarge") -> dict[str, Any]:
    return {
        "AvailabilityZone": zone,
        "InstanceType": machine,
        "ProductDescription": "Linux/UNIX",
        "SpotPrice": usd,
        "Timestamp": datetime(2026, 11, 22, hour, tzinfo=UTC),
    }


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> dict[str, Stubber]:
    """Clients that answer from stubs; what is asked of them and answered is checked against the APIs' models."""
    options: dict[str, Any] = {"aws_access_key_id": "AKIAEXAMPLE", "aws_secret_access_key": "example-secret", "region_name": "us-east-1"}
    library: Any = boto3
    clients: dict[str, Any] = {service: library.client(service, **options) for service in ("pricing", "ec2")}
    stubs = {name: Stubber(client) for name, client in clients.items()}
    for stub in stubs.values():
        stub.activate()

    def client(service: str, *, region_name: str) -> Any:
        assert region_name == "us-east-1"
        return clients[service]

    monkeypatch.setattr(boto3, "client", client)
    return stubs


def usage(usage_type: str, unit: str, *tiers: tuple[str, str]) -> str:
    """A product of GetProducts that is no machine: its usage type, and its prices from so much a month on."""
    dimensions = {
        f"A.B.{begin}": {"unit": unit, "beginRange": begin, "endRange": "Inf", "pricePerUnit": {"USD": usd}} for begin, usd in tiers
    }
    return json.dumps(
        {
            "product": {"attributes": {"usagetype": usage_type, "regionCode": "us-east-1"}},
            "terms": {"OnDemand": {"A.B": {"priceDimensions": dimensions}}},
        }
    )


Services = dict[tuple[str, str | None], list[str]]

SERVICES: Services = {
    ("AmazonEKS", None): [
        usage("USE1-AmazonEKS-Hours:perCluster", "Hours", ("0", "0.11")),
        usage("USE1-AmazonEKS-Hours:extendedSupport", "Hrs", ("0", "0.50")),
    ],
    ("AmazonEC2", "NAT Gateway"): [
        usage("NatGateway-Hours", "Hrs", ("0", "0.046")),
        usage("RegionalNatGateway-Hours", "Hrs", ("0", "0.09")),
        usage("NatGateway-Bytes", "GB", ("0", "0.045")),
    ],
    ("AmazonVPC", None): [
        usage("USE1-PublicIPv4:InUseAddress", "Hrs", ("0", "0.005")),
        usage("USE1-PublicIPv4:IdleAddress", "Hrs", ("0", "0.007")),
    ],
    ("AmazonVPC", "VpcEndpoint"): [usage("VpcEndpoint-Hours", "Hrs", ("0", "0.01"), ("100000", "0.008"))],
    ("awskms", None): [usage("us-east-1-KMS-Keys", "Keys", ("0", "1.0000000000"))],
    ("AWSELB", "Load Balancer-Network"): [
        usage("LoadBalancerUsage", "Hrs", ("0", "0.0225")),
        usage("TS-LoadBalancerUsage", "Hrs", ("0", "0.0056")),
    ],
    ("AmazonEC2", "Storage"): [
        usage("EBS:VolumeUsage.gp3", "GB-Mo", ("0", "0.08")),
        usage("EBS:VolumeUsage.gp2", "GB-Mo", ("0", "0.10")),
    ],
    ("AmazonEC2", "System Operation"): [usage("EBS:VolumeP-IOPS.gp3", "IOPS-Mo", ("0", "0.005"))],
    ("AmazonEC2", "Provisioned Throughput"): [usage("EBS:VolumeP-Throughput.gp3", "GiBps-mo", ("0", "40.9600000000"))],
    ("AmazonS3", "Storage"): [
        usage("TimedStorage-ByteHrs", "GB-Mo", ("0", "0.023"), ("51200", "0.022")),
        usage("TimedStorage-INT-FA-ByteHrs", "GB-Mo", ("0", "0.023")),
    ],
    ("AmazonEFS", "Storage"): [
        usage("TimedStorage-ByteHrs", "GB-Mo", ("0", "0.30")),
        usage("USE1-TimedStorage-ByteHrs", "GB-Mo", ("0", "0.16")),
    ],
}
"""What is asked for, in that order. The unit of a cluster is wrong, and of EFS there are two prices."""


def answer_with(
    aws: dict[str, Stubber],
    list_price: list[str],
    history: list[dict[str, Any]],
    services: dict[tuple[str, str | None], list[str]] | None = None,
) -> None:
    asked = {"InstanceTypes": ["g6.xlarge"], "ProductDescriptions": ["Linux/UNIX"], "StartTime": ANY}
    aws["ec2"].add_response("describe_spot_price_history", {"SpotPriceHistory": history}, asked)
    filters = product_filters("g6.xlarge", "us-east-1")
    aws["pricing"].add_response(
        "get_products",
        {"FormatVersion": "aws_v1", "PriceList": list_price},
        {"ServiceCode": "AmazonEC2", "FormatVersion": "aws_v1", "Filters": filters},
    )
    for service, family in SERVICES:
        asked_of = [{"Type": "TERM_MATCH", "Field": "regionCode", "Value": "us-east-1"}]
        asked_of += [{"Type": "TERM_MATCH", "Field": "productFamily", "Value": family}] if family else []
        aws["pricing"].add_response(
            "get_products",
            {"FormatVersion": "aws_v1", "PriceList": (services or {}).get((service, family), [])},
            {"ServiceCode": service, "FormatVersion": "aws_v1", "Filters": asked_of},
        )


def test_fresh_prices_replace_their_rows_and_leave_all_others(aws: dict[str, Stubber], tmp_path: Path) -> None:
    own = tmp_path / "prices.yaml"
    own.write_text(OWN)
    answer_with(aws, [product("0.8048000000")], [spot("us-east-1a", "0.31"), spot("us-east-1b", "0.29"), spot("us-east-1-bos-1a", "0.5")])
    shown = refresh("--cloud", "aws", "--file", own, "--region", "us-east-1", "--machine", "g6.xlarge")

    assert "-10.6 %" in shown
    assert "new" in shown
    book = prices_of(Cloud.AWS).overridden_by(own)
    found = {key: row.usd_per_hour for key, row in book.prices.items() if row.source.startswith("prices.yaml")}
    assert found == {
        ("g6.xlarge", "us-east-1", ON_DEMAND): Decimal("0.8048"),
        ("g6.xlarge", "us-east-1", SPOT): Decimal("0.29"),
        ("p5.48xlarge", "eu-west-1", CapacityType.RESERVED): Decimal("31.00"),
    }
    text = own.read_text()
    assert "old-list" not in text
    assert "{item: cluster, usd: '0.09', source: contract}" in text, "what AWS did not answer with is as it was"
    assert [path.name for path in tmp_path.iterdir()] == ["prices.yaml"]

    answer_with(aws, [product("0.8048")], [spot("us-east-1a", "0.31"), spot("us-east-1b", "0.29")])
    assert "no price differs" in refresh("--cloud", "aws", "--file", own, "--region", "us-east-1", "--machine", "g6.xlarge")
    assert own.read_text() == text


def test_services_are_refreshed_with_the_machines_and_what_cannot_be_told_is_left(aws: dict[str, Stubber], tmp_path: Path) -> None:
    own = tmp_path / "prices.yaml"
    answer_with(aws, [product("0.8048")], [], SERVICES)
    shown = refresh("--cloud", "aws", "--file", own, "--region", "us-east-1", "--machine", "g6.xlarge")

    for stub in aws.values():
        stub.assert_no_pending_responses()
    book = prices_of(Cloud.AWS).overridden_by(own)
    found = {
        item.value: row.usd for (item, region), row in book.services.items() if region == "us-east-1" and row.source.startswith("prices")
    }
    assert found == {
        "extended-support": Decimal("0.5"),
        "nat-gateway": Decimal("0.046"),
        "nat-traffic": Decimal("0.045"),
        "public-address": Decimal("0.005"),
        "interface-endpoint": Decimal("0.01"),
        "kms-key": Decimal(1),
        "load-balancer": Decimal("0.0225"),
        "gp3-storage": Decimal("0.08"),
        "gp3-iops": Decimal("0.005"),
        "gp3-mibps": Decimal("0.04"),
        "bucket-storage": Decimal("0.023"),
    }
    assert "not found, and left as it was: price of cluster in us-east-1" in shown, "another unit"
    assert "not found, and left as it was: price of efs-storage in us-east-1" in shown, "two prices"
    assert "nat-gateway" in shown
    assert "12 prices, 12 of them fresh" in shown


def test_a_dry_run_writes_nothing_and_what_was_not_found_is_told(aws: dict[str, Stubber], tmp_path: Path) -> None:
    answer_with(aws, [product("0.8048")], [])
    shown = refresh("--cloud", "aws", "--file", tmp_path / "new.yaml", "--region", "us-east-1", "--machine", "g6.xlarge", "--dry-run")

    assert "not found, and left as it was: spot price of g6.xlarge in us-east-1" in shown
    assert list(tmp_path.iterdir()) == []


def test_nothing_found_or_no_access_leaves_the_file_and_tells_no_credential(aws: dict[str, Stubber], tmp_path: Path) -> None:
    own = tmp_path / "prices.yaml"
    own.write_text(OWN)
    arguments = ("--cloud", "aws", "--file", own, "--region", "us-east-1", "--machine", "g6.xlarge")
    answer_with(aws, [], [])
    assert "AWS has no price of what was asked for" in refresh(*arguments, code=1)

    aws["ec2"].add_client_error("describe_spot_price_history", "AuthFailure", "AKIAEXAMPLE is not allowed")
    told = refresh(*arguments, code=1)
    assert "AWS did not answer with prices: AuthFailure" in told
    assert "AKIAEXAMPLE" not in told
    assert own.read_text() == OWN


@pytest.mark.parametrize(
    "arguments,told",
    [
        (("--cloud", "azure"), "write aws or gcp"),
        (("--cloud", "aws", "--machine", "g6.xlrge"), "g6.xlarge"),
        (("--cloud", "gcp"), "has prices of aws, not of gcp"),
    ],
)
def test_what_cannot_be_asked_for_is_refused_before_anybody_is_asked(arguments: tuple[str, ...], told: str, tmp_path: Path) -> None:
    own = tmp_path / "prices.yaml"
    own.write_text(OWN)

    assert told in refresh(*arguments, "--file", own, code=2)


def test_a_folder_that_is_not_there_is_told_before_anybody_is_asked(tmp_path: Path) -> None:
    told = refresh("--cloud", "aws", "--file", tmp_path / "prices" / "own.yaml", code=2)

    assert f"there is no folder {tmp_path / 'prices'} to write own.yaml into." in told


def test_a_file_that_is_no_price_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("cloud: aws\nprices: 3\n")

    assert "bad.yaml cannot be used" in refresh("--cloud", "aws", "--file", tmp_path / "bad.yaml", "--region", "us-east-1", code=2)


def test_a_library_that_is_not_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)

    assert "--extra prices-aws" in refresh("--cloud", "aws", "--file", tmp_path / "x.yaml", "--region", "us-east-1", code=2)


@pytest.mark.parametrize(
    "products,usd",
    [
        ([product("0.8048"), product("0.80480")], Decimal("0.8048")),
        ([product("0.8048"), product("0.9")], None),
        ([product("0.0000000000"), product("4", unit="Quantity"), product("free")], None),
        ([json.dumps({"terms": {"Reserved": {}}})], None),
    ],
)
def test_a_list_price_counts_where_there_is_exactly_one(products: list[str], usd: Decimal | None) -> None:
    assert on_demand_usd(products) == usd


def test_a_spot_price_is_the_median_of_what_zones_cost_last() -> None:
    history = [spot("us-east-1a", "0.9", hour=2), spot("us-east-1a", "0.1"), spot("us-east-1b", "0.3"), spot("us-east-1c", "0.4")]

    assert spot_usd([*history, spot("us-west-2a", "0.01"), spot("us-east-1d", "none")], "us-east-1") == {"g6.xlarge": Decimal("0.4")}


def google_sku(description: str, nanos: int, *regions: str, unit: str = "h", currency: str = "USD") -> dict[str, Any]:
    """An SKU in the JSON of the Cloud Billing Catalog API, in the parts that count."""
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


# Flex-start as on a bill of 2025-08-16 (zenn.dev); descriptions as in the API, of all but flex-start by Spare Cores' tests.
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
    """The pages that the API answers, one a request, or errors that it raises; and no credentials of this machine."""
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


def test_a_google_machine_is_the_sum_of_its_parts_and_others_are_told(catalog: list[Any], tmp_path: Path) -> None:
    own = tmp_path / "gcp.yaml"
    machines = ("--machine", "g2-standard-8", "--machine", "a3-highgpu-8g")
    shown = refresh("--cloud", "gcp", "--file", own, "--region", "us-central1", *machines)

    assert catalog == []
    assert "not found, and left as it was: spot price of a3-highgpu-8g in us-central1" in shown
    book = prices_of(Cloud.GCP).overridden_by(own)
    # 8 cores, 32 GiB and one L4.
    assert book.prices["g2-standard-8", "us-central1", ON_DEMAND].usd_per_hour == Decimal("0.853572")
    assert book.prices["g2-standard-8", "us-central1", SPOT].usd_per_hour == Decimal("0.304")


def test_h100s_with_their_local_ssd_flex_start_and_disks_are_refreshed(catalog: list[Any], tmp_path: Path) -> None:
    """Flex-start against the sum that the shipped price book has from that bill, worked out there by hand."""
    catalog[:] = [{"skus": H100}]
    own = tmp_path / "gcp.yaml"
    shipped = prices_of(Cloud.GCP).find("a3-highgpu-8g", "us-central1", CapacityType.FLEX_START)
    places = ("--region", "us-central1", "--region", "europe-west4")
    shown = refresh("--cloud", "gcp", "--file", own, *places, "--machine", "a3-highgpu-8g", "--machine", "a3-highgpu-1g")

    book = prices_of(Cloud.GCP).overridden_by(own)
    assert shipped is not None
    assert book.prices["a3-highgpu-8g", "us-central1", CapacityType.FLEX_START].usd_per_hour == shipped.usd_per_hour
    by_hand = 208 * Decimal("0.029327") + 1872 * Decimal("0.002553") + 8 * Decimal("9.79597") + 6000 * Decimal("0.08") / 730
    assert book.prices["a3-highgpu-8g", "us-central1", ON_DEMAND].usd_per_hour == by_hand.quantize(Decimal("0.000001"))
    assert "not found, and left as it was: on-demand price of a3-highgpu-1g in us-central1" in shown, (
        "it is sold as Spot and flex-start alone"
    )
    assert "not found, and left as it was: flex-start price of a3-highgpu-8g in europe-west4" in shown
    disks = {(item.value, region): row.usd for (item, region), row in book.services.items() if row.source.startswith("gcp.yaml")}
    assert disks == {
        ("pd-balanced", "us-central1"): Decimal("0.1"),
        ("pd-balanced", "europe-west4"): Decimal("0.11"),
        ("local-ssd", "us-central1"): Decimal("0.08"),
        ("local-ssd", "europe-west4"): Decimal("0.088"),
    }


@pytest.mark.parametrize("cloud,platform", [("aws", "eks"), ("gcp", "gke")])
def test_without_regions_those_of_all_stacks_are_asked_for_by_one_command(
    cloud: str, platform: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    class Listed:
        name = "the list"
        sources = dict.fromkeys(("on-demand",), "list")
        citations = dict.fromkeys(("on-demand",), "a list of this test")

        def of_region(self, machines: list[Any], region: str) -> Iterator[tuple[str, CapacityType, Decimal]]:
            asked.append(region)
            yield machines[0].name, ON_DEMAND, Decimal(1)

        def services_of_region(self, region: str) -> Iterator[tuple[ServiceItem, Decimal | None]]:
            asked.append(region)
            yield ServiceItem.CLUSTER, None

    def listed(asked_cloud: Cloud, told: price_refresh.Told) -> Listed:
        del told
        assert asked_cloud.value == cloud
        return Listed()

    monkeypatch.setattr(price_refresh, "price_list_of", listed)
    refresh("--cloud", cloud, "--file", "own.yaml", "--dry-run")

    regions = {planned(stack).plan.region for stack in stack_names() if planned(stack).plan.cloud == platform}
    assert sorted(asked) == sorted([*regions, *regions])
    assert len(regions) >= 1


@pytest.mark.parametrize(
    "page,told", [(403, "HTTP 403"), ({"skus": [{"pricingInfo": [3]}]}, "MalformedCatalogError"), ([], "MalformedCatalogError")]
)
def test_a_refusal_of_google_is_told_by_its_kind(catalog: list[Any], page: Any, told: str, tmp_path: Path) -> None:
    catalog[:] = [page]

    assert f"Google did not answer with prices: {told}" in refresh(
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
    assert SkuPrices(skus_of_page({"skus": GOOGLE})).of_machine(machines_of(Cloud.GCP)[machine], region, bought) is None


def test_the_gpu_of_a3_mega_has_another_name_on_spot() -> None:
    """A cent for each core, a tenth of one for each GiB, eight GPUs, and 6,000 GiB of local SSD at 0.073 a month."""
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
    prices, machine = SkuPrices(skus), machines_of(Cloud.GCP)["a3-megagpu-8g"]

    assert prices.of_machine(machine, "us-central1", ON_DEMAND) == Decimal("2.08") + Decimal("1.872") + 80 + Decimal("0.6")
    assert prices.of_machine(machine, "us-central1", SPOT) == Decimal("2.08") + Decimal("1.872") + 24 + Decimal("0.3")
    assert prices.of_machine(machine, "us-central1", CapacityType.FLEX_START) is None


def test_a_part_with_two_prices_has_none() -> None:
    skus = [
        Sku(f"{part} running in {place}", ("us-central1",), "h", usd)
        for part in ("E2 Instance Core", "E2 Instance Ram")
        for place, usd in (("Americas", Decimal(1)), ("Iowa", Decimal(2)))
    ]

    assert SkuPrices(skus).of_machine(machines_of(Cloud.GCP)["e2-standard-4"], "us-central1", ON_DEMAND) is None
