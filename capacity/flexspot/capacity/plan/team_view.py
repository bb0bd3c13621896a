"""What of a plan one team's work needs to be rendered, as text that the platform keeps in the team's namespace.

So whoever submits needs no stack file. Of the other teams there is nothing in it, and no money.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.machines import Machine
from flexspot.capacity.catalog.platform import Platform
from flexspot.capacity.catalog.workload_classes import Removal
from flexspot.capacity.plan.billed import SpendingPlan
from flexspot.capacity.plan.kueue_configuration import PodsReady
from flexspot.capacity.plan.model import CpuWorkPlan, Plan, plan_data
from flexspot.capacity.plan.versions import VersionPlan
from flexspot.capacity.settings.teams import AdmissionMode, Stop

CONFIG_MAP = "flexspot-platform"
"""Its name in each team's namespace."""

KEY = "plan.json"

_NOTHING_BILLED = SpendingPlan(None, (), None, None, (), ())

_FORM = 1
"""Counted up when an older release could not read what a newer one writes, or would read it wrongly."""


class TeamViewError(ValueError):
    """A text that this release cannot read."""


def team_views(plan: Plan) -> dict[str, str]:
    """The plan as far as the work of each team goes, by its name, as JSON on one line."""
    shared = plan_data(
        replace(
            plan,
            accelerators={},
            limits=None,
            compute_classes=(),
            topologies=(),
            priorities=(),
            cohorts=(),
            teams=tuple(replace(each, monthly_budget_usd=None) for each in plan.teams),
            versions=VersionPlan(None, None, {}, {}),
            spending=_NOTHING_BILLED,
            warnings=(),
        )
    )
    return {team["name"]: json.dumps({"form": _FORM, "plan": _of_team(shared, team)}, separators=(",", ":")) for team in shared["teams"]}


def _of_team(shared: dict[str, Any], team: dict[str, Any]) -> dict[str, Any]:
    namespace, work = team["namespace"], shared["cpu_work"]
    return {
        **shared,
        "teams": [team],
        "queues": [each for each in shared["queues"] if each["namespace"] == namespace],
        "cpu_work": None if work is None else _cpu_work(work, namespace),
    }


def _cpu_work(work: dict[str, Any], namespace: str) -> dict[str, Any]:
    """What others own of it can be borrowed like what nobody owns: the most that the team can have is the same."""
    others = [each["nominal"] for each in work["queues"] if each["namespace"] != namespace]
    unowned = {field: sum(each[field] for each in (work["unowned"], *others)) for field in work["unowned"]}
    return {**work, "unowned": unowned, "queues": [each for each in work["queues"] if each["namespace"] == namespace]}


def read_team_view(text: str) -> Plan:
    """The plan of one of `team_views`. Raises TeamViewError for a text of another form, or that somebody has changed."""
    try:
        written = json.loads(text)
        form = written["form"]
    except (ValueError, KeyError, TypeError) as error:
        raise TeamViewError("it is no plan of a team") from error
    if form != _FORM:
        raise TeamViewError(f"it has form {form}, and this release of flexspot reads form {_FORM}")
    try:
        return _reader().validate_python(written["plan"])
    except (ValidationError, KeyError) as error:
        first = error.errors()[0] if isinstance(error, ValidationError) else {"loc": ("plan",), "msg": "is missing"}
        raise TeamViewError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error


@cache
def _reader() -> TypeAdapter[Plan]:
    # The dataclasses of the plan name these types for the type checker alone; here they are looked up.
    known = (AdmissionMode, CapacityType, CpuWorkPlan, Machine, Platform, PodsReady, Removal, SpendingPlan, Stop, VersionPlan)
    adapter: TypeAdapter[Plan] = TypeAdapter(Plan)
    adapter.rebuild(force=True, _types_namespace={each.__name__: each for each in known})
    return adapter
