"""A plan as plain data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

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


def test_json_and_yaml_say_the_same(plan: Plan) -> None:
    assert json.loads(plan_json(plan)) == yaml.safe_load(plan_yaml(plan)) == plan_data(plan)


def test_yaml_has_a_line_for_each_value_and_no_references(plan: Plan) -> None:
    # An anchor would make two equal parts one, and a difference of one of them unreadable.
    lines = plan_yaml(plan).splitlines()

    assert not [line for line in lines if "&id" in line or "*id" in line]
    assert not [line for line in lines if line.rstrip().endswith(("}", "]")) and not line.endswith(("{}", "[]"))]
    assert plan_json(plan).endswith("}\n")
