"""Reading of plan files and files of expectations, and the errors for invalid ones."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from costed_plans import STACKS, shipped

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.workload_classes import shipped_classes
from flexspot.capacity.cost.costed_plan import VERSION, read_plan_file, read_use_file, shipped_use
from flexspot.capacity.plan.build import plan_of_stack_file
from flexspot.capacity.plan.model import plan_data
from flexspot.capacity.values.errors import ExitCode, ExplainedError

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
    path = folder / "given"
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
    "text,problem",
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
def test_a_file_that_is_not_a_plan_is_refused_with_the_problem_and_the_remedy(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ExplainedError) as refused:
        read_plan_file(written(tmp_path, text))

    assert refused.value.exit_code is ExitCode.BAD_USAGE
    assert problem in str(refused.value)
    assert "--plan-out" in refused.value.remedy


def test_every_shipped_class_has_expectations_with_a_source() -> None:
    use = shipped_use()

    assert set(use.classes) == set(shipped_classes())
    assert {each.source for each in (*use.classes.values(), use.other_classes)} <= set(use.sources)


def test_a_custom_file_changes_only_what_it_names(tmp_path: Path) -> None:
    text = "classes: {training: {used_percent: 80, by_capacity_type: {spot: 12.5}}, mine: {hours_per_month: 73}}\nbucket_gib: 500\n"

    use = read_use_file(written(tmp_path, text))

    shipped = shipped_use()
    training = use.classes["training"]
    assert (training.used_percent, training.later_percent) == (80, shipped.classes["training"].later_percent)
    assert training.share(CapacityType.SPOT, first=True) == Decimal("0.125")
    assert training.share(CapacityType.RESERVED, first=True) == Decimal("0.8")
    # A tenth of the month at half the ceiling, as for any custom class.
    assert use.of_class("mine").share(CapacityType.SPOT, first=True) == Decimal("0.05")
    assert use.of_class("nobody-named") == shipped.other_classes
    assert use.classes["inference"] == shipped.classes["inference"]
    assert (use.bucket_gib, use.nat_gib) == (500, 0)


def test_figures_of_other_classes_apply_to_all_classes_without_their_own(tmp_path: Path) -> None:
    use = read_use_file(written(tmp_path, "other_classes: {used_percent: 10}\nclasses: {mine: {later_percent: 1}}\n"))

    assert (use.of_class("mine").used_percent, use.of_class("mine").later_percent) == (10, 1)
    assert use.of_class("another").used_percent == 10


@pytest.mark.parametrize(
    "text,problem",
    [
        ("classes: {training: {used_percent: 101}}", "classes.training.used_percent: Input should be less than or equal to 100"),
        ("classes: {training: {hours_per_month: 731}}", "classes.training.hours_per_month"),
        ("classes: {training: {used_per_cent: 1}}", "classes.training.used_per_cent: Extra inputs are not permitted"),
        ("bucket_gib: -1", "bucket_gib"),
        ("- a list", "(whole file)"),
        ("classes: [", "is not YAML"),
    ],
)
def test_a_file_that_is_not_understood_is_refused_with_the_field(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ExplainedError) as refused:
        read_use_file(written(tmp_path, text))

    assert refused.value.exit_code is ExitCode.BAD_USAGE
    assert problem in str(refused.value)
