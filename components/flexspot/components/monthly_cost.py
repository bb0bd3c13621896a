"""The calculated monthly cost of the platform and its budgets."""

# No `from __future__ import annotations` here: Pulumi's component host reads these annotations as types.
from decimal import Decimal, InvalidOperation
from typing import NotRequired, TypedDict

import pulumi

from flexspot.components.shared_args import publish


class SpendingArgs(TypedDict):
    """Monthly spend of an environment or a team, in US dollars as text such as "1234.50", to avoid rounding."""

    owner: str
    """The environment's or the team's name."""

    budget_usd: NotRequired[str | None]
    """The budget. Default: none is set."""

    expected_usd: str
    """The expected spend."""

    expected_at_most_usd: NotRequired[str | None]
    """The highest expected spend, with missing prices at on-demand. Default: they have no bound, or none is missing."""

    worst_case_usd: str
    """The spend if every enforced ceiling is reached all month. For a team, it includes what it may borrow."""

    idle_floor_usd: str
    """The spend when nothing runs."""

    unknown_prices: list[str]
    """Unknown prices. They are not in the expected sums, and count at on-demand prices in the worst case."""

    unbounded_prices: NotRequired[list[str]]
    """Unknown prices that are not in the worst case either. Default: none."""

    on_unknown_prices: NotRequired[str]
    """`warn` or `refuse`: reaction to a budget that missing prices could exceed. Default: warn."""


class MonthlyCostArgs(TypedDict):
    """Arguments of MonthlyCost."""

    environment: SpendingArgs
    """The whole environment."""

    teams: list[SpendingArgs]
    """The teams with a budget."""


class MonthlyCost(pulumi.ComponentResource):
    """The monthly cost, as a resource without cloud resources: previews show how a change affects it, and policies check it against the
    budgets.

    Raises ValueError for an amount that is not a number.
    """

    expected_usd: pulumi.Output[str]
    """The expected spend of the whole environment."""

    def __init__(self, name: str, args: MonthlyCostArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        for spending in (args["environment"], *args["teams"]):
            _check(name, spending)
        super().__init__("flexspot:index:MonthlyCost", name, {**args}, opts)
        self.expected_usd = pulumi.Output.from_input(args["environment"]["expected_usd"])
        publish(self)


def _check(name: str, spending: SpendingArgs) -> None:
    amounts = {key: spending[key] for key in ("expected_usd", "worst_case_usd", "idle_floor_usd")}
    optional = {"budget_usd": spending.get("budget_usd"), "expected_at_most_usd": spending.get("expected_at_most_usd")}
    for key, written in {**amounts, **{key: each for key, each in optional.items() if each is not None}}.items():
        try:
            amount = Decimal(written)
        except InvalidOperation:
            amount = Decimal("NaN")
        if not amount.is_finite() or amount < 0:
            raise ValueError(
                f"MonthlyCost {name}: {key} of {spending['owner']} (is {written!r}): must be an amount of 0 or more, such as '1234.50'"
            )
