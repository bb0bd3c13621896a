"""The clouds' own price lists, asked through their own libraries, which are loaded when they are needed and need not be there."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast

from capacity.catalog.capacity_type import CapacityType
from capacity.catalog.fresh_prices import MalformedCatalogError
from capacity.catalog.machines import Cloud, Machine
from capacity.catalog.price_book import Price
from capacity.values.errors import ExitCode, ExplainedError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from decimal import Decimal

_ON_DEMAND, _SPOT = CapacityType.ON_DEMAND.value, CapacityType.SPOT.value
_PRICING_REGION = "us-east-1"
"""AWS answers for all regions from a few."""

_BILLING_SCOPE = "https://www.googleapis.com/auth/cloud-billing.readonly"
_SKUS_OF_A_PAGE = 5000
_SECONDS = 60

Told = Callable[[str], None]


class PriceList(Protocol):
    """A cloud's list. `sources` and `citations` are by capacity type."""

    name: ClassVar[str]
    sources: ClassVar[dict[str, str]]
    citations: ClassVar[dict[str, str]]

    def of_region(self, machines: list[Machine], region: str) -> Iterator[tuple[str, CapacityType, Decimal | None]]:
        """Each machine's price as on-demand and as Spot; None where the list has none. Raises ExplainedError."""
        ...


def price_list_of(cloud: Cloud, told: Told) -> PriceList:
    """The list of a cloud; `told` hears what is being asked. Raises ExplainedError where its library or account is missing."""
    return AwsPriceList(told) if cloud is Cloud.AWS else GcpPriceList(told)


def fresh_prices(
    price_list: PriceList, machines: list[Machine], regions: list[str], source_names: dict[str, str]
) -> tuple[list[Price], list[str]]:
    """The rows that were found, and a name for each that was not."""
    rows: list[Price] = []
    missing: list[str] = []
    for region in regions:
        for machine, capacity_type, usd in price_list.of_region(machines, region):
            if usd is None:
                missing.append(f"{capacity_type} price of {machine} in {region}")
            else:
                source = source_names[capacity_type.value]
                rows.append(Price(machine=machine, region=region, capacity_type=capacity_type, usd_per_hour=usd, source=source))
    return rows, missing


class AwsPriceList:
    """AWS' price list and Spot price history, with the credentials that boto3 finds."""

    name: ClassVar[str] = "AWS"
    sources: ClassVar[dict[str, str]] = {_ON_DEMAND: "aws-price-list", _SPOT: "aws-spot-history"}
    citations: ClassVar[dict[str, str]] = {
        _ON_DEMAND: "AWS Price List API, GetProducts: Linux, shared tenancy, no software, list price",
        _SPOT: "EC2 API, DescribeSpotPriceHistory: Linux, median of the region's zones at that moment",
    }

    def __init__(self, told: Told) -> None:
        self._told = told
        self._boto3: Any = _library("boto3", "prices-aws")
        self._errors: tuple[type[Exception], ...] = (
            importlib.import_module("botocore.exceptions").BotoCoreError,
            importlib.import_module("botocore.exceptions").ClientError,
        )

    def of_region(self, machines: list[Machine], region: str) -> Iterator[tuple[str, CapacityType, Decimal | None]]:
        """See PriceList."""
        from capacity.catalog.fresh_prices import on_demand_usd, product_filters, spot_usd  # noqa: PLC0415

        try:
            pricing, ec2 = self._boto3.client("pricing", region_name=_PRICING_REGION), self._boto3.client("ec2", region_name=region)
            self._told(f"asking AWS for Spot prices in {region}")
            asked = {"InstanceTypes": [each.name for each in machines], "ProductDescriptions": ["Linux/UNIX"]}
            pages = ec2.get_paginator("describe_spot_price_history").paginate(**asked, StartTime=datetime.now(UTC))
            spot = spot_usd((each for page in pages for each in page["SpotPriceHistory"]), region)
            self._told(f"asking AWS for {len(machines)} list prices in {region}")
            for machine in machines:
                pages = pricing.get_paginator("get_products").paginate(
                    ServiceCode="AmazonEC2", FormatVersion="aws_v1", Filters=product_filters(machine.name, region)
                )
                yield machine.name, CapacityType.ON_DEMAND, on_demand_usd(each for page in pages for each in page["PriceList"])
                yield machine.name, CapacityType.SPOT, spot.get(machine.name)
        except self._errors as error:
            raise _refused(
                "AWS", error, "log in as for the aws command; pricing:GetProducts and ec2:DescribeSpotPriceHistory are needed."
            ) from None


class GcpPriceList:
    """Google's billing catalog, with the application-default credentials, over its REST API.

    Not by google-cloud-billing: its protobuf files and those of Pulumi's SDK both define google.rpc.Status, and no process can load both.
    """

    name: ClassVar[str] = "Google Cloud"
    sources: ClassVar[dict[str, str]] = {_ON_DEMAND: "gcp-billing-catalog", _SPOT: "gcp-billing-catalog-spot"}
    citations: ClassVar[dict[str, str]] = {
        _ON_DEMAND: "Google Cloud Billing Catalog API, SKUs of Compute Engine: sum of cores, memory and GPUs",
        _SPOT: "Google Cloud Billing Catalog API, SKUs of Compute Engine: sum of Spot's cores, memory and GPUs",
    }

    def __init__(self, told: Told) -> None:
        from capacity.catalog.fresh_prices import SkuPrices, skus_of_page  # noqa: PLC0415

        auth = _library("google.auth", "prices-gcp")
        transport = _library("google.auth.transport.requests", "prices-gcp")
        errors = (auth.exceptions.GoogleAuthError, importlib.import_module("requests").RequestException, MalformedCatalogError)
        told("asking Google for the SKUs of Compute Engine")
        try:
            credentials, _ = auth.default(scopes=[_BILLING_SCOPE])
            session = transport.AuthorizedSession(credentials)
            self._prices = SkuPrices(sku for page in _catalog_pages(session) for sku in skus_of_page(page))
        except errors as error:
            raise _refused(
                "Google", error, "log in with `gcloud auth application-default login`, and enable the Cloud Billing API."
            ) from None

    def of_region(self, machines: list[Machine], region: str) -> Iterator[tuple[str, CapacityType, Decimal | None]]:
        """See PriceList."""
        for machine in machines:
            for capacity_type in (CapacityType.ON_DEMAND, CapacityType.SPOT):
                yield machine.name, capacity_type, self._prices.of_machine(machine, region, capacity_type)


def _catalog_pages(session: Any) -> Iterator[dict[str, Any]]:
    """The pages of the SKUs of Compute Engine."""
    from capacity.catalog.fresh_prices import COMPUTE_ENGINE  # noqa: PLC0415

    token = ""
    while True:
        asked = {"pageSize": _SKUS_OF_A_PAGE, "currencyCode": "USD", "pageToken": token}
        response = session.get(f"https://cloudbilling.googleapis.com/v1/{COMPUTE_ENGINE}/skus", params=asked, timeout=_SECONDS)
        response.raise_for_status()
        page: Any = response.json()
        if not isinstance(page, dict):
            raise MalformedCatalogError("a page that is no object")
        found = cast("dict[str, Any]", page)
        yield found
        token = str(found.get("nextPageToken", ""))
        if not token:
            return


def _library(module: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ExplainedError(
            f"the library {module.partition('.')[0]} is not installed.",
            f"install it with Flexspot: `uv sync --inexact --extra {extra}`, or `pip install 'flexspot[{extra}]'`.",
            exit_code=ExitCode.BAD_USAGE,
        ) from None


def _refused(whom: str, error: Exception, remedy: str) -> ExplainedError:
    """The kind of the error alone: its text may quote an account or a key."""
    response: Any = getattr(error, "response", None)
    # AWS' errors hold the reply as a mapping, those of requests as an object.
    status = getattr(response, "status_code", None)
    code = f"HTTP {status}" if status else _aws_code(response)
    return ExplainedError(f"{whom} did not answer with prices: {code or type(error).__name__}.", remedy)


def _aws_code(response: Any) -> str:
    try:
        return str(response["Error"]["Code"])
    except (TypeError, KeyError):
        return ""
