"""A platform that is worked out to cost more in a month than its budget, or a team's part of it more than the team's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.cost.plan_comparison import Standing
from capacity.values.verdict import PASSES, Severity, fails, not_applicable, undecided
from policies.inventory.cloud_resources import SCENARIO, MonthlyCost, held
from policies.judging import BOTH_CLOUDS, Level, Rule, WithoutCel

if TYPE_CHECKING:
    from capacity.values.verdict import Outcome
    from policies.values.parameters import Parameters


def judge(cost: MonthlyCost, parameters: Parameters) -> Outcome:
    """What has no known price is in no sum: a budget may be exceeded without it, and cannot be said to be kept.

    That is then not said, rather than told of as unknown at every preview: no later one will know the price. `flexspot cost` names it.
    """
    budgets = held(cost, parameters)
    if budgets is None:
        return undecided(f"{SCENARIO.name} is {parameters.text(SCENARIO.name)!r}; allowed is expected or worst-case")
    if not budgets:
        return not_applicable("nobody has set a budget")
    scenario = parameters.text(SCENARIO.name)
    for each in budgets:
        if each.check and each.check.standing is Standing.EXCEEDED:
            spent, budget = f"{each.check.spent_usd:,.2f}", f"{each.check.budget_usd:,}"
            least = "at least " if each.check.unknown else ""
            told = f"{each.owner} costs {least}{spent} USD in a month ({scenario}), and its budget is {budget}"
            return fails(told, at=each.path)
    for each in budgets:
        if each.check is None:
            return undecided(f"what {each.owner} costs, or its budget, is not known yet")
        if each.check.unknown:
            return not_applicable(f"whether {each.owner} keeps to its budget hangs on prices that nobody knows: {each.check.unknown}")
    return PASSES


RULE = Rule(
    code="FLX066",
    name="budget-exceeded",
    severity=Severity.HIGH,
    level=Level.MANDATORY,
    clouds=BOTH_CLOUDS,
    looks_at=(MonthlyCost,),
    judge=judge,
    without_cel=WithoutCel.OWN_PROGRAM,
    why="The clouds' own budgets tell of money that is spent; in a pull request too large a pool is still a line to change.",
    remediation=(
        "Lower ceilings, pick cheaper capacity, or raise budget.monthly_usd or the team's monthly_budget_usd; `flexspot cost` shows each "
        "line. A price that is missing goes into the file that prices_file names."
    ),
    link="https://docs.cloud.google.com/billing/docs/how-to/budgets",
    sources=("https://docs.aws.amazon.com/cost-management/latest/userguide/budgets-managing-costs.html",),
    parameters=(SCENARIO,),
)
