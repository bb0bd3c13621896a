"""A plan as plain data: for files, for other programs, for people who compare two of them."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from capacity.plan import Plan


def plan_data(plan: Plan) -> dict[str, Any]:
    """The plan in dicts, lists, texts and numbers, its fields in their own order; the same plan gives the same data."""
    return _plain(plan)


def plan_json(plan: Plan) -> str:
    """The plan as JSON: same plan, same bytes."""
    return json.dumps(plan_data(plan), indent=2) + "\n"


def plan_yaml(plan: Plan) -> str:
    """The plan as YAML, a line for each value, so that the difference of two plans reads well."""
    return yaml.dump(plan_data(plan), Dumper=yaml.CSafeDumper, sort_keys=False, width=140, default_flow_style=False)


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, tuple):
        return [_plain(each) for each in value]  # pyright: ignore[reportUnknownVariableType]
    return value
