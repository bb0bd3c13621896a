"""Contract prices: rows of a pool, percent off the list price, commitments, their precedence, and refused files."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
import yaml
from contract_files import contract_file
from pydantic import ValidationError

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.data_files import DataFileError
from flexspot.capacity.catalog.fresh_prices import as_yaml, with_fresh_rows
from flexspot.capacity.catalog.machines import Vendor
from flexspot.capacity.catalog.price_book import Price, PriceBook, PriceFile, prices_of

SPOT, ON_DEMAND, RESERVED = CapacityType.SPOT, CapacityType.ON_DEMAND, CapacityType.RESERVED
FLEX_START, QUEUED = CapacityType.FLEX_START, CapacityType.QUEUED
P5 = {"machine": "p5.48xlarge", "region": "us-east-1"}
LISTED = Decimal("55.04")


def book(cloud: Vendor = Vendor.AWS, **rows: list[dict[str, Any]]) -> PriceBook:
    return prices_of(cloud).with_rows_of(contract_file(cloud.value, **rows), "contract.yaml")


def usd(found: PriceBook, capacity_type: CapacityType, pool: str | None = None, machine: str = "p5.48xlarge") -> Decimal | None:
    price = found.paid(machine, "us-east-1", capacity_type, pool)
    return None if price is None else price.usd_per_hour


def test_a_reservation_has_its_own_price_or_that_of_its_machine_on_demand() -> None:
    assert usd(prices_of(Vendor.AWS), RESERVED) == LISTED
    assert usd(book(prices=[{**P5, "capacity_type": "reserved", "usd_per_hour": "31"}]), RESERVED) == 31
    assert usd(book(prices=[{**P5, "capacity_type": "on-demand", "usd_per_hour": "50"}]), RESERVED) == 50


@pytest.mark.parametrize("named", ["flex-start", "queued"])
def test_flex_start_and_queued_have_one_price(named: str) -> None:
    a3 = {"machine": "a3-highgpu-8g", "region": "us-east5"}
    found = book(Vendor.GCP, prices=[{**a3, "capacity_type": named, "usd_per_hour": "38.32"}])

    prices = [found.paid("a3-highgpu-8g", "us-east5", each) for each in (FLEX_START, QUEUED)]
    assert [each and each.usd_per_hour for each in prices] == [Decimal("38.32")] * 2


def test_the_row_of_a_pool_is_of_that_pool_alone() -> None:
    found = book(prices=[{**P5, "capacity_type": "reserved", "usd_per_hour": "31", "pool": "h100"}])

    assert (usd(found, RESERVED, "h100"), usd(found, RESERVED, "other"), usd(found, RESERVED)) == (31, LISTED, LISTED)


def test_a_discount_is_off_the_list_and_says_so() -> None:
    found = book(discounts=[{"capacity_type": "on-demand", "percent": "12.5"}])
    price = found.paid("p5.48xlarge", "us-east-1", ON_DEMAND)

    assert price is not None
    assert price.usd_per_hour == LISTED * Decimal("0.875")
    source, listed = found.source_of(price), prices_of(Vendor.AWS)
    assert source.citation.startswith("the contract of May: 12.5 % off pkg/providers/pricing/")
    assert source.as_of == min(source.as_of, listed.sources["karpenter-1.15.1"].as_of), "a price is as old as the older of the two"
    assert usd(found, SPOT) == usd(listed, SPOT)


def test_of_several_discounts_the_narrowest_counts_and_a_price_of_the_contract_has_nothing_off() -> None:
    wide = {"capacity_type": "on-demand", "percent": "10"}
    found = book(
        discounts=[{**wide, "percent": "30", "pool": "h100"}, {**wide, "percent": "20", "machine": "p5.48xlarge"}, wide],
        prices=[{"machine": "g6.xlarge", "region": "us-east-1", "capacity_type": "on-demand", "usd_per_hour": "0.7"}],
    )

    assert usd(found, ON_DEMAND) == LISTED * Decimal("0.8")
    assert usd(found, ON_DEMAND, "h100") == LISTED * Decimal("0.7")
    assert usd(found, ON_DEMAND, machine="g6.xlarge") == Decimal("0.7")
    assert usd(found, ON_DEMAND, machine="g5.xlarge") == (usd(prices_of(Vendor.AWS), ON_DEMAND, machine="g5.xlarge") or 0) * Decimal("0.9")


def test_a_second_file_takes_its_discounts_off_the_list_too() -> None:
    first = book(discounts=[{"capacity_type": "on-demand", "percent": "10"}])
    second = first.with_rows_of(contract_file(discounts=[{"capacity_type": "on-demand", "percent": "20"}]), "second.yaml")

    assert usd(second, ON_DEMAND) == LISTED * Decimal("0.8"), "not 28 percent"


@pytest.mark.parametrize(
    "rows,problem",
    [
        ({"prices": [{**P5, "capacity_type": "queued", "usd_per_hour": "1"}]}, "aws sells no queued capacity; it sells reserved, spot"),
        ({"discounts": [{"capacity_type": "flex-start", "percent": "1"}]}, "aws sells no flex-start capacity"),
        ({"discounts": [{"capacity_type": "spot", "percent": "100"}]}, "Input should be less than 100"),
        ({"discounts": [{"capacity_type": "spot", "percent": "5"}] * 2}, "spot any any any has two discounts"),
        ({"discounts": [{"capacity_type": "spot", "percent": "5", "source": "hearsay"}]}, "source 'hearsay' is not one of contract"),
        ({"commitments": [{**P5, "nodes": 0}]}, "greater than or equal to 1"),
        ({"commitments": [{**P5, "nodes": 1, "start": "2026-10-02", "end": "2026-10-01T12:00:00Z"}]}, "which is not after its start"),
        ({"commitments": [{**P5, "nodes": 1, "usd_per_month": "9"}]}, "Extra inputs are not permitted"),
        ({"prices": [{**P5, "capacity_type": "spot", "pool": "a", "usd_per_hour": "1"}] * 2}, "p5.48xlarge us-east-1 spot pool a has two"),
    ],
)
def test_impossible_contracts_are_refused(rows: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError) as error:
        contract_file(**rows)

    assert problem in str(error.value)


@pytest.mark.parametrize(
    "cloud,discount,problem",
    [
        (
            Vendor.AWS,
            {"capacity_type": "spot", "percent": "5", "machine": "p5.48xlargo"},
            "off nothing: the book lists no spot price of it",
        ),
        (Vendor.GCP, {"capacity_type": "queued", "percent": "5", "region": "mars"}, "off nothing: the book lists no queued price of it"),
    ],
)
def test_a_discount_on_what_has_no_list_price_is_refused(cloud: Vendor, discount: dict[str, str], problem: str) -> None:
    with pytest.raises(DataFileError, match=problem):
        book(cloud, discounts=[discount])


def test_refreshing_a_file_keeps_the_contract() -> None:
    file = contract_file(
        prices=[{**P5, "capacity_type": "spot", "usd_per_hour": "9", "pool": "h100"}, {**P5, "capacity_type": "spot", "usd_per_hour": "8"}],
        discounts=[{"capacity_type": "on-demand", "percent": "10"}],
        commitments=[{**P5, "nodes": 2, "end": "2027-01-01T00:00:00Z"}],
    )
    fresh = Price(machine="p5.48xlarge", region="us-east-1", capacity_type=SPOT, usd_per_hour=Decimal(7), source="contract")

    after = with_fresh_rows(file, Vendor.AWS, [fresh], [], {})
    assert {(each.pool, each.usd_per_hour) for each in after.prices} == {("h100", Decimal(9)), (None, Decimal(7))}
    assert (after.discounts, after.commitments) == (file.discounts, file.commitments)
    assert PriceFile.model_validate(yaml.safe_load(as_yaml(after))) == after
