"""`flexspot prices refresh`: its changes of a price file, and requests to AWS checked by botocore's API models, without a network."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.stub import ANY, Stubber
from price_refresh_command import refresh

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.fresh_prices import on_demand_usd, product_filters, service_usd, spot_usd, usage_items
from flexspot.capacity.catalog.machines import Vendor
from flexspot.capacity.catalog.price_book import ServiceItem, prices_of
from flexspot.infra.cli.command_line import planned
from flexspot.infra.cli.money import prices as price_refresh
from flexspot.infra.project import project_here

if TYPE_CHECKING:
    from pathlib import Path

    from flexspot.infra.price_lists import Report

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


def product(usd: str, unit: str = "Hrs") -> str:
    """Return an on-demand g6.xlarge in the form of GetProducts."""
    return usage("BoxUsage:g6.xlarge", unit, ("0", usd))


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
    """Return stubs for AWS' clients by service. They check requests and answers against the APIs' models."""
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
    """Return a product of GetProducts other than a machine, with its usage type and (monthly threshold, price) tiers."""
    dimensions = {
        f"A.B.{begin}": {"unit": unit, "beginRange": begin, "endRange": "Inf", "pricePerUnit": {"USD": usd}} for begin, usd in tiers
    }
    return json.dumps(
        {
            "product": {"attributes": {"usagetype": usage_type, "regionCode": "us-east-1"}},
            "terms": {"OnDemand": {"A.B": {"priceDimensions": dimensions}}},
        }
    )


SERVICES: dict[tuple[str, str | None], list[str]] = {
    ("AmazonEKS", None): [
        usage("USE1-AmazonEKS-Hours:perCluster", "Hours", ("0", "0.11")),
        usage("USE1-AmazonEKS-Hours:extendedSupport", "Hrs", ("0", "0.50")),
    ],
    ("AmazonVPC", "VpcEndpoint"): [usage("VpcEndpoint-Hours", "Hrs", ("0", "0.01"), ("100000", "0.008"))],
    ("AmazonS3", "Storage"): [
        usage("TimedStorage-ByteHrs", "GB-Mo", ("0", "0.023"), ("51200", "0.022")),
        usage("TimedStorage-INT-FA-ByteHrs", "GB-Mo", ("0", "0.023")),
    ],
    ("AmazonEFS", "Storage"): [
        usage("TimedStorage-ByteHrs", "GB-Mo", ("0", "0.30")),
        usage("USE1-TimedStorage-ByteHrs", "GB-Mo", ("0", "0.16")),
    ],
}
"""Answers of the API. The unit of a cluster is wrong, and EFS has two prices."""


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
    for service, family in dict.fromkeys((each.service, each.family) for each in usage_items()):
        asked_of = [{"Type": "TERM_MATCH", "Field": "regionCode", "Value": "us-east-1"}]
        asked_of += [{"Type": "TERM_MATCH", "Field": "productFamily", "Value": family}] if family else []
        aws["pricing"].add_response(
            "get_products",
            {"FormatVersion": "aws_v1", "PriceList": (services or {}).get((service, family), [])},
            {"ServiceCode": service, "FormatVersion": "aws_v1", "Filters": asked_of},
        )


@pytest.mark.slow
def test_fresh_prices_replace_their_rows_and_leave_all_others(aws: dict[str, Stubber], tmp_path: Path) -> None:
    own = tmp_path / "prices.yaml"
    own.write_text(OWN)
    answer_with(aws, [product("0.8048000000")], [spot("us-east-1a", "0.31"), spot("us-east-1b", "0.29"), spot("us-east-1-bos-1a", "0.5")])
    shown = refresh("--cloud", "aws", "--file", own, "--region", "us-east-1", "--machine", "g6.xlarge")

    assert "-10.6 %" in shown
    assert "new" in shown
    book = prices_of(Vendor.AWS).overridden_by(own)
    found = {key: row.usd_per_hour for key, row in book.prices.items() if row.source.startswith("prices.yaml")}
    assert found == {
        ("g6.xlarge", "us-east-1", ON_DEMAND): Decimal("0.8048"),
        ("g6.xlarge", "us-east-1", SPOT): Decimal("0.29"),
        ("p5.48xlarge", "eu-west-1", CapacityType.RESERVED): Decimal("31.00"),
    }
    text = own.read_text()
    assert "old-list" not in text
    assert "{item: cluster, usd: '0.09', source: contract}" in text, "prices that AWS did not return are unchanged"
    assert [path.name for path in tmp_path.iterdir()] == ["prices.yaml"]

    answer_with(aws, [product("0.8048")], [spot("us-east-1a", "0.31"), spot("us-east-1b", "0.29")])
    assert "no price differs" in refresh("--cloud", "aws", "--file", own, "--region", "us-east-1", "--machine", "g6.xlarge")
    assert own.read_text() == text


def test_services_are_refreshed_with_the_machines_and_unclear_prices_stay(aws: dict[str, Stubber], tmp_path: Path) -> None:
    own = tmp_path / "prices.yaml"
    answer_with(aws, [product("0.8048")], [], SERVICES)
    shown = refresh("--cloud", "aws", "--file", own, "--region", "us-east-1", "--machine", "g6.xlarge")

    for stub in aws.values():
        stub.assert_no_pending_responses()
    book = prices_of(Vendor.AWS).overridden_by(own)
    found = {
        item.value: row.usd for (item, region), row in book.services.items() if region == "us-east-1" and row.source.startswith("prices")
    }
    assert found == {"extended-support": Decimal("0.5"), "interface-endpoint": Decimal("0.01"), "bucket-storage": Decimal("0.023")}
    assert "not found, so unchanged: price of cluster in us-east-1" in shown, "another unit"
    assert "not found, so unchanged: price of efs-storage in us-east-1" in shown, "two prices"
    assert "4 prices, 4 of them fresh" in shown


@pytest.mark.parametrize(
    "item,rows,usd",
    [
        (
            "application-load-balancer",
            [
                ("EUW2-TS-LoadBalancerUsage", "Hrs", "0.0059"),
                ("EUW2-LoadBalancerUsage", "Hrs", "0.02646"),
                ("EUW2-Outposts-LoadBalancerUsage", "Hrs", "0.03"),
            ],
            "0.02646",
        ),
        ("nat-gateway", [("EUW2-NatGateway-Hours", "Hrs", "0.0500000000"), ("EUW2-RegionalNatGateway-Hours", "Hrs", "0.07")], "0.05"),
        ("nat-traffic", [("EU-NatGateway-Bytes", "GB", "0.048"), ("EU-RegionalNatGateway-Bytes", "GB", "0.05")], "0.048"),
        ("public-address", [("EU-PublicIPv4:InUseAddress", "Hrs", "0.005"), ("EU-PublicIPv4:IdleAddress", "Hrs", "0.007")], "0.005"),
        ("gp3-mibps", [("APN1-EBS:VolumeP-Throughput.gp3", "GiBps-mo", "49.152")], "0.048"),
        ("gp2-storage", [("APN1-EBS:VolumeUsage.gp2", "GB-Mo", "0.120"), ("APN1-EBS:VolumeUsage.gp3", "GB-Mo", "0.096")], "0.12"),
        ("kms-key", [("ap-southeast-1-KMS-Keys", "Keys", "1.0000000000"), ("ap-southeast-1-KMS-Requests", "Requests", "0.000003")], "1"),
    ],
)
def test_usage_types_of_other_regions_are_found_by_the_names_that_their_lists_have(
    item: str, rows: list[tuple[str, str, str]], usd: str
) -> None:
    """The rows are from AWS's price lists of London, Ireland, Tokyo and Singapore in public repositories (August to October 2026)."""
    asked = next(each for each in usage_items() if each.item == item)

    assert service_usd([usage(name, unit, ("0", price)) for name, unit, price in rows], asked) == Decimal(usd)


def test_a_dry_run_writes_nothing_and_reports_missing_prices(aws: dict[str, Stubber], tmp_path: Path) -> None:
    answer_with(aws, [product("0.8048")], [])
    shown = refresh("--cloud", "aws", "--file", tmp_path / "new.yaml", "--region", "us-east-1", "--machine", "g6.xlarge", "--dry-run")

    assert "not found, so unchanged: spot price of g6.xlarge in us-east-1" in shown
    assert list(tmp_path.iterdir()) == []


def test_without_prices_or_access_the_file_stays_and_no_credential_is_shown(aws: dict[str, Stubber], tmp_path: Path) -> None:
    own = tmp_path / "prices.yaml"
    own.write_text(OWN)
    arguments = ("--cloud", "aws", "--file", own, "--region", "us-east-1", "--machine", "g6.xlarge")
    answer_with(aws, [], [])
    assert "AWS has none of the requested prices" in refresh(*arguments, code=1)

    aws["ec2"].add_client_error("describe_spot_price_history", "AuthFailure", "AKIAEXAMPLE is not allowed")
    printed = refresh(*arguments, code=1)
    assert "AWS returned no prices: AuthFailure" in printed
    assert "AKIAEXAMPLE" not in printed
    assert own.read_text() == OWN


@pytest.mark.parametrize(
    "arguments,problem",
    [
        (("--cloud", "azure"), "'azure' is not one of 'aws', 'gcp'"),
        (("--cloud", "aws", "--machine", "g6.xlrge"), "g6.xlarge"),
        (("--cloud", "gcp", "--region", "us-central1"), "has prices of aws, not of gcp"),
        (("--cloud", "aws", "--region", "mars"), "--region: 'mars' is not a region of aws."),
        (("--cloud", "gcp", "--region", "us-east-1"), "name a region such as us-central1."),
    ],
)
def test_invalid_requests_are_refused_before_the_cloud_is_asked(arguments: tuple[str, ...], problem: str, tmp_path: Path) -> None:
    own = tmp_path / "prices.yaml"
    own.write_text(OWN)

    assert problem in refresh(*arguments, "--file", own, code=2)


def test_regions_are_required_if_no_stack_is_on_the_cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An earlier version reported missing prices of AWS although it had requested none."""
    (tmp_path / "Pulumi.yaml").write_text("name: acme\nruntime: python\n")
    monkeypatch.chdir(tmp_path)

    printed = refresh("--cloud", "aws", "--file", tmp_path / "x.yaml", code=2)

    assert "no stack of this project is on aws." in printed
    assert "add the regions with --region" in printed


def test_an_unusable_price_file_is_refused_before_the_cloud_is_asked(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("cloud: aws\nprices: 3\n")

    assert "bad.yaml cannot be used" in refresh("--cloud", "aws", "--file", tmp_path / "bad.yaml", "--region", "us-east-1", code=2)
    nowhere = tmp_path / "prices" / "own.yaml"
    assert f"--file: the folder {nowhere.parent} does not exist." in refresh("--cloud", "aws", "--file", nowhere, code=2)


@pytest.mark.parametrize(
    "products,usd",
    [
        ([product("0.8048"), product("0.80480")], Decimal("0.8048")),
        ([product("0.8048"), product("0.9")], None),
        ([product("0.0000000000"), product("4", unit="Quantity"), product("free")], None),
        ([json.dumps({"terms": {"Reserved": {}}})], None),
    ],
)
def test_a_list_price_counts_if_there_is_exactly_one(products: list[str], usd: Decimal | None) -> None:
    assert on_demand_usd(products) == usd


def test_a_spot_price_is_the_median_of_the_zones_last_prices() -> None:
    history = [spot("us-east-1a", "0.9", hour=2), spot("us-east-1a", "0.1"), spot("us-east-1b", "0.3"), spot("us-east-1c", "0.4")]

    assert spot_usd([*history, spot("us-west-2a", "0.01"), spot("us-east-1d", "none")], "us-east-1") == {"g6.xlarge": Decimal("0.4")}


@pytest.mark.slow
def test_without_regions_one_command_requests_those_of_all_stacks(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def of_region(machines: list[Any], region: str) -> list[tuple[str, CapacityType, Decimal]]:
        asked.append(region)
        return [(machines[0].name, ON_DEMAND, Decimal(1))]

    def services_of_region(_region: str) -> list[tuple[ServiceItem, Decimal | None]]:
        return [(ServiceItem.CLUSTER, None)]

    def listed(cloud: Vendor, _report: Report) -> SimpleNamespace:
        assert cloud is Vendor.AWS
        of = {"on-demand": "a list of this test"}
        return SimpleNamespace(name="list", sources=of, citations=of, of_region=of_region, services_of_region=services_of_region)

    monkeypatch.setattr(price_refresh, "price_list_of", listed)
    refresh("--cloud", "aws", "--file", "own.yaml", "--dry-run")

    regions = {planned(stack).plan.region for stack in project_here().stack_names() if planned(stack).plan.cloud == "eks"}
    assert sorted(asked) == sorted(regions) != []
