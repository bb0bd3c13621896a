"""The Pulumi program: from a stack's settings through the plan to resources, its cost among them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pulumi

from capacity.cost.costed_plan import costed
from capacity.cost.expected_use import shipped_use
from capacity.cost.plan_comparison import figures_data
from capacity.cost.plan_cost_lines import plan_cost
from capacity.plan.build import build_plan
from capacity.plan.stack_plan import price_book_of
from capacity.settings.platform import EksSettings, GkeSettings
from capacity.settings.stack_file import parse_settings
from components.spending.monthly_cost import MonthlyCost, SpendingArgs
from infra.checkout import CHECKOUT
from infra.local import declare_local

if TYPE_CHECKING:
    from capacity.catalog.price_book import PriceBook
    from capacity.cost.figures import Figures
    from capacity.plan.model import Plan


def declare_monthly_cost(plan: Plan, prices: PriceBook) -> None:
    """Registers it, worked out at `prices` and with what is expected of a month where nobody says otherwise."""
    cost = plan_cost(costed(plan), prices, shipped_use())
    MonthlyCost(
        "monthly-cost",
        {
            "environment": _spending(cost.environment, cost.total, cost.budget, cost.unknown),
            "teams": [_spending(each.name, each.figures, each.budget, each.unknown) for each in cost.teams if each.budget is not None],
        },
    )


def _spending(owner: str, figures: Figures, budget: int | None, unknown: tuple[str, ...]) -> SpendingArgs:
    told = figures_data(figures)
    spending: SpendingArgs = {
        "owner": owner,
        "expected_usd": told["expected_usd"],
        "worst_case_usd": told["worst_case_usd"],
        "idle_floor_usd": told["idle_floor_usd"],
        "unknown_prices": list(unknown),
    }
    if budget is not None:
        spending["budget_usd"] = str(budget)
    return spending


KUBECONFIG_VARIABLE = "FLEXSPOT_LAB_KUBECONFIG"
"""The lab that a `cloud: local` stack is deployed to, by the path of its kubeconfig. Default: that of the lab called default."""


def main() -> None:
    """Declares the resources of the stack that is being deployed. Raises SettingsError for settings that cannot work."""
    value: Any = pulumi.Config("flexspot").require_object("platform")
    source = f"Pulumi.{pulumi.get_stack()}.yaml"
    settings = parse_settings(value, source)
    prices = price_book_of(settings, CHECKOUT / "stacks", source)
    plan = build_plan(settings, source, prices)
    if isinstance(settings, GkeSettings):
        # A cloud's SDK takes seconds to load: only its own stacks wait for it.
        from infra.gke import declare_gke  # noqa: PLC0415

        declare_gke(plan, settings)
        declare_monthly_cost(plan, prices)
    elif isinstance(settings, EksSettings):
        from infra.eks import declare_eks  # noqa: PLC0415

        declare_eks(plan, settings)
        declare_monthly_cost(plan, prices)
    else:
        # Fake nodes cost nothing.
        declare_local(plan, lab_kubeconfig())


def lab_kubeconfig() -> Path:
    """Where the local stack's API server is."""
    return Path(os.environ.get(KUBECONFIG_VARIABLE) or CHECKOUT / ".lab" / "default" / "kubeconfig")
