"""A plan as far as its cost depends on it, read from the plan itself or from a file that a preview wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field, model_validator

from capacity.capacity_type import CapacityType
from capacity.plan_data import plan_data
from capacity.platform import Platform
from capacity.spending_plan import SpendingPlan

if TYPE_CHECKING:
    from capacity.plan import Plan


class _Part(BaseModel):
    """Frozen; the rest of what a plan says is not looked at."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class CostedCeiling(_Part):
    """The most of a pool, in GPUs."""

    gpus: int = Field(ge=1)


class CostedPool(_Part):
    """A pool: `machines` begins with the one asked for; nodes and GPUs as in PoolPlan."""

    name: str
    machines: tuple[str, ...] = Field(min_length=1)
    capacity_type: CapacityType
    min_nodes: int = Field(ge=0)
    max_nodes: int = Field(ge=1)
    ceiling: CostedCeiling
    serves: tuple[str, ...] = Field(min_length=1)


class CostedRung(_Part):
    """A pool that a class may use."""

    pool: str
    capacity_type: CapacityType


class CostedRoute(_Part):
    """The pools of a class in the order in which they are tried."""

    workload_class: str
    rungs: tuple[CostedRung, ...]


class CostedTeam(_Part):
    """A team and its budget in US dollars a month."""

    name: str
    budget: int | None = Field(alias="monthly_budget_usd")


class CostedPlan(_Part):
    """The plan."""

    cloud: Platform
    environment: str
    region: str
    pools: tuple[CostedPool, ...]
    routes: tuple[CostedRoute, ...]
    teams: tuple[CostedTeam, ...]
    spending: SpendingPlan

    @model_validator(mode="after")
    def _shares_are_of_its_teams(self) -> CostedPlan:
        teams = {each.name for each in self.teams}
        for share in self.spending.shares:
            if share.team not in teams or share.gpus < 0:
                raise ValueError(f"spending.shares has {share.gpus} GPUs of {share.pool} for {share.team}; it is of teams, and 0 or more")
        return self


def costed(plan: Plan) -> CostedPlan:
    """What its cost depends on, of a plan; the same as of the file in which it is written down."""
    return CostedPlan.model_validate(plan_data(plan))
