"""Plans and prices for the tests of costs, with round figures that can be worked out by hand. Not a test."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.machines import Vendor
from flexspot.capacity.catalog.price_book import PriceBook, PriceFile
from flexspot.capacity.cost.costed_plan import CostedPlan, costed
from flexspot.capacity.plan.build import plan_of_stack_file

if TYPE_CHECKING:
    from flexspot.capacity.cost.figures import CostLine
    from flexspot.capacity.cost.plan_cost import PlanCost

STACKS = Path(__file__).resolve().parents[3] / "stacks"
CLOUD_STACKS = ("dev-gke", "prod-gke", "dev-eks", "prod-eks")
REGION = "us-east-1"


@cache
def shipped(stack: str) -> CostedPlan:
    """Return the parts of a shipped stack that determine its cost."""
    return costed(plan_of_stack_file(STACKS / f"Pulumi.{stack}.yaml").plan)


def round_prices(**services: str) -> PriceBook:
    """Return prices: $1 an hour for a g6.xlarge on Spot, $2 on demand, $4 for a g6.2xlarge on Spot. `services`: $ per unit, by item."""
    rows = [("g6.xlarge", CapacityType.SPOT, "1"), ("g6.xlarge", CapacityType.ON_DEMAND, "2"), ("g6.2xlarge", CapacityType.SPOT, "4")]
    file = PriceFile.model_validate(
        {
            "cloud": "aws",
            "sources": {"made-up": {"citation": "made up for a test", "as_of": date(2026, 11, 22), "verified": False}},
            "services": [{"item": item.replace("_", "-"), "usd": Decimal(usd), "source": "made-up"} for item, usd in services.items()],
            "prices": [
                {"machine": machine, "region": REGION, "capacity_type": each, "usd_per_hour": Decimal(usd), "source": "made-up"}
                for machine, each, usd in rows
            ],
        }
    )
    return PriceBook(Vendor.AWS, {}, {}).with_rows_of(file, "test")


def pool(name: str, capacity_type: str = "spot", max_nodes: int = 4, *serves: str, **more: Any) -> dict[str, Any]:
    """Return a pool of g6.xlarge, one GPU a node."""
    return {
        "name": name,
        "machines": ["g6.xlarge"],
        "capacity_type": capacity_type,
        "min_nodes": 0,
        "max_nodes": max_nodes,
        "ceiling": {"gpus": max_nodes},
        "serves": list(serves or ("training",)),
        **more,
    }


def plan(*pools: dict[str, Any], teams: dict[str, int | None] | None = None, shares: Any = (), **spending: Any) -> CostedPlan:
    """Return an EKS plan with pools, teams and their budgets. Each class uses the pools that serve it in the order given."""
    classes = sorted({each for made in pools for each in made["serves"]})
    routes = [
        {
            "workload_class": each,
            "pools": [{"pool": made["name"], "capacity_type": made["capacity_type"]} for made in pools if each in made["serves"]],
        }
        for each in classes
    ]
    return CostedPlan.model_validate(
        {
            "cloud": "eks",
            "environment": "test",
            "region": REGION,
            "pools": list(pools),
            "routes": routes,
            "teams": [{"name": name, "monthly_budget_usd": budget} for name, budget in (teams or {}).items()],
            "spending": {
                "budget_usd": None,
                "disks": [],
                "system_nodes": None,
                "other_work": None,
                "services": [],
                "shares": [{"team": team, "pool": of, "gpus": gpus} for team, of, gpus in shares],
                **spending,
            },
        }
    )


def line(cost: PlanCost, name: str) -> CostLine:
    """Return the only line with this name."""
    [found] = [each for each in cost.lines if each.name == name]
    return found


def usd(cost: PlanCost, name: str) -> tuple[str, str, str]:
    """Return the worst case, expected and idle cost of a line, as text."""
    figures = line(cost, name).figures
    assert figures is not None
    return str(figures.worst_usd), str(figures.expected_usd), str(figures.floor_usd)
