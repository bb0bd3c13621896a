"""The price book: lookup, precedence, and refused files."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.data_files import DataFileError
from flexspot.capacity.catalog.machines import Vendor
from flexspot.capacity.catalog.price_book import ServiceItem, prices_of, read_prices

if TYPE_CHECKING:
    from pathlib import Path

SPOT, ON_DEMAND = CapacityType.SPOT, CapacityType.ON_DEMAND

PRICES = """
cloud: aws
sources:
  list: {citation: the vendor's price list, as_of: 2026-11-21, verified: true}
prices:
  - {machine: g6.xlarge, region: us-east-1, capacity_type: spot, usd_per_hour: "0.3", source: list}
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "negotiated.yaml"
    path.write_text(PRICES.replace("0.3", "0.2").replace("the vendor's price list", "the contract of May"))
    return path


def test_rows_of_a_custom_file_take_precedence_and_name_the_file_as_source(own: Path) -> None:
    (own.parent / "prices.yaml").write_text(PRICES)
    book = read_prices(own.parent / "prices.yaml").overridden_by(own)

    price = book.find("g6.xlarge", "us-east-1", SPOT)

    assert price is not None
    assert (price.usd_per_hour, price.source) == (Decimal("0.2"), "negotiated.yaml: list")
    assert book.source_of(price).citation == "the contract of May", "both files call their source the same"


def test_the_prices_of_another_cloud_are_refused(own: Path) -> None:
    with pytest.raises(DataFileError, match=r"negotiated\.yaml has prices of aws, but those of gcp are needed"):
        prices_of(Vendor.GCP).overridden_by(own)


@pytest.mark.parametrize("cloud", Vendor)
def test_every_shipped_price_has_a_source_and_only_one_with_a_day_of_its_own_is_verified(cloud: Vendor) -> None:
    book = prices_of(cloud)

    assert book.cloud is cloud
    sources = [book.source_of(price) for price in (*book.prices.values(), *book.services.values())]
    assert not [each for each in sources if each.verified and (each.undated or "day of reading" in each.citation)]
    assert any(each.verified for each in sources) is (cloud is Vendor.AWS), "of Google's list no copy with a day was found"


SERVICES = """
cloud: aws
sources:
  list: {citation: the vendor's price list, as_of: 2026-11-21, verified: true}
services:
  - {item: nat-gateway, region: us-east-1, usd: "0.045", source: list}
  - {item: nat-gateway, usd: "0.06", source: list}
  - {item: kms-key, usd: "1", source: list}
"""


def test_a_service_has_the_price_of_its_region_or_that_of_all_others(tmp_path: Path) -> None:
    path = tmp_path / "services.yaml"
    path.write_text(SERVICES)

    book = read_prices(path)

    found = [book.find_service(ServiceItem.NAT_GATEWAY, region) for region in ("us-east-1", "eu-west-1")]
    assert [each and each.usd for each in found] == [Decimal("0.045"), Decimal("0.06")]
    assert book.find_service(ServiceItem.CLUSTER, "us-east-1") is None


@pytest.mark.parametrize(
    "text,line,broken,problem",
    [
        (PRICES, "source: list}", "source: rumour}", "source 'rumour' is not one of list"),
        (PRICES, 'usd_per_hour: "0.3"', 'usd_per_hour: "0"', "prices.0.usd_per_hour: Input should be greater than 0"),
        (PRICES, 'usd_per_hour: "0.3"', 'usd_per_hour: "nan"', "prices.0.usd_per_hour: Input should be a finite number"),
        (PRICES, "capacity_type: spot", "capacity_type: preemptible", "prices.0.capacity_type: Input should be 'reserved', 'flex-start', "),
        (PRICES, "cloud: aws", "cloud: azure", "cloud: Input should be 'aws' or 'gcp'"),
        (PRICES, "as_of: 2026-11-21, ", "", "sources.list.as_of: Field required"),
        (PRICES, "region: us-east-1, ", "region: us-east-1, currency: eur, ", "prices.0.currency: Extra inputs"),
        (PRICES, "prices:", f"prices:\n{PRICES.splitlines()[-1]}", "g6.xlarge us-east-1 spot has two prices"),
        (SERVICES, '"1", source: list', '"1", source: hearsay', "kms-key: source 'hearsay' is not one of list"),
        (SERVICES, "item: kms-key", "item: nat-gateway", "nat-gateway in all regions has two prices"),
        (SERVICES, "item: kms-key", "item: kms", "services.2.item"),
        (SERVICES, 'usd: "1"', 'usd: "0"', "services.2.usd"),
    ],
)
def test_a_broken_row_is_named(text: str, line: str, broken: str, problem: str, tmp_path: Path) -> None:
    assert line in text
    path = tmp_path / "prices.yaml"
    path.write_text(text.replace(line, broken))

    with pytest.raises(DataFileError, match=re.escape(problem)):
        read_prices(path)


@pytest.mark.parametrize("region,in_the_shipped_list", [("europe-west9", 0), ("us-central1", 1)])
def test_one_family_in_a_custom_file_does_not_affect_the_others(region: str, in_the_shipped_list: int, tmp_path: Path) -> None:
    """One row used to mark all other families as not sold there, and the worst case was no longer a bound."""
    path = tmp_path / "own.yaml"
    path.write_text(
        "cloud: gcp\nsources:\n  offer: {citation: an offer of November, as_of: 2026-11-21, verified: true}\nfamilies:\n"
        f'  - {{family: e2-standard, region: {region}, vcpu: 2, memory_gib: 8, usd_per_hour: "0.08", source: offer}}\n'
    )
    shipped = prices_of(Vendor.GCP)

    book = shipped.overridden_by(path)

    others = [each for each in shipped.family_names if each != "e2-standard"]
    assert book.unpriced_families(region) == ([] if in_the_shipped_list else others)
