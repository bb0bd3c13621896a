"""Costs of units of work, and savings when a development pool is off; compared with the course's figures where there are any."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.machines import Vendor, machines_of
from flexspot.capacity.catalog.price_book import prices_of
from flexspot.capacity.cost.advice import DevelopmentUse, gpu_hours_per_1000_requests, scaled_to_zero, usd_per_1000_requests
from flexspot.capacity.values.quantities import HOURS_OF_A_YEAR, saved_percent, usd_of_hours

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "costs.md"
USD = Decimal(10)
P4D, P4D_SPOT = Decimal("32.77"), Decimal("12.50")


@pytest.mark.parametrize(
    "found,usd",
    [
        pytest.param(usd_of_hours(Decimal("98.32"), HOURS_OF_A_YEAR), "861283.20", id="a p5.48xlarge for a year"),
        pytest.param(usd_of_hours(Decimal(3), 4, 8), "96", id="an epoch: 8 GPUs, 4 h"),
        pytest.param(usd_per_1000_requests(Decimal(3), 0.01), "0.03", id="1,000 requests: 0.01 GPU hours"),
        pytest.param(usd_per_1000_requests(Decimal(3), 0.01, 0.5), "0.06", id="the same on GPUs that are busy half of the time"),
    ],
)
def test_the_cost_of_a_unit_agrees_with_a_calculation_by_hand(found: Decimal, usd: str) -> None:
    assert found == Decimal(usd)


def test_forty_requests_a_second_take_25_seconds_of_a_gpu_for_a_thousand() -> None:
    assert gpu_hours_per_1000_requests(40) == pytest.approx(25 / 3600)


def test_half_of_the_day_saves_half() -> None:
    found = scaled_to_zero(DevelopmentUse(2, 12), USD)

    assert (found.always_on_usd, found.usd, found.saved_usd, found.saved_percent) == (14600, 7300, 7300, 50)


def test_eight_nodes_for_ten_hours_a_day_on_spot() -> None:
    found = scaled_to_zero(DevelopmentUse(8, 10), P4D, P4D_SPOT)

    assert (round(found.always_on_usd, 2), f"{found.saved_percent:.1f}") == (Decimal("191376.80"), "84.1")


def test_starting_and_staying_around_are_paid_for() -> None:
    """Two sessions a day with 20 + 10 additional minutes each: an additional hour a day."""
    use = DevelopmentUse(1, 11, sessions_per_day=2, start_minutes=20, idle_minutes=10)

    assert use.billed_hours_per_day == 12
    assert scaled_to_zero(use, USD).saved_percent == 50


def test_sessions_so_close_that_the_node_stays_save_nothing() -> None:
    assert scaled_to_zero(DevelopmentUse(1, 8, sessions_per_day=20, idle_minutes=60), USD).saved_percent == 0


@given(st.floats(0, 23), st.floats(0, 1), st.floats(0, 5), st.floats(0, 60))
def test_more_use_never_saves_more(hours: float, more: float, sessions: float, minutes: float) -> None:
    less = DevelopmentUse(3, hours, sessions, 5, minutes)
    longer = DevelopmentUse(3, hours + more, sessions, 5, minutes)

    assert scaled_to_zero(longer, USD).usd >= scaled_to_zero(less, USD).usd
    assert 0 <= scaled_to_zero(longer, USD).saved_percent <= 100


@pytest.mark.parametrize("hours,nodes,minutes", [(25, 1, 0), (-1, 1, 0), (8, 0, 0), (8, 1, -1)])
def test_a_use_that_fits_into_no_day_is_refused(hours: float, nodes: int, minutes: float) -> None:
    with pytest.raises(ValueError, match=r"between 0 and 24|nodes must be 1 or more"):
        DevelopmentUse(nodes, hours, idle_minutes=minutes)


def spot_discounts(cloud: Vendor) -> list[Decimal]:
    """Return the discounts of GPU machines in percent, where a source has both prices."""
    book, machines = prices_of(cloud), machines_of(cloud)
    found: list[Decimal] = []
    for (machine, region, capacity_type), price in book.prices.items():
        on_demand = book.find(machine, region, CapacityType.ON_DEMAND)
        if capacity_type is CapacityType.SPOT and machines[machine].gpu and on_demand:
            found.append(saved_percent(price.usd_per_hour, on_demand.usd_per_hour))
    return sorted(found)


def test_up_to_90_percent_is_not_what_gpus_get() -> None:
    """A claim of the guide's matrix. On GKE the price book's best discount is 65 %, and three in four are below the 53 % of flex-start."""
    gke, eks = spot_discounts(Vendor.GCP), spot_discounts(Vendor.AWS)

    assert (f"{gke[len(gke) // 2]:.0f}", f"{gke[-1]:.0f}", f"{eks[len(eks) // 2]:.0f}", f"{eks[-1]:.0f}") == ("40", "65", "63", "81")
    below = sum(each < 53 for each in gke)
    assert f"{below} of {len(gke)}" in GUIDE.read_text(encoding="utf-8")
