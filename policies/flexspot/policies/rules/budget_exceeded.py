"""A platform whose estimated monthly cost exceeds its budget, or a team whose part exceeds the team's budget."""

from flexspot.capacity.cost.costed_plan import BudgetStanding
from flexspot.capacity.values.verdict import PASSES, Outcome, Severity, fails, not_applicable, undecided
from flexspot.policies.inventory.cloud_resources import MonthlyCostView
from flexspot.policies.judging import Parameters, Rule
from flexspot.policies.pools import SCENARIO, HeldBudget, held, uncertain_words


def judge(cost: MonthlyCostView, parameters: Parameters) -> Outcome:
    """A budget that prices which nobody knows may exceed is refused where the stack asks for that; else budget-nearly-used warns of it.

    It is not told of as unknown at every preview: no later one will know the price.
    """
    budgets = held(cost, parameters)
    if budgets is None:
        return undecided(f"{SCENARIO.name} is {parameters.text(SCENARIO.name)!r}; allowed: expected, worst-case")
    if not budgets:
        return not_applicable("no budget is set")
    scenario = parameters.text(SCENARIO.name)
    for each in budgets:
        if told := _broken(each, scenario):
            return fails(told, at=each.path)
    for each in budgets:
        if each.check is None:
            return undecided(f"the cost of {each.owner}, or its budget, is not known yet")
        if each.check.uncertain:
            return not_applicable(f"whether {each.owner} stays within its budget depends on unknown prices; budget-nearly-used reports it")
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


RULE = Rule(
    code="FLX066",
    severity=Severity.HIGH,
    judge=judge,
    why="The clouds' own budgets report money already spent; in a pull request, an oversized pool is still one line to change.",
    remediation=(
        "Lower ceilings, pick cheaper capacity, or raise budget.monthly_usd or the team's monthly_budget_usd; `flexspot cost` shows each "
        "line. A price that is missing goes into the file that prices_file names; until then budget.on_unknown_prices decides."
    ),
    link="https://docs.cloud.google.com/billing/docs/how-to/budgets",
    sources=("https://docs.aws.amazon.com/cost-management/latest/userguide/budgets-managing-costs.html",),
    parameters=(SCENARIO,),
)
