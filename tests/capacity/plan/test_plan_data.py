"""A plan as plain data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from capacity.plan.build import build_plan
from capacity.plan.model import plan_data, plan_json, plan_yaml
from capacity.settings.stack_file import read_stack_file

if TYPE_CHECKING:
    from capacity.plan.model import Plan

LOCAL = Path(__file__).resolve().parents[3] / "stacks" / "Pulumi.local.yaml"


@pytest.fixture
def plan() -> Plan:
    return build_plan(read_stack_file(LOCAL))


def kinds_in(value: Any) -> set[str]:
    kind = type(value).__name__
    inside: list[Any] = [*value.values(), *value] if kind == "dict" else list(value) if kind == "list" else []
    return {kind}.union(*(kinds_in(each) for each in inside))


def test_the_data_of_a_plan_is_of_plain_types_alone(plan: Plan) -> None:
    assert kinds_in(plan_data(plan)) <= {"dict", "list", "str", "int", "bool", "NoneType"}


def test_fields_keep_the_order_of_the_plan(plan: Plan) -> None:
    data = plan_data(plan)

    assert list(data)[:4] == ["cloud", "environment", "region", "labels"]
    assert list(data["pools"][0])[:3] == ["name", "machines", "capacity_type"]
    assert data["pools"][0]["ceiling"] == {"gpus": 2, "vcpu": 8, "memory_mib": 32768}
    assert data["pools"][0]["pool_label"] == ["karpenter.sh/nodepool", "l4-on-demand"]


def test_json_and_yaml_say_the_same(plan: Plan) -> None:
    assert json.loads(plan_json(plan)) == yaml.safe_load(plan_yaml(plan)) == plan_data(plan)


def test_the_same_plan_is_the_same_bytes() -> None:
    one, two = (build_plan(read_stack_file(LOCAL)) for _ in range(2))

    assert plan_json(one) == plan_json(two)
    assert plan_yaml(one) == plan_yaml(two)


def test_yaml_has_a_line_for_each_value_and_no_references(plan: Plan) -> None:
    # An anchor would make two equal parts one, and a difference of one of them unreadable.
    lines = plan_yaml(plan).splitlines()

    assert not [line for line in lines if "&id" in line or "*id" in line]
    assert not [line for line in lines if line.rstrip().endswith(("}", "]")) and not line.endswith(("{}", "[]"))]
    assert plan_json(plan).endswith("}\n")
