"""MonthlyCost: a resource without cloud resources that has the cost of a month."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from flexspot.components.monthly_cost import MonthlyCost, MonthlyCostArgs, SpendingArgs

if TYPE_CHECKING:
    from component_types import Outputs, Refusal, Register

SPENT: SpendingArgs = {
    "owner": "dev",
    "budget_usd": "4000",
    "expected_usd": "1940.21",
    "worst_case_usd": "8521.29",
    "idle_floor_usd": "398.82",
    "unknown_prices": [],
}


def cost_args(**changes: Any) -> MonthlyCostArgs:
    environment: Any = {**SPENT, **changes}
    return {"environment": environment, "teams": [{**SPENT, "owner": "red"}]}


def test_its_output_is_the_expected_cost(outputs: Outputs) -> None:
    assert outputs(lambda: MonthlyCost("cost", cost_args())) == {"expected_usd": "1940.21"}


@pytest.mark.parametrize("budget", [None, "0", "4000.50"])
def test_a_budget_may_be_left_out(budget: str | None, register: Register) -> None:
    register(lambda: MonthlyCost("cost", cost_args(budget_usd=budget)))


@pytest.mark.parametrize("key", ["expected_usd", "expected_at_most_usd", "worst_case_usd", "idle_floor_usd", "budget_usd"])
@pytest.mark.parametrize("written", ["much", "", "NaN", "Infinity", "-1"])
def test_an_invalid_amount_is_refused_before_anything_is_registered(key: str, written: str, refusal: Refusal) -> None:
    message = refusal(MonthlyCost, "cost", cost_args(**{key: written}))

    assert f"{key} of dev (is '{written}'): must be an amount of 0 or more" in message
