"""Budgets of the whole platform and of teams."""

from dataclasses import dataclass

from flexspot.capacity.cost.costed_plan import NEAR_PERCENT, BudgetCheck, BudgetStanding
from flexspot.capacity.values.verdict import NOT_APPLICABLE, PASSES, Outcome, Severity, fails, undecided
from flexspot.policies.inventory.cloud_resources import MonthlyCostView
from flexspot.policies.judging import Level, Parameter, Parameters, Rule
from flexspot.policies.values.field import UNKNOWN, Field

_FIGURES = {"expected": "expected_usd", "worst-case": "worst_case_usd"}


_MISSING = {"expected": "unknown_prices", "worst-case": "unbounded_prices"}


_AT_MOST = {"expected": "expected_at_most_usd"}


_REFUSE = "refuse"


SCENARIO = Parameter(
    "scenario",
    "expected",
    "Estimate that is compared with a budget: expected, or worst-case, in which every enforced ceiling is reached all month.",
)


@dataclass(frozen=True)
class CheckedBudget:
    """A budget and its comparison with the estimated cost."""

    path: str
    """Path of the budget's field."""
    owner: str
    check: BudgetCheck | None
    """None if the cost or the budget is not known yet."""
    refused: bool
    """True if a budget that unknown prices may exceed is judged as exceeded."""


def checked_budgets(cost: MonthlyCostView, parameters: Parameters, near_percent: int = NEAR_PERCENT) -> list[CheckedBudget] | None:
    """Return each budget of `cost` with its check. None for an unknown scenario."""
    scenario = parameters.text(SCENARIO.name)
    if scenario not in _FIGURES:
        return None
    return [
        CheckedBudget(
            f"{path}.budget_usd", _owner(each), _check(each, scenario, near_percent), each.at("on_unknown_prices").text() == _REFUSE
        )
        for path, each in cost.spenders
        if not each.at("budget_usd").absent
    ]


def describe_uncertain(check: BudgetCheck) -> str:
    """Describe the known cost and the unknown prices of a budget that may be exceeded."""
    most = "with no upper bound" if check.at_most_usd is None else f"and {check.at_most_usd:,.2f} with them at on-demand prices"
    known = f"{check.owner} costs {check.spent_usd:,.2f} USD a month without the unknown prices, {most}"
    return f"{known}; its budget is {check.budget_usd:,}; not known: {', '.join(check.unknown)}"


def _owner(spender: Field) -> str:
    owner = spender.at("owner").text()
    return owner if isinstance(owner, str) else "an unknown owner"


def _check(spender: Field, scenario: str, near_percent: int) -> BudgetCheck | None:
    budget, spent = spender.at("budget_usd").number(), spender.at(_FIGURES[scenario]).number()
    if budget is UNKNOWN or spent is UNKNOWN or budget is None or spent is None:
        return None
    missing = tuple(str(each.value) for each in spender.at(_MISSING[scenario]).parts().fields)
    at_most = spender.at(_AT_MOST[scenario]).number() if scenario in _AT_MOST else None
    return BudgetCheck(_owner(spender), budget, spent, missing, near_percent, None if at_most is UNKNOWN else at_most)


@Rule(
    code="FLX066",
    severity=Severity.HIGH,
    why="The clouds' own budgets report money already spent; in a pull request, an oversized pool is still one line to change.",
    remediation="Lower ceilings, pick cheaper capacity, or raise budget.monthly_usd or the team's monthly_budget_usd; `flexspot cost` "
    "shows each line. A price that is missing goes into the file that prices_file names; until then budget.on_unknown_prices decides.",
    link="https://docs.cloud.google.com/billing/docs/how-to/budgets",
    sources=("https://docs.aws.amazon.com/cost-management/latest/userguide/budgets-managing-costs.html",),
    parameters=(SCENARIO,),
)
def budget_exceeded(cost: MonthlyCostView, parameters: Parameters) -> Outcome:
    """A platform whose estimated monthly cost exceeds its budget, or a team whose part exceeds the team's budget.

    If unknown prices may exceed the budget, this rule fails when the stack refuses that; otherwise budget-nearly-used warns.

    Such a budget is not reported as undecided at every preview: no later preview will know the price.
    """
    budgets = checked_budgets(cost, parameters)
    if budgets is None:
        return undecided(f"{SCENARIO.name} is {parameters.text(SCENARIO.name)!r}; allowed: expected, worst-case")
    if not budgets:
        return NOT_APPLICABLE
    scenario = parameters.text(SCENARIO.name)
    for each in budgets:
        if message := _broken(each, scenario):
            return fails(message, at=each.path)
    for each in budgets:
        if each.check is None:
            return undecided(f"the cost of {each.owner}, or its budget, is not known yet")
        if each.check.uncertain:
            return NOT_APPLICABLE
    return PASSES


def _broken(checked: CheckedBudget, scenario: str) -> str | None:
    """Return the message for a budget that is exceeded, or that may be exceeded and is refused. None otherwise."""
    check = checked.check
    if check is None:
        return None
    if check.standing is BudgetStanding.EXCEEDED:
        least = "at least " if check.unknown else ""
        return f"{check.owner} costs {least}{check.spent_usd:,.2f} USD a month ({scenario}); its budget is {check.budget_usd:,}"
    if check.uncertain and checked.refused:
        return f"{describe_uncertain(check)} ({scenario}); budget.on_unknown_prices is refuse"
    return None


_NEAR = "near-percent"


@Rule(
    code="FLX067",
    severity=Severity.LOW,
    level=Level.ADVISORY,
    why="Spot prices change by the hour, and a month has busy weeks: an ordinary month exceeds a budget without headroom.",
    remediation="Look at `flexspot cost`, and agree on ceilings or budget before the month does it. A price that is missing goes into the "
    "file that prices_file names.",
    link="https://docs.cloud.google.com/billing/docs/how-to/budgets",
    sources=("https://docs.aws.amazon.com/cost-management/latest/userguide/budgets-managing-costs.html",),
    parameters=(SCENARIO, Parameter(_NEAR, NEAR_PERCENT, "The percentage of a budget at which to warn.")),
)
def budget_nearly_used(cost: MonthlyCostView, parameters: Parameters) -> Outcome:
    """A budget that is almost fully committed before the month begins, or that unknown prices may exceed.

    budget-exceeded reports budgets that are exceeded, and those that unknown prices may exceed if the stack refuses that.
    """
    budgets = checked_budgets(cost, parameters, parameters.number(_NEAR))
    if budgets is None:
        return undecided(f"{SCENARIO.name} is {parameters.text(SCENARIO.name)!r}; allowed: expected, worst-case")
    standings = [(each, each.check.standing if each.check else None) for each in budgets]
    for each, standing in standings:
        if each.check and standing is BudgetStanding.UNKNOWN and not each.refused:
            return fails(describe_uncertain(each.check), at=each.path)
        if each.check and standing is BudgetStanding.NEAR:
            share = max(each.check.spent_usd, each.check.at_most_usd or each.check.spent_usd) * 100 / each.check.budget_usd
            return fails(f"{each.owner} is estimated to use {share:.0f}% of its budget of {each.check.budget_usd:,} USD", at=each.path)
    if budgets and all(standing is None for _, standing in standings):
        return undecided("the cost, or the budget, is not known yet")
    if any(standing is not BudgetStanding.WITHIN for _, standing in standings) or not budgets:
        return NOT_APPLICABLE
    return PASSES
