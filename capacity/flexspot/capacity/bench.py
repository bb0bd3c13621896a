"""`python -m flexspot.capacity.bench`: times of planning and costing, and whether they grow linearly with the number of teams."""

from __future__ import annotations

import statistics
import time
from typing import Any

from rich.console import Console
from rich.table import Table

from flexspot.capacity.catalog.machines import Vendor, machines_of
from flexspot.capacity.catalog.price_book import prices_of
from flexspot.capacity.cost.costed_plan import CostedPlan, shipped_use
from flexspot.capacity.cost.plan_cost import plan_cost
from flexspot.capacity.plan.build import build_plan
from flexspot.capacity.plan.model import plan_data
from flexspot.capacity.settings.stack_file import parse_settings

_ROUNDS = 5
_POOLS = 50
_TEAMS = (125, 250, 500)
_SHARES = 10
"""Number of pools in which one team has a share."""


def settings_of(teams: int, pools: int = _POOLS) -> dict[str, Any]:
    """Return settings with this number of teams, in departments of ten. Each team has a GPU of some of the pools."""
    machines = [each.name for each in machines_of(Vendor.AWS).values() if each.gpu and "us-east-1" in each.zones]
    departments = sorted({number // 10 for number in range(teams)})
    return {
        "cloud": "local",
        "environment": "bench",
        "owner": "bench",
        "cohorts": [{"name": f"department-{number}"} for number in departments],
        "pools": [
            {
                "name": f"pool-{number}",
                "machine": machines[number % len(machines)],
                "capacity_type": "spot",
                "max_nodes": teams,
                "serves": ["training", "best-effort"],
            }
            for number in range(pools)
        ],
        "teams": [
            {
                "name": f"team-{number}",
                "cohort": f"department-{number // 10}",
                "shares": {f"pool-{(number + step) % pools}": 1 for step in range(_SHARES)},
                "borrowing_limits": {f"pool-{number % pools}": 1},
            }
            for number in range(teams)
        ],
    }


def _seconds(teams: int) -> tuple[float, float]:
    """Return the times of building a plan from settings, and of costing the plan as read from a file."""
    document = settings_of(teams)
    planned: list[float] = []
    costed: list[float] = []
    for _ in range(_ROUNDS):
        started = time.perf_counter()
        plan = build_plan(parse_settings(document, "bench"), "bench")
        planned.append(time.perf_counter() - started)
        written = plan_data(plan)
        started = time.perf_counter()
        plan_cost(CostedPlan.model_validate(written), prices_of(Vendor.AWS), shipped_use())
        costed.append(time.perf_counter() - started)
    return statistics.median(planned), statistics.median(costed)


def main() -> None:
    """Print the medians, and each size's time per team relative to the smallest size."""
    table = Table(title=f"settings to plan, {_POOLS} pools, median of {_ROUNDS}", title_justify="left")
    for heading in ("teams", "seconds", "time of a team, ratio to the smallest", "its cost, ratio to the plan"):
        table.add_column(heading, justify="right")
    first: float | None = None
    for teams in _TEAMS:
        seconds, of_cost = _seconds(teams)
        first = first or seconds / teams
        table.add_row(str(teams), f"{seconds:.3f}", f"{seconds / teams / first:.2f}", f"{of_cost / seconds:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
