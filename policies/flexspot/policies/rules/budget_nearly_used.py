"""A budget that is almost fully committed before the month begins, or that unknown prices may exceed."""

from flexspot.capacity.cost.costed_plan import NEAR_PERCENT, BudgetStanding
from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.cloud_resources import MonthlyCostView
from flexspot.policies.judging import Level, Parameter, Parameters, Rule
from flexspot.policies.pools import SCENARIO, held, uncertain_words

_NEAR = "near-percent"


def judge(cost: MonthlyCostView, parameters: Parameters) -> Outcome:
    """What exceeds its budget is told by budget-exceeded, and so is one that missing prices may exceed where a stack has that refused."""
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
        return not_applicable("no budget is set, or budget-exceeded reports it")
    return PASSES


RULE = Rule(
    code="FLX067",
    severity=Severity.LOW,
    level=Level.ADVISORY,
    judge=judge,
    why="Spot prices change by the hour, and a month has busy weeks: an ordinary month exceeds a budget without headroom.",
    remediation=(
        "Look at `flexspot cost`, and agree on ceilings or budget before the month does it. A price that is missing goes into the file "
        "that prices_file names."
    ),
    link="https://docs.cloud.google.com/billing/docs/how-to/budgets",
    sources=("https://docs.aws.amazon.com/cost-management/latest/userguide/budgets-managing-costs.html",),
    parameters=(SCENARIO, Parameter(_NEAR, NEAR_PERCENT, "The percentage of a budget at which to warn.")),
)
