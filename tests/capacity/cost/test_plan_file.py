"""The file of a plan, as it is read: what it must hold, and how it is told when it does not."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from costed_plans import STACKS, shipped

from capacity.catalog.capacity_type import CapacityType
from capacity.cost.costed_plan import VERSION, read_plan_file
from capacity.plan.build import plan_of_stack_file
from capacity.plan.model import plan_data
from capacity.values.errors import ExitCode, ExplainedError

if TYPE_CHECKING:
    from pathlib import Path

OWN_PRICES = {
    "cloud": "aws",
    "sources": {"contract": {"citation": "the contract of May", "as_of": "2026-05-01", "verified": True}},
    "prices": [{"machine": "g6.xlarge", "region": "us-east-1", "capacity_type": "spot", "usd_per_hour": "0.1", "source": "contract"}],
}


def content(**changes: Any) -> dict[str, Any]:
    plan = plan_data(plan_of_stack_file(STACKS / "Pulumi.dev-eks.yaml").plan)
    return {"version": VERSION, "stack": "dev-eks", "cloud": "eks", "plan": plan, "resources": [], "policies": [], "cost": None, **changes}


def written(folder: Path, text: str) -> Path:
    path = folder / "plan.json"
    path.write_text(text)
    return path


def test_a_plan_is_read_as_it_was_written(tmp_path: Path) -> None:
    file = read_plan_file(written(tmp_path, json.dumps(content())))

    assert file.stack == "dev-eks"
    assert file.plan == shipped("dev-eks")


def test_a_plan_that_calls_the_pools_of_a_route_rungs_reads_the_same(tmp_path: Path) -> None:
    plan: Any = content()["plan"]
    for route in plan["routes"]:
        route["rungs"] = route.pop("pools")

    assert read_plan_file(written(tmp_path, json.dumps(content(plan=plan)))).plan == shipped("dev-eks")


def test_the_prices_of_the_stacks_own_file_travel_with_the_plan(tmp_path: Path) -> None:
    file = read_plan_file(written(tmp_path, json.dumps(content(cost={"own_prices": OWN_PRICES, "expected_usd": "1.00"}))))

    price = file.prices().find("g6.xlarge", "us-east-1", CapacityType.SPOT)
    assert price is not None
    assert price.usd_per_hour == Decimal("0.1")
    assert file.prices().source_of(price).citation == "the contract of May"


def without(plan: dict[str, Any], *path: str) -> dict[str, Any]:
    *before, last = path
    holder = plan
    for each in before:
        holder = holder[each]
    del holder[last]
    return plan


@pytest.mark.parametrize(
    "text,told",
    [
        ("", "is not JSON, or was cut off"),
        (json.dumps(content())[:2000], "is not JSON, or was cut off"),
        ("[" * 100_000, "is not JSON, or was cut off"),
        ("[]", "is not a plan: it has no stack and plan"),
        ('{"resources": []}', "is not a plan: it has no stack and plan"),
        (json.dumps(content(version=2)), "is a plan of version 2, and this program reads version 1"),
        (json.dumps(without(content(), "version")), "is a plan of version None"),
        (json.dumps(content(plan=[])), "plan: Input should be"),
        (json.dumps(without(content(), "plan", "spending")), "plan.spending: Field required"),
        (json.dumps(content(plan=content()["plan"] | {"cloud": "azure"})), "plan.cloud"),
        (json.dumps(content(plan=content()["plan"] | {"teams": []})), "it is of teams"),
        (json.dumps(content(cost={"own_prices": {"cloud": "aws"}})), "cost.own_prices.sources: Field required"),
    ],
)
def test_what_is_no_plan_is_refused_with_what_is_wrong_and_how_to_make_one(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ExplainedError) as refused:
        read_plan_file(written(tmp_path, text))

    assert refused.value.exit_code is ExitCode.BAD_USAGE
    assert told in str(refused.value)
    assert "--plan-out" in refused.value.remedy
