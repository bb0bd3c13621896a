"""The one look-up of prices: what is known, what is not, and what to do when the list price is missing."""

from __future__ import annotations

import pytest

from capacity.catalog.machines import Cloud
from capacity.catalog.price_book import prices_of
from capacity.cost.costed_plan import machine_prices
from capacity.values.errors import ExitCode, ExplainedError


def test_without_a_list_price_the_regions_that_have_one_are_named() -> None:
    with pytest.raises(ExplainedError, match=r"no on-demand price of p5\.4xlarge in mars-1") as refused:
        machine_prices(prices_of(Cloud.AWS), "p5.4xlarge", "mars-1")

    assert refused.value.exit_code is ExitCode.BAD_USAGE
    assert "p5.4xlarge has one in" in refused.value.remedy


def test_for_a_machine_without_any_price_those_of_the_region_are_named() -> None:
    with pytest.raises(ExplainedError) as refused:
        machine_prices(prices_of(Cloud.AWS), "p4d.25xlarge", "us-east-1")

    assert "did you mean p4d.24xlarge?" in refused.value.remedy
