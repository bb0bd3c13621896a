"""What a stack costs a month, and what a change adds to it, in one line at the end of `flexspot preview` and before `up` asks."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, cast

from infra.cli.console import out

if TYPE_CHECKING:
    from pulumi.automation import EngineEvent

    from capacity.plan.build import StackPlan

_MONTHLY_COST = "flexspot:index:MonthlyCost"


class DeployedCost:
    """What was worked out for the stack when it was last deployed: its resource `monthly-cost`, as the engine's events have it.

    `usd` has amounts by the names of SpendingArgs; it is empty where nothing was deployed.
    """

    def __init__(self) -> None:
        self.usd: dict[str, Decimal] = {}

    def hear(self, event: EngineEvent) -> None:
        """Takes note of one event of the engine."""
        step = event.resource_pre_event
        old = None if step is None else step.metadata.old
        if old is None or old.type != _MONTHLY_COST:
            return
        spending = cast("dict[str, Any]", (old.inputs or {}).get("environment") or {})
        for name in ("expected_usd", "worst_case_usd"):
            try:
                self.usd[name] = Decimal(str(spending[name]))
            except (KeyError, InvalidOperation):
                # Deployed by a version that wrote it in another way: then no change is told.
                continue


def show_cost_line(planned: StackPlan, deployed: DeployedCost | None = None) -> None:
    """What the stack costs a month, in one line, and what was deployed did; nothing for a lab, whose nodes are fake."""
    from capacity.cost.costed_plan import costed, shipped_use  # noqa: PLC0415
    from capacity.cost.plan_cost import plan_cost  # noqa: PLC0415
    from capacity.settings.platform import EksSettings, GkeSettings  # noqa: PLC0415
    from infra.cli.advise_report import shown_usd  # noqa: PLC0415

    if not isinstance(planned.settings, EksSettings | GkeSettings):
        return
    cost = plan_cost(costed(planned.plan), planned.prices, shipped_use())
    least, worst_least = ("at least " if each else "" for each in (cost.unknown, cost.unbounded))
    total, before = cost.total, (deployed or DeployedCost()).usd
    worst = f"{worst_least}{shown_usd(total.worst_usd)}{_change(total.worst_usd, before.get('worst_case_usd'))}"
    expected = f"{least}{shown_usd(total.expected_usd)}{_change(total.expected_usd, before.get('expected_usd'))}"
    out.print(f"Cost, USD a month: worst case {worst}, expected {expected}, with nothing running {least}{shown_usd(total.floor_usd)}.")


def _change(now: Decimal, before: Decimal | None) -> str:
    """What is added to what is deployed, prices being those of their days."""
    if before is None:
        return ""
    return f" ({now - before:+,.2f})" if now != before else " (no change)"
