"""Helpers for tests of checks: the minimal settings of a cloud with changes, and the problems that a check finds in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plan_settings import own_class
from settings_documents import changed

from flexspot.capacity.catalog.node_images import shipped_images
from flexspot.capacity.catalog.platform import VOCABULARIES
from flexspot.capacity.catalog.price_book import prices_of
from flexspot.capacity.plan.build import build_plan
from flexspot.capacity.plan.checks import problems_of
from flexspot.capacity.plan.resolve import resolve
from flexspot.capacity.settings.stack_file import parse_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flexspot.capacity.plan.checks import Check
    from flexspot.capacity.plan.model import Plan
    from flexspot.capacity.settings.platform import PlatformSettings
    from flexspot.capacity.values.errors import SettingsProblem

CLASS = own_class("rendering", priority_class="gpu-rendering", run_limit_hours=24, checkpoint=True)
"""All fields of a custom workload class."""


def pool(name: str, machine: str, capacity_type: str, *serves: str, **others: Any) -> dict[str, Any]:
    """Return a pool of four nodes."""
    return {"name": name, "machine": machine, "capacity_type": capacity_type, "max_nodes": 4, "serves": list(serves), **others}


def settings_of(cloud: str, changes: Mapping[str, Any]) -> PlatformSettings:
    """Return the minimal settings of `cloud` with changes."""
    return parse_settings(changed(cloud, changes), "test")


def found(check: Check, cloud: str, changes: Mapping[str, Any] | None = None) -> list[SettingsProblem]:
    """Return the problems that one check finds. Everything that the settings name must exist."""
    settings = settings_of(cloud, changes or {})
    resolved, problems = resolve(settings, prices_of(VOCABULARIES[settings.cloud].catalog), shipped_images())
    assert not problems
    return list(problems_of(check, resolved))


def reports(check: Check, cloud: str, changes: Mapping[str, Any] | None = None) -> list[str]:
    """Return the problems that one check finds, as `refused: rule at path` or `warned: rule at path`."""
    return [f"{'refused' if each.refused else 'warned'}: {each.rule} at {each.path}" for each in found(check, cloud, changes)]


def plan_of(cloud: str, changes: Mapping[str, Any]) -> Plan:
    """Return the plan of the minimal settings of `cloud` with changes."""
    return build_plan(settings_of(cloud, changes), "test")
