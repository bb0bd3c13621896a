"""`flexspot prices`: what the price book knows and how old it is, and fresh prices from the clouds' own lists."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol, cast

import typer
from rich.markup import escape
from rich.text import Text

from capacity.catalog.capacity_type import CapacityType
from capacity.catalog.data_files import DataFileError, Source, read_records
from capacity.catalog.fresh_prices import (
    COMPUTE_ENGINE,
    MalformedCatalogError,
    SkuPrices,
    as_yaml,
    changes,
    listed_items,
    on_demand_usd,
    product_filters,
    service_usd,
    skus_of_page,
    sold_as,
    spot_usd,
    usage_items,
    with_fresh_rows,
)
from capacity.catalog.machines import Cloud, Machine, machines_of
from capacity.catalog.machines import Cloud as Clouds
from capacity.catalog.platform import VOCABULARIES, Platform
from capacity.catalog.price_book import LIST_PRICE_DAYS, SPOT_PRICE_DAYS, Price, PriceFile, ServicePrice
from capacity.values.errors import ExitCode, ExplainedError, nearest
from capacity.values.names import AWS_REGION, FORMS, GCP_REGION
from infra.cli.command_line import AsFormat, Format
from infra.cli.console import err, out, table_console
from infra.cli.given_files import planned, write_whole
from infra.cli.tables import Table, as_json, print_table, show
from infra.optional_libraries import library
from infra.project import from_the_root, project_here

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date

    from capacity.catalog.fresh_prices import PriceChange
    from capacity.catalog.price_book import ServiceItem
    from capacity.plan.build import StackPlan


_ON_DEMAND, _SPOT, _FLEX_START = (each.value for each in (CapacityType.ON_DEMAND, CapacityType.SPOT, CapacityType.FLEX_START))
_SERVICES = "services"
"""What is billed besides machines, among the kinds of rows that sources are of."""

_PRICING_REGION = "us-east-1"
"""AWS answers for all regions from a few."""

_BILLING_SCOPE = "https://www.googleapis.com/auth/cloud-billing.readonly"
_SKUS_OF_A_PAGE = 5000
_SECONDS = 60

Told = Callable[[str], None]


class PriceList(Protocol):
    """A cloud's list. `sources` and `citations` are by capacity type, and of services."""

    name: ClassVar[str]
    sources: ClassVar[dict[str, str]]
    citations: ClassVar[dict[str, str]]

    def of_region(self, machines: list[Machine], region: str) -> Iterator[tuple[str, CapacityType, Decimal | None]]:
        """Each machine's price by capacity type; None where the list has none. Raises ExplainedError."""
        ...

    def services_of_region(self, region: str) -> Iterator[tuple[ServiceItem, Decimal | None]]:
        """Likewise of what is billed besides machines, as far as the list can be asked for it."""
        ...


def price_list_of(cloud: Cloud, told: Told) -> PriceList:
    """The list of a cloud; `told` hears what is being asked. Raises ExplainedError where its library or account is missing."""
    return AwsPriceList(told) if cloud is Cloud.AWS else GcpPriceList(told)


def fresh_prices(
    price_list: PriceList, machines: list[Machine], regions: list[str], source_names: dict[str, str]
) -> tuple[list[Price], list[ServicePrice], list[str]]:
    """The rows of machines and of what is billed besides, and a name for each that was not found."""
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
    """AWS' price list and Spot price history, with the credentials that boto3 finds."""

    name: ClassVar[str] = "AWS"
    sources: ClassVar[dict[str, str]] = {_ON_DEMAND: "aws-price-list", _SPOT: "aws-spot-history", _SERVICES: "aws-price-list-services"}
    citations: ClassVar[dict[str, str]] = {
        _ON_DEMAND: "AWS Price List API, GetProducts: Linux, shared tenancy, no software, list price",
        _SPOT: "EC2 API, DescribeSpotPriceHistory: Linux, median of the region's zones at that moment",
        _SERVICES: "AWS Price List API, GetProducts: usage types of capacity/catalog/aws_usage.yaml, of tiers the first that is paid",
    }

    def __init__(self, told: Told) -> None:
        self._told = told
        self._boto3: Any = library("boto3", "prices-aws")
        self._errors: tuple[type[Exception], ...] = (
            importlib.import_module("botocore.exceptions").BotoCoreError,
            importlib.import_module("botocore.exceptions").ClientError,
        )

    def of_region(self, machines: list[Machine], region: str) -> Iterator[tuple[str, CapacityType, Decimal | None]]:
        """See PriceList."""
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
            raise self._refused(error) from None

    def services_of_region(self, region: str) -> Iterator[tuple[ServiceItem, Decimal | None]]:
        """See PriceList."""
        try:
            pricing = self._boto3.client("pricing", region_name=_PRICING_REGION)
            self._told(f"asking AWS for services' prices in {region}")
            asked: dict[tuple[str, str | None], list[str]] = {}
            for item in usage_items():
                # Items of one family come in one answer.
                key = item.service, item.family
                if key not in asked:
                    pages = pricing.get_paginator("get_products").paginate(
                        ServiceCode=item.service, FormatVersion="aws_v1", Filters=item.filters(region)
                    )
                    asked[key] = [each for page in pages for each in page["PriceList"]]
                yield item.item, service_usd(asked[key], item)
        except self._errors as error:
            raise self._refused(error) from None

    def _refused(self, error: Exception) -> ExplainedError:
        needed = "log in as for the aws command; pricing:GetProducts and ec2:DescribeSpotPriceHistory are needed."
        return refused("AWS", "prices", error, needed)


class GcpPriceList:
    """Google's billing catalog, with the application-default credentials, over its REST API.

    Not by google-cloud-billing: its protobuf files and those of Pulumi's SDK both define google.rpc.Status, and no process can load both.
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

    def __init__(self, told: Told) -> None:
        auth = library("google.auth", "prices-gcp")
        transport = library("google.auth.transport.requests", "prices-gcp")
        errors = (auth.exceptions.GoogleAuthError, importlib.import_module("requests").RequestException, MalformedCatalogError)
        told("asking Google for the SKUs of Compute Engine")
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
        for item in listed_items(Cloud.GCP):
            yield item, self._prices.of_service(item, region)


def _catalog_pages(session: Any) -> Iterator[dict[str, Any]]:
    """The pages of the SKUs of Compute Engine."""
    token = ""
    while True:
        asked = {"pageSize": _SKUS_OF_A_PAGE, "currencyCode": "USD", "pageToken": token}
        response = session.get(f"https://cloudbilling.googleapis.com/v1/{COMPUTE_ENGINE}/skus", params=asked, timeout=_SECONDS)
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
    """A cloud that did not answer. Of its error the kind alone: the text may quote an account or a key."""
    response: Any = getattr(error, "response", None)
    # AWS' errors hold the reply as a mapping, those of requests as an object.
    status = getattr(response, "status_code", None)
    code = f"HTTP {status}" if status else _aws_code(response)
    return ExplainedError(f"{whom} did not answer with {what}: {code or type(error).__name__}.", remedy)


def _aws_code(response: Any) -> str:
    try:
        return str(response["Error"]["Code"])
    except (TypeError, KeyError):
        return ""


def refresh(
    cloud: Annotated[str, typer.Option("--cloud", help="Whose prices: aws or gcp.")],
    file: Annotated[Path, typer.Option("--file", help="The price file to write. Prices in it that are not refreshed stay.")],
    regions: Annotated[list[str] | None, typer.Option("--region", help="A region. Repeatable. Default: those of the stacks.")] = None,
    machines: Annotated[
        list[str] | None, typer.Option("--machine", help="A machine type. Repeatable. Default: all of the catalog.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change; write nothing.")] = False,
) -> None:
    """Ask the cloud for prices of machines and services, show what changed, and write the price file.

    Covers all regions of the stacks. Needs credentials, found as the cloud's own tools find them. No other command fetches prices from the
    network.
    """
    asked_cloud = _cloud(cloud)
    asked_machines = _machines(asked_cloud, machines)
    asked_regions = _regions(asked_cloud, regions)
    before = _read(file, asked_cloud)
    today = datetime.now(UTC).date()
    price_list: PriceList = price_list_of(asked_cloud, err.print)
    rows, services, missing = fresh_prices(price_list, asked_machines, asked_regions, _source_names(price_list, today))
    if not rows and not services:
        raise ExplainedError(
            f"{price_list.name} has none of the requested prices.", "check --region and --machine; what the file had is as it was."
        )
    sources = {
        name: Source(citation=citation, as_of=today, verified=True)
        for name, citation in zip(_source_names(price_list, today).values(), price_list.citations.values(), strict=True)
    }
    after = with_fresh_rows(before, asked_cloud, rows, services, sources)
    _show_changes(changes(before, after), missing)
    if dry_run:
        out.print(f"{escape(str(file))} is as it was.")
        return
    write_whole(file, as_yaml(after))
    held, fresh = len(after.prices) + len(after.services), len(rows) + len(services)
    out.print(f"{escape(str(file))} has {held} prices, {fresh} of them fresh.")


def _source_names(price_list: PriceList, today: date) -> dict[str, str]:
    """A source is of one day: rows that are not asked for again keep theirs."""
    return {kind: f"{name}-{today.isoformat()}" for kind, name in price_list.sources.items()}


def _cloud(written: str) -> Cloud:
    try:
        return Cloud(written)
    except ValueError:
        told = f"--cloud {written!r} has no known price list."
        raise ExplainedError(told, f"write {' or '.join(Cloud)}.", exit_code=ExitCode.BAD_USAGE) from None


def _machines(cloud: Cloud, names: list[str] | None) -> list[Machine]:
    known = machines_of(cloud)
    for name in names or ():
        if name not in known:
            raise ExplainedError(f"{name} is not in the catalog of {cloud}.", nearest(name, sorted(known)), exit_code=ExitCode.BAD_USAGE)
    return [known[name] for name in names or known]


def _regions(cloud: Cloud, written: list[str] | None) -> list[str]:
    """Those that are written, else those of the project's stacks on the cloud. Raises ExplainedError for what is none, and for none."""
    form = AWS_REGION if cloud is Clouds.AWS else GCP_REGION
    for region in written or ():
        if re.fullmatch(form, region) is None:
            told = f"--region {region!r} is not a region of {cloud}."
            raise ExplainedError(told, f"give {FORMS[form]}.", exit_code=ExitCode.BAD_USAGE)
    regions = written or _regions_of_stacks(cloud)
    if not regions:
        told = f"no stack of this project is on {cloud}."
        raise ExplainedError(told, "name regions with --region.", exit_code=ExitCode.BAD_USAGE)
    return sorted(set(regions))


def _regions_of_stacks(cloud: Cloud) -> list[str]:
    plans = [planned(stack).plan for stack in project_here().stack_names()]
    # Fake nodes cost nothing.
    return [plan.region for plan in plans if plan.cloud is not Platform.LOCAL and VOCABULARIES[plan.cloud].catalog is cloud]


def _read(path: Path, cloud: Cloud) -> PriceFile | None:
    remedy = "fix it, or name another file; its form is that of capacity/catalog/prices."
    try:
        found = read_records(path, PriceFile)
    except FileNotFoundError:
        if not from_the_root(path).parent.is_dir():
            # Said before a cloud is asked, which takes minutes that would be lost.
            told = f"there is no folder {path.parent} to write {path.name} into."
            raise ExplainedError(told, "create it, or name another file.", exit_code=ExitCode.BAD_USAGE) from None
        return None
    except (DataFileError, OSError, UnicodeDecodeError) as error:
        raise ExplainedError(f"{path} cannot be used.", remedy, exit_code=ExitCode.BAD_USAGE, evidence=(str(error),)) from error
    if found.cloud is not cloud:
        raise ExplainedError(f"{path} has prices of {found.cloud}, not of {cloud}.", remedy, exit_code=ExitCode.BAD_USAGE)
    return found


def _show_changes(found: list[PriceChange], missing: list[str]) -> None:
    rows: list[tuple[str, ...]] = []
    for each in found:
        by = "new" if each.before is None else f"{(each.after / each.before - 1) * 100:+.1f} %"
        rows.append((each.what, each.region, each.by, "" if each.before is None else str(each.before), str(each.after), by))
    if rows:
        headings = ("what", "region", "by", "before", "after", "change")
        print_table(table_console(), Table("changed, USD an hour or per the unit shown", headings, rows, 3))
    else:
        out.print("no price differs.")
    for each in missing:
        out.print(f"[yellow]not found[/], and left as it was: {escape(each)}")


def check(
    stacks: Annotated[
        list[str] | None, typer.Option("--stack", "-s", help="Check the pools of this stack. Repeatable. Default: all stacks.")
    ] = None,
    max_age_days: Annotated[
        int | None,
        typer.Option(
            "--max-age-days", min=1, help="The age in days from which a price is a finding. Default: 30 for Spot, 180 for list prices."
        ),
    ] = None,
    form: AsFormat = Format.TEXT,
) -> None:
    """Show the price of every pool's machines, with its source and date; exit code 1 when one is missing or too old."""
    rows = [row for stack in stacks or project_here().stack_names() for row in _rows(stack, planned(stack))]
    missing = [row for row in rows if row["usd_per_hour"] is None]
    for row in rows:
        spot = row["capacity_type"] == CapacityType.SPOT
        row["too_old"] = row["age_days"] is not None and row["age_days"] > (max_age_days or (SPOT_PRICE_DAYS if spot else LIST_PRICE_DAYS))
    old = [row for row in rows if row["too_old"]]
    if form is Format.JSON:
        sys.stdout.write(as_json({"prices": rows, "missing": len(missing), "too_old": len(old)}))
    else:
        _show_known(rows)
        unverified = sum(row["verified"] is False for row in rows)
        out.print(f"{len(rows)} prices: {len(missing)} not known, {len(old)} too old, {unverified} not verified (?).")
        if missing:
            out.print("what is not known is left out of every sum and said there; give it in a file that prices_file names.")
    if missing or old:
        raise typer.Exit(ExitCode.UNMET)


def _rows(stack: str, planned_stack: StackPlan) -> Iterator[dict[str, Any]]:
    """A row for each machine of each pool. Money is text, so that no program rounds it."""
    today = datetime.now(UTC).date()
    plan, book = planned_stack.plan, planned_stack.prices
    for pool in plan.pools:
        for machine in pool.machines:
            price = book.paid(machine, plan.region, pool.capacity_type, pool.name)
            source = book.source_of(price) if price else None
            per_gpu = (price.usd_per_hour / pool.gpus_per_node).quantize(Decimal("0.0001")) if price else None
            yield {
                "stack": stack,
                "pool": pool.name,
                "machine": machine,
                "region": plan.region,
                "capacity_type": pool.capacity_type.value,
                "usd_per_hour": str(price.usd_per_hour) if price else None,
                "usd_per_gpu_hour": str(per_gpu) if per_gpu is not None else None,
                "source": price.source if price else None,
                "as_of": source.as_of.isoformat() if source else None,
                "age_days": (today - source.as_of).days if source else None,
                "verified": source.verified if source else None,
                "undated": source.undated if source else None,
            }


def _show_known(rows: list[dict[str, Any]]) -> None:
    lines: list[tuple[Text | str, ...]] = []
    for row in rows:
        known = row["usd_per_hour"] is not None
        day = f"read {row['as_of']}" if row["undated"] else (row["as_of"] or "")
        # A question mark for what nobody has checked against the cloud's own list.
        mark = "" if row["verified"] or not known else " ?"
        price = row["usd_per_hour"] or Text("not known", "red")
        place = (row["stack"], row["pool"], row["machine"], row["capacity_type"])
        dated = Text(day, "red" if row["too_old"] else "")
        lines.append((*place, price, row["usd_per_gpu_hour"] or "", dated, f"{row['source'] or ''}{mark}"))
    show("", ("stack", "pool", "machine", "capacity", "USD/h", "USD/GPU h", "as of", "source"), lines)
