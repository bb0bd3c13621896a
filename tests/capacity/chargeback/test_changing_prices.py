"""Prices that change within the month: each minute costs the price of that minute, paid by the owners of its GPUs."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from chargeback_months import HOUR, Month, at
from contract_files import contract_file
from pydantic import ValidationError

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.machines import Vendor
from flexspot.capacity.catalog.price_book import prices_of
from flexspot.capacity.chargeback.node_costs import PriceTimes
from flexspot.capacity.chargeback.queries import CENTRAL, Question
from flexspot.infra.cli.money import chargeback_tables as words
from flexspot.infra.cli.money.chargeback_formats import report_data

SPOT = {"machine": "p4d.24xlarge", "region": "us-east-1", "capacity_type": "spot"}
P5 = {"machine": "p5.48xlarge", "region": "us-east-1", "capacity_type": "reserved"}


def spot_prices(*rows: tuple[str | None, str], **more: str) -> list[dict[str, Any]]:
    return [{**SPOT, **more, "usd_per_hour": usd, **({} if start is None else {"start": start})} for start, usd in rows]


def test_an_hour_costs_its_price_and_the_owners_of_its_gpus_pay_it() -> None:
    month = Month(hours=10)
    month.node("spot-1", 0, 10 * HOUR)
    month.pod("early", "spot-1", 0, 4 * HOUR, gpus=8, team="vision")
    month.pod("late", "spot-1", 4 * HOUR, 10 * HOUR, gpus=4, team="speech")
    own = contract_file(prices=spot_prices((None, "8.00"), (at(4), "16.00"), (at(7, 1800), "4.00")))
    report = month.report(own=own)

    # 4 hours at 8; 3.5 at 16 and 2.5 at 4. One half is allocated, the other idle.
    assert {key[0]: each.usd for key, each in report.by("team").items()} == {
        "vision": Decimal("32.00"),
        "speech": Decimal("33.00"),
        CENTRAL: Decimal("33.00"),
    }
    assert report.node_usd == Decimal("98.00")
    assert [(each.nodes, each.node_seconds, each.usd) for each in report.nodes] == [(1, 10 * HOUR, Decimal("98.00"))]
    assert sorted({(each.supply.rate.paid, each.machine_seconds) for each in report.charges if each.line.team == "speech"}) == [
        (4, Fraction(5 * HOUR, 4)),
        (16, Fraction(7 * HOUR, 4)),
    ]


def test_before_its_first_start_a_price_is_what_the_book_says_without_it() -> None:
    month = Month(hours=2)
    month.node("spot-1", 0, 2 * HOUR)
    report = month.report(own=contract_file(prices=spot_prices((at(1), "10.00"))))

    assert report.node_usd == Decimal("17.64")


def test_the_report_says_which_price_changed_when_and_from_which_source() -> None:
    month = Month(hours=10)
    month.node("spot-1", 0, 10 * HOUR)
    month.pod("p", "spot-1", 0, HOUR, team="vision")
    own = contract_file(prices=[*spot_prices((at(4), "16.50")), *spot_prices((at(0, 300), "1.00"), region="us-west-2")])
    report = month.report(own=own)

    [change] = report_data(report)["price_changes"]
    assert change == {
        "machine": "p4d.24xlarge",
        "region": "us-east-1",
        "capacity_type": "spot",
        "pool": "a100-spot",
        "from": "2026-10-01T04:00:00Z",
        "usd_per_hour_before": "7.6435",
        "usd_per_hour": "16.5",
        "source": "own: contract",
    }, "the one in a region without nodes is not reported"
    [table] = [each for each in words.tables(report) if each.title == "prices that changed"]
    row = ("spot price of p4d.24xlarge in us-east-1 (pool a100-spot)", "2026-10-01 04:00 UTC", "own: contract", "7.6435", "16.5")
    assert table.rows == (row,)


def test_missing_reserved_nodes_cost_the_price_of_that_time() -> None:
    month = Month(hours=10)
    own = contract_file(
        prices=[{**P5, "usd_per_hour": "40.00"}, {**P5, "usd_per_hour": "30.00", "start": at(6)}],
        commitments=[{"machine": "p5.48xlarge", "region": "us-east-1", "nodes": 2}],
    )
    month.node("h100-0", 0, 8 * HOUR, machine="p5.48xlarge", bought="reserved", pool="h100")
    month.node("spot-1", 0, 10 * HOUR)
    report = month.report(own=own)

    # One of two nodes is missing for 6 hours at 40 and 2 at 30. Both are missing for 2 hours at 30.
    [kept] = report.commitments
    assert kept.usd == Decimal(6 * 40 + 2 * 30 + 2 * 2 * 30)
    assert report.node_usd == kept.usd + Decimal(6 * 40 + 2 * 30) + Decimal("76.44")
    assert report.complete


def test_how_busy_gpus_were_does_not_depend_on_when_prices_change() -> None:
    month = Month(hours=3)
    month.node("spot-1", 0, 3 * HOUR)
    month.pod("a", "spot-1", 0, 3 * HOUR, gpus=2)
    month.seen(Question.UTILISATION, {"namespace": "ns-vision", "pod": "a"}, 0, 3 * HOUR, 1.5)
    whole = month.report().total
    # Between two samples, because prices do not change at the times of scrapes.
    rows = [(at(0, each), str(3 + number)) for number, each in enumerate((601, 3625, 7001))]
    cut = month.report(own=contract_file(prices=spot_prices(*rows))).total

    assert (cut.gpu_seconds, cut.measured) == (whole.gpu_seconds, whole.measured) == (6 * HOUR, 6 * HOUR)
    assert cut.used == pytest.approx(whole.used)


@pytest.mark.parametrize(
    "rows,problem",
    [
        ([("2026-10-10", "1.00")], "no offset from UTC; write it as in 2026-10-10T00:00:00\\+00:00"),
        ([("2026-10-10T08:00:00", "1.00")], "no offset from UTC"),
        ([("2026-10-10T08:00:00.5Z", "1.00")], "parts of a second"),
        ([("2026-10-10T08:00:00Z", "1.00"), ("2026-10-10T10:00:00+02:00", "2.00")], "has two prices from 2026-10-10T10:00:00\\+02:00 on"),
        ([("2026-10-10T08:00:00Z", "1.00"), ("2026-10-09T08:00:00Z", "2.00")], "write them in the order of time"),
        ([("2026-10-10T08:00:00Z", "1.00"), (None, "2.00")], "the price without a start stands after that from 2026-10-10"),
        ([(None, "1.00"), (None, "2.00")], "has two prices$"),
    ],
)
def test_starts_without_an_offset_out_of_order_or_twice_are_refused(rows: list[tuple[str | None, str]], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem.removesuffix("$")):
        contract_file(prices=spot_prices(*rows))


def test_plans_are_costed_at_the_prices_of_the_books_moment() -> None:
    own = contract_file(prices=spot_prices((None, "1.00"), ("2026-01-01T00:00:00Z", "2.00"), ("2999-01-01T00:00:00Z", "3.00")))
    book = prices_of(Vendor.AWS).with_rows_of(own, "own")

    found = book.find("p4d.24xlarge", "us-east-1", CapacityType.SPOT)
    assert found is not None
    assert found.usd_per_hour == 2


def test_a_file_of_one_cloud_changes_no_price_of_the_other() -> None:
    times = PriceTimes(own=contract_file(prices=spot_prices((at(0, 300), "1.00"))), name="own")
    assert times.at(Vendor.GCP, 0) is times.at(Vendor.GCP, 2**31) is prices_of(Vendor.GCP)
    assert times.at(Vendor.AWS, times.changes[0]) is times.at(Vendor.AWS, times.changes[0] + 1)
    assert times.at(Vendor.AWS, times.changes[0]) is not times.at(Vendor.AWS, times.changes[0] - 1)
