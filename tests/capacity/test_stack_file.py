"""Stack files: what is read, and how everything wrong is told at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from capacity.capacity_type import CapacityType
from capacity.settings import Platform
from capacity.stack_file import SettingsError, nearest, parse_settings, read_stack_file

LOCAL = Path(__file__).resolve().parents[2] / "stacks" / "Pulumi.local.yaml"


def settings(**changes: Any) -> dict[str, Any]:
    return {
        "cloud": "local",
        "environment": "test",
        "owner": "ann",
        "pools": [{"name": "l4-spot", "machine": "g6.xlarge", "capacity_type": "spot", "max_nodes": 4, "serves": ["training"]}],
        "classes": [{"name": "training", "priority_class": "gpu-training", "priority": 100, "queued": True, "description": "Trains."}],
        "teams": [{"name": "red", "shares": {"l4-spot": 2}}],
    } | changes


def told(value: object) -> list[str]:
    with pytest.raises(SettingsError) as refused:
        parse_settings(value, "Pulumi.test.yaml")
    return [str(problem) for problem in refused.value.problems]


def test_the_shipped_local_stack_is_read() -> None:
    read = read_stack_file(LOCAL)

    assert read.cloud is Platform.LOCAL
    assert [(pool.name, pool.capacity_type, pool.max_nodes) for pool in read.pools] == [
        ("l4-spot", CapacityType.SPOT, 4),
        ("l4-on-demand", CapacityType.ON_DEMAND, 2),
    ]
    assert {team.name: team.shares for team in read.teams} == {"team-alpha": {"l4-spot": 2}, "team-beta": {"l4-spot": 2}}


def test_a_misspelt_setting_is_told_with_the_nearest_name() -> None:
    pool = settings()["pools"][0]
    pool["max_node"] = pool.pop("max_nodes")

    assert told(settings(pools=[pool])) == [
        "pools.0.max_nodes: is missing",
        "pools.0.max_node: is not a setting; did you mean max_nodes? allowed: capacity_type, machine, max_nodes, name, serves",
    ]


def test_a_value_outside_the_allowed_ones_is_told_with_the_nearest() -> None:
    assert told(settings(cloud="locl")) == [
        "cloud (is 'locl'): is not one of the allowed values; did you mean local? allowed: local, gke, eks"
    ]


@pytest.mark.parametrize("written", ["4", 4.5, True, None])
def test_a_value_of_the_wrong_type_is_not_taken_for_another(written: object) -> None:
    pool = settings()["pools"][0] | {"max_nodes": written}

    [problem] = told(settings(pools=[pool]))

    assert problem.startswith(f"pools.0.max_nodes (is {written!r}): should be a valid integer") or written is None
    assert "pools.0.max_nodes" in problem


def test_everything_wrong_is_told_at_once() -> None:
    problems = told(settings(environment="Prod", pools=[], teams=[{"name": "red", "shares": {"l4-spot": 0}}], surprise=1))

    assert [problem.partition(":")[0].partition(" ")[0] for problem in problems] == [
        "environment",
        "pools",
        "teams.0.shares.l4-spot",
        "surprise",
    ]


def test_what_cannot_stand_in_a_stack_file_is_refused() -> None:
    assert told(settings(owner=object()))[0].startswith("(all): holds what a stack file cannot say")


@pytest.mark.parametrize(
    "content,problem",
    [
        ("config: [", "(whole file): is not YAML"),
        ("config: {}", "config.flexspot:platform: is missing"),
        ("- a list", "config.flexspot:platform: is missing"),
        ("", "config.flexspot:platform: is missing"),
    ],
)
def test_a_file_without_settings_says_where_they_belong(content: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.test.yaml"
    file.write_text(content)

    with pytest.raises(SettingsError, match=r"Pulumi\.test\.yaml: 1 problem") as refused:
        read_stack_file(file)

    assert str(refused.value.problems[0]).startswith(problem)


def test_nothing_close_is_suggested_for_something_far_away() -> None:
    assert nearest("zebra", ["local", "gke"]) == "allowed: local, gke"
    assert nearest("x", []) == "allowed: (none)"
