"""The team view in a namespace renders the team's work like the stack file, and contains nothing about other teams."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from autopilot_settings import autopilot_settings

from flexspot.capacity.plan.build import build_plan, plan_of_stack_file
from flexspot.capacity.plan.teams import TeamViewError, read_team_view, team_views
from flexspot.capacity.settings.stack_file import parse_settings
from flexspot.capacity.workloads.kinds import objects_of
from flexspot.capacity.workloads.requests import WorkloadError

if TYPE_CHECKING:
    from flexspot.capacity.plan.model import Plan

STACKS = Path(__file__).resolve().parents[3] / "stacks"
NAMES = [each.stem.removeprefix("Pulumi.") for each in sorted(STACKS.glob("Pulumi.*.yaml"))]

SHAPES: tuple[dict[str, Any], ...] = (
    {},
    {"pods": 2, "gpus": 8},
    {"gpu_memory_gb": 40},
    {"gpu_models": ["h200"]},
    {"gpus": 0, "pods": 90, "at_once": 90},
    {"pods": 1000},
    {"project": "ads"},
)


def plan_of(stack: str) -> Plan:
    if stack == "autopilot":
        return build_plan(parse_settings(autopilot_settings(), "settings"))
    return plan_of_stack_file(STACKS / f"Pulumi.{stack}.yaml").plan


def outcome(plan: Plan, kind: str, fields: dict[str, Any]) -> Any:
    """Return the objects, or the text of the refusal."""
    try:
        return objects_of(plan, kind, fields)
    except WorkloadError as error:
        return str(error)


WIDE = pytest.mark.nightly(tested_by="test_a_view_renders_and_refuses_work_like_the_whole_plan")
"""The other stacks have more teams and classes of the same kinds."""


@pytest.mark.slow
@pytest.mark.parametrize("stack", ["local", "autopilot", *(pytest.param(each, marks=WIDE) for each in NAMES if each != "local")])
def test_a_view_renders_and_refuses_work_like_the_whole_plan(stack: str) -> None:
    plan = plan_of(stack)
    views, rendered = team_views(plan), 0
    for team in plan.teams:
        seen = read_team_view(views[team.name])
        for route, kind, shape in product(plan.routes, ("checkpointed-job", "queued-job", "model-server", "notebook"), SHAPES):
            fields = {"name": "bert", "team": team.name, "workload_class": route.workload_class, "image": "trainer:1", **shape}
            whole, own = outcome(plan, kind, fields), outcome(seen, kind, fields)
            assert own == whole
            rendered += isinstance(own, tuple)
    assert rendered > 5


@pytest.mark.parametrize("stack", ["prod-gke", "prod-eks"])
def test_a_view_contains_no_other_teams_and_no_budgets(stack: str) -> None:
    plan = plan_of(stack)

    text = team_views(plan)["nlp"]

    assert len(text) < 20_000, "an object of the API server may have 1 MiB"
    view = json.loads(text)["plan"]
    assert [each["name"] for each in view["teams"]] == ["nlp"]
    assert {each["namespace"] for each in (*view["queues"], *view["cpu_work"]["queues"])} == {"nlp"}
    others = [each.name for each in plan.teams if each.name != "nlp"]
    assert not [name for name in others if f'"{name}"' in text or f'"{name}-cpu"' in text]
    assert plan.spending.budget_usd is not None
    assert str(plan.spending.budget_usd) not in text


@pytest.mark.parametrize(
    "changed,message",
    [
        ("", "it is not the plan of a team"),
        ("[]", "it is not the plan of a team"),
        ('{"form": 2, "plan": {}}', "it has format 2, but this release of flexspot reads format 1"),
        ('{"form": 1}', "plan: is missing"),
        ('{"form": 1, "plan": {"cloud": "moon"}}', "cloud: Input should be 'local', 'gke' or 'eks'"),
    ],
)
def test_a_text_that_is_no_view_is_refused_with_a_reason(changed: str, message: str) -> None:
    with pytest.raises(TeamViewError) as refused:
        read_team_view(changed)
    assert str(refused.value) == message


def test_unknown_fields_of_later_releases_are_ignored() -> None:
    plan = plan_of("local")
    written = json.loads(team_views(plan)[plan.teams[0].name])
    written["plan"]["weather"] = "fair"
    written["plan"]["pools"][0]["colour"] = "red"

    assert read_team_view(json.dumps(written)) == read_team_view(team_views(plan)[plan.teams[0].name])
