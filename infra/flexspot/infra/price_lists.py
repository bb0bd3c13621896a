"""Prices of machines and of other billed services from the clouds' own price lists."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.fresh_prices import (
    COMPUTE_ENGINE,
    MalformedCatalogError,
    SkuPrices,
    listed_items,
    on_demand_usd,
    product_filters,
    service_usd,
    skus_of_page,
    sold_as,
    spot_usd,
    usage_items,
)
from flexspot.capacity.catalog.machines import Machine, Vendor
from flexspot.capacity.catalog.price_book import Price, ServicePrice
from flexspot.capacity.values.errors import ExplainedError
from flexspot.infra.loading import library

if TYPE_CHECKING:
    from collections.abc import Iterator
    from decimal import Decimal

    from flexspot.capacity.catalog.price_book import ServiceItem

_ON_DEMAND, _SPOT, _FLEX_START = (each.value for each in (CapacityType.ON_DEMAND, CapacityType.SPOT, CapacityType.FLEX_START))


_SERVICES = "services"
"""Key of services other than machines in `sources` and `citations`."""


_PRICING_REGION = "us-east-1"
"""AWS serves prices of all regions from a few regions."""


_BILLING_SCOPE = "https://www.googleapis.com/auth/cloud-billing.readonly"


_SKUS_OF_A_PAGE = 5000


_SECONDS = 60


Report = Callable[[str], None]


class PriceList(Protocol):
    """A cloud's price list. `sources` and `citations` are by capacity type, plus one for services."""

    name: ClassVar[str]
    sources: ClassVar[dict[str, str]]
    citations: ClassVar[dict[str, str]]

    def of_region(self, machines: list[Machine], region: str) -> Iterator[tuple[str, CapacityType, Decimal | None]]:
        """Yield each machine's price by capacity type, None if the list has none. Raises ExplainedError."""
        ...

    def services_of_region(self, region: str) -> Iterator[tuple[ServiceItem, Decimal | None]]:
        """Yield the prices of other services that the list covers, None if it has none. Raises ExplainedError."""
        ...


def price_list_of(cloud: Vendor, report: Report) -> PriceList:
    """Return the price list of a cloud. `report` receives progress messages. Raises ExplainedError if its library or account is missing."""
    return AwsPriceList(report) if cloud is Vendor.AWS else GcpPriceList(report)


def fresh_prices(
    price_list: PriceList, machines: list[Machine], regions: list[str], source_names: dict[str, str]
) -> tuple[list[Price], list[ServicePrice], list[str]]:
    """Return the prices of machines, those of other services, and the names of those that were not found."""
    rows: list[Price] = []
    services: list[ServicePrice] = []
    missing: list[str] = []
    for region in regions:
        for machine, capacity_type, usd in price_list.of_region(machines, region):
            if usd is None:
                missing.append(f"{capacity_type} price of {machine} in {region}")
            else:
                source = source_names[capacity_type.value]
                rows.append(Price(machine=machine, region=region, capacity_type=capacity_type, usd_per_hour=usd, source=source))
        for item, usd in price_list.services_of_region(region):
            if usd is None:
                missing.append(f"price of {item} in {region}")
            else:
                services.append(ServicePrice(item=item, region=region, usd=usd, source=source_names[_SERVICES]))
    return rows, services, missing


class AwsPriceList:
    """AWS' price list and Spot price history, read with the credentials that boto3 finds."""

    name: ClassVar[str] = "AWS"
    sources: ClassVar[dict[str, str]] = {_ON_DEMAND: "aws-price-list", _SPOT: "aws-spot-history", _SERVICES: "aws-price-list-services"}
    citations: ClassVar[dict[str, str]] = {
        _ON_DEMAND: "AWS Price List API, GetProducts: Linux, shared tenancy, no software, list price",
        _SPOT: "EC2 API, DescribeSpotPriceHistory: Linux, median of the region's zones at that moment",
        _SERVICES: "AWS Price List API, GetProducts: usage types of capacity/catalog/aws_usage.yaml, of tiers the first that is paid",
    }

    def __init__(self, report: Report) -> None:
        self._report = report
        self._boto3: Any = library("boto3", "prices-aws")
        self._errors: tuple[type[Exception], ...] = (
            importlib.import_module("botocore.exceptions").BotoCoreError,
            importlib.import_module("botocore.exceptions").ClientError,
        )

    def of_region(self, machines: list[Machine], region: str) -> Iterator[tuple[str, CapacityType, Decimal | None]]:
        """See PriceList."""
        try:
            pricing, ec2 = self._boto3.client("pricing", region_name=_PRICING_REGION), self._boto3.client("ec2", region_name=region)
            self._report(f"asking AWS for Spot prices in {region}")
            selection = {"InstanceTypes": [each.name for each in machines], "ProductDescriptions": ["Linux/UNIX"]}
            pages = ec2.get_paginator("describe_spot_price_history").paginate(**selection, StartTime=datetime.now(UTC))
            spot = spot_usd((each for page in pages for each in page["SpotPriceHistory"]), region)
            self._report(f"asking AWS for {len(machines)} list prices in {region}")
            for machine in machines:
                pages = pricing.get_paginator("get_products").paginate(
                    ServiceCode="AmazonEC2", FormatVersion="aws_v1", Filters=product_filters(machine.name, region)
                )
                yield machine.name, CapacityType.ON_DEMAND, on_demand_usd(each for page in pages for each in page["PriceList"])
                yield machine.name, CapacityType.SPOT, spot.get(machine.name)
        except self._errors as error:
            raise self._refused(error) from None

    def services_of_region(self, region: str) -> Iterator[tuple[ServiceItem, Decimal | None]]:
        """See PriceList."""
        try:
            pricing = self._boto3.client("pricing", region_name=_PRICING_REGION)
            self._report(f"asking AWS for services' prices in {region}")
            answers: dict[tuple[str, str | None], list[str]] = {}
            for item in usage_items():
                # One answer has all items of a family.
                key = item.service, item.family
                if key not in answers:
                    pages = pricing.get_paginator("get_products").paginate(
                        ServiceCode=item.service, FormatVersion="aws_v1", Filters=item.filters(region)
                    )
                    answers[key] = [each for page in pages for each in page["PriceList"]]
                yield item.item, service_usd(answers[key], item)
        except self._errors as error:
            raise self._refused(error) from None

    def _refused(self, error: Exception) -> ExplainedError:
        needed = "log in as for the AWS CLI, with the permissions pricing:GetProducts and ec2:DescribeSpotPriceHistory."
        return refused("AWS", "prices", error, needed)


class GcpPriceList:
    """Google's billing catalog, read over its REST API with the application-default credentials.

    google-cloud-billing cannot be used: its protobuf files and Pulumi's SDK both define google.rpc.Status, and no process can load both.
    """

    name: ClassVar[str] = "Google Cloud"
    sources: ClassVar[dict[str, str]] = {
        _ON_DEMAND: "gcp-billing-catalog",
        _SPOT: "gcp-billing-catalog-spot",
        _FLEX_START: "gcp-billing-catalog-flex-start",
        _SERVICES: "gcp-billing-catalog-disks",
    }
    citations: ClassVar[dict[str, str]] = {
        _ON_DEMAND: "Google Cloud Billing Catalog API, SKUs of Compute Engine: sum of cores, memory, GPUs and local SSD",
        _SPOT: "Google Cloud Billing Catalog API, SKUs of Compute Engine: sum of Spot's cores, memory, GPUs and local SSD",
        _FLEX_START: "Google Cloud Billing Catalog API, SKUs of Compute Engine: sum of parts called DWS Defined Duration",
        _SERVICES: "Google Cloud Billing Catalog API, SKUs of Compute Engine: a GiB and month of disks",
    }

    def __init__(self, report: Report) -> None:
        auth = library("google.auth", "prices-gcp")
        transport = library("google.auth.transport.requests", "prices-gcp")
        errors = (auth.exceptions.GoogleAuthError, importlib.import_module("requests").RequestException, MalformedCatalogError)
        report("asking Google for the SKUs of Compute Engine")
        try:
            credentials, _ = auth.default(scopes=[_BILLING_SCOPE])
            session = transport.AuthorizedSession(credentials)
            self._prices = SkuPrices(sku for page in _catalog_pages(session) for sku in skus_of_page(page))
        except errors as error:
            raise refused(
                "Google", "prices", error, "log in with `gcloud auth application-default login`, and enable the Cloud Billing API."
            ) from None

    def of_region(self, machines: list[Machine], region: str) -> Iterator[tuple[str, CapacityType, Decimal | None]]:
        """See PriceList."""
        for machine in machines:
            for capacity_type in sold_as(machine):
                yield machine.name, capacity_type, self._prices.of_machine(machine, region, capacity_type)

    def services_of_region(self, region: str) -> Iterator[tuple[ServiceItem, Decimal | None]]:
        """See PriceList."""
        for item in listed_items(Vendor.GCP):
            yield item, self._prices.of_service(item, region)


def _catalog_pages(session: Any) -> Iterator[dict[str, Any]]:
    """Yield the pages of Compute Engine's SKUs."""
    token = ""
    while True:
        query = {"pageSize": _SKUS_OF_A_PAGE, "currencyCode": "USD", "pageToken": token}
        response = session.get(f"https://cloudbilling.googleapis.com/v1/{COMPUTE_ENGINE}/skus", params=query, timeout=_SECONDS)
        response.raise_for_status()
        page: Any = response.json()
        if not isinstance(page, dict):
            raise MalformedCatalogError("a page that is not an object")
        found = cast("dict[str, Any]", page)
        yield found
        token = str(found.get("nextPageToken", ""))
        if not token:
            return


def refused(whom: str, what: str, error: Exception, remedy: str) -> ExplainedError:
    """Return an error for a cloud that did not answer. Only the kind of its error is shown: the text may quote an account or a key."""
    response: Any = getattr(error, "response", None)
    # AWS' errors have the reply as a mapping, those of requests as an object.
    status = getattr(response, "status_code", None)
    code = f"HTTP {status}" if status else _aws_code(response)
    return ExplainedError(f"{whom} returned no {what}: {code or type(error).__name__}.", remedy)


def _aws_code(response: Any) -> str:
    try:
        return str(response["Error"]["Code"])
    except (TypeError, KeyError):
        return ""
