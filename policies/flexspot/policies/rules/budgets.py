"""Budgets of money, of the whole platform and of teams."""

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
    "Which month is held against a budget: expected, or worst-case, in which every enforced ceiling is reached all month.",
)


@dataclass(frozen=True)
class HeldBudget:
    """One budget, where it is written, and what is held against it. `check` is None where an amount is not known yet.

    `refused`: a budget that missing prices may exceed is held as one that is exceeded.
    """

    path: str
    owner: str
    check: BudgetCheck | None
    refused: bool


def held(cost: MonthlyCostView, parameters: Parameters, near_percent: int = NEAR_PERCENT) -> list[HeldBudget] | None:
    """Each budget of `cost`; None for a scenario that there is not."""
    scenario = parameters.text(SCENARIO.name)
    if scenario not in _FIGURES:
        return None
    return [
        HeldBudget(f"{path}.budget_usd", _owner(each), _check(each, scenario, near_percent), each.at("on_unknown_prices").text() == _REFUSE)
        for path, each in cost.spenders
        if not each.at("budget_usd").absent
    ]


def uncertain_words(check: BudgetCheck) -> str:
    """What is known of a budget that missing prices may exceed, and what is not."""
    most = "with no upper bound" if check.at_most_usd is None else f"and {check.at_most_usd:,.2f} with them at on-demand prices"
    known = f"{check.owner} costs {check.spent_usd:,.2f} USD a month without the unknown prices, {most}"
    return f"{known}; its budget is {check.budget_usd:,}; not known: {', '.join(check.unknown)}"


def _owner(spender: Field) -> str:
    owner = spender.at("owner").text()
    return owner if isinstance(owner, str) else "somebody"


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

    A budget that prices which nobody knows may exceed is refused where the stack asks for that; else budget-nearly-used warns of it.

    It is not told of as unknown at every preview: no later one will know the price.
    """
    budgets = held(cost, parameters)
    if budgets is None:
        return undecided(f"{SCENARIO.name} is {parameters.text(SCENARIO.name)!r}; allowed: expected, worst-case")
    if not budgets:
        return NOT_APPLICABLE
    scenario = parameters.text(SCENARIO.name)
    for each in budgets:
        if told := _broken(each, scenario):
            return fails(told, at=each.path)
    for each in budgets:
        if each.check is None:
            return undecided(f"the cost of {each.owner}, or its budget, is not known yet")
        if each.check.uncertain:
            return NOT_APPLICABLE
    return PASSES


def _broken(held_budget: HeldBudget, scenario: str) -> str | None:
    """How a budget is exceeded, or may be where that is refused; None where it is not."""
    check = held_budget.check
    if check is None:
        return None
    if check.standing is BudgetStanding.EXCEEDED:
        least = "at least " if check.unknown else ""
        return f"{check.owner} costs {least}{check.spent_usd:,.2f} USD a month ({scenario}); its budget is {check.budget_usd:,}"
    if check.uncertain and held_budget.refused:
        return f"{uncertain_words(check)} ({scenario}); budget.on_unknown_prices is refuse"
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

    What exceeds its budget is told by budget-exceeded, and so is one that missing prices may exceed where a stack has that refused.
    """
    budgets = held(cost, parameters, parameters.number(_NEAR))
    if budgets is None:
        return undecided(f"{SCENARIO.name} is {parameters.text(SCENARIO.name)!r}; allowed: expected, worst-case")
    standings = [(each, each.check.standing if each.check else None) for each in budgets]
    for each, standing in standings:
        if each.check and standing is BudgetStanding.UNKNOWN and not each.refused:
            return fails(uncertain_words(each.check), at=each.path)
        if each.check and standing is BudgetStanding.NEAR:
            share = max(each.check.spent_usd, each.check.at_most_usd or each.check.spent_usd) * 100 / each.check.budget_usd
            return fails(f"{each.owner} is estimated to use {share:.0f}% of its budget of {each.check.budget_usd:,} USD", at=each.path)
    if budgets and all(standing is None for _, standing in standings):
        return undecided("the cost, or the budget, is not known yet")
    if any(standing is not BudgetStanding.WITHIN for _, standing in standings) or not budgets:
        return NOT_APPLICABLE
    return PASSES
