"""Rules of budgets with other parameters: another scenario, another percentage, and a scenario that does not exist."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from flexspot.capacity.values.verdict import Verdict
from flexspot.policies.core import judge
from flexspot.policies.inventory.reading.source import from_pulumi
from flexspot.policies.judging import read_settings
from flexspot.policies.rules import all_rules

if TYPE_CHECKING:
    from flexspot.policies.values.finding import Finding

SPENT: dict[str, Any] = {"owner": "dev", "budget_usd": "4000", "expected_usd": "1940.21", "worst_case_usd": "8521.29", "unknown_prices": []}
BUDGETS = ("budget-exceeded", "budget-nearly-used")


def found(rule: str, **settings: Any) -> Finding:
    [chosen] = [each for each in all_rules() if each.name == rule]
    source = from_pulumi("flexspot:index:MonthlyCost", "monthly-cost", {"environment": SPENT, "teams": []})
    [finding] = judge(source, [chosen], read_settings({rule: settings}, [chosen]))
    return finding


def test_the_worst_case_can_be_compared_with_the_budget() -> None:
    assert found("budget-exceeded").verdict is Verdict.PASS
    exceeded = found("budget-exceeded", scenario="worst-case")

    assert exceeded.verdict is Verdict.FAIL
    assert exceeded.message == "dev costs 8,521.29 USD a month (worst-case); its budget is 4,000"
    assert exceeded.at == "environment.budget_usd"


def test_the_percentage_of_a_budget_to_report_from_can_be_set() -> None:
    near = found("budget-nearly-used", **{"near-percent": 48})

    assert found("budget-nearly-used", **{"near-percent": 49}).verdict is Verdict.PASS
    assert (near.verdict, near.message) == (Verdict.FAIL, "dev is estimated to use 49% of its budget of 4,000 USD")


@pytest.mark.parametrize("rule", BUDGETS)
def test_an_unknown_scenario_is_reported_and_leaves_the_rule_undecided(rule: str) -> None:
    finding = found(rule, scenario="best-case")

    assert finding.verdict is Verdict.UNKNOWN
    assert finding.message == "scenario is 'best-case'; allowed: expected, worst-case"
