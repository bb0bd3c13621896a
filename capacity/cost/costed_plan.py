"""A plan as far as its cost depends on it, read from the plan itself or from the file in which a preview wrote it down."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, cast

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError, model_validator

from capacity.catalog.capacity_type import CapacityType
from capacity.catalog.platform import VOCABULARIES, Platform
from capacity.catalog.price_book import PriceBook, PriceFile, prices_of
from capacity.plan.model import plan_data
from capacity.plan.spending_plan import SpendingPlan
from capacity.values.errors import ExitCode, ExplainedError

if TYPE_CHECKING:
    from pathlib import Path

    from capacity.plan.model import Plan


class _Part(BaseModel):
    """Frozen; the rest of what a plan or its file says is not looked at."""

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


class CostedRoutePool(_Part):
    """A pool that a class may use."""

    pool: str
    capacity_type: CapacityType


class CostedRoute(_Part):
    """The pools of a class in the order in which they are tried."""

    workload_class: str
    # Files written before the name changed say "rungs".
    pools: tuple[CostedRoutePool, ...] = Field(validation_alias=AliasChoices("pools", "rungs"))


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


VERSION = 1
"""The form of the file. It changes when a program that reads the old form would misread the new one."""

_REMEDY = "give the file that `flexspot preview --offline --stack NAME --plan-out FILE` writes."
_TOLD = 8


class _Cost(_Part):
    """What of the cost is needed to work it out anew: the prices of the stack's own file."""

    own_prices: PriceFile | None = None


class PlanFile(_Part):
    """A plan, the name of its stack, and the prices that it was made with besides the shipped ones."""

    version: Literal[1]
    stack: str
    plan: CostedPlan
    cost: _Cost | None

    def prices(self) -> PriceBook:
        """The shipped prices of its cloud, with those of the stack's own file before them."""
        book = prices_of(VOCABULARIES[self.plan.cloud].catalog)
        own = self.cost.own_prices if self.cost is not None else None
        return book if own is None else book.with_rows_of(own, "prices_file")


def read_plan_file(path: Path) -> PlanFile:
    """The plan of a file. Raises ExplainedError for what cannot be read, is not JSON, has another version, or is no plan."""
    try:
        written: Any = json.loads(path.read_bytes())
    except OSError as error:
        raise _refused(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise _refused(f"{path} is not JSON, or was cut off.", str(error)) from error
    fields = cast("dict[str, Any]", written) if isinstance(written, dict) else {}
    if "plan" not in fields or "stack" not in fields:
        raise _refused(f"{path} is not a plan: it has no stack and plan.")
    if fields.get("version") != VERSION:
        raise _refused(f"{path} is a plan of version {fields.get('version')!r}, and this program reads version {VERSION}.")
    try:
        return PlanFile.model_validate(fields)
    except ValidationError as error:
        told = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
        raise _refused(f"{path} is not a plan: {len(told)} of its fields are not what they must be.", *told[:_TOLD]) from error


def _refused(problem: str, *evidence: str) -> ExplainedError:
    return ExplainedError(problem, _REMEDY, exit_code=ExitCode.BAD_USAGE, evidence=evidence)
