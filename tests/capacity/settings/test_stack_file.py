"""Stack files: what is read, and how everything wrong is told at once."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from capacity.catalog.capacity_type import CapacityType
from capacity.catalog.platform import Platform
from capacity.settings.platform import EksSettings, GkeSettings, LocalSettings
from capacity.settings.pools import GkePool
from capacity.settings.stack_file import parse_settings, read_stack_file
from capacity.values.errors import SettingsError, SettingsProblem, nearest

STACKS = Path(__file__).resolve().parents[3] / "stacks"
LOCAL = STACKS / "Pulumi.local.yaml"


def settings(**changes: Any) -> dict[str, Any]:
    return {
        "cloud": "local",
        "environment": "test",
        "owner": "ann",
        "pools": [{"name": "l4-spot", "machine": "g6.xlarge", "capacity_type": "spot", "max_nodes": 4, "serves": ["training"]}],
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
    assert {team.name: team.unqueued for team in read.teams} == {"team-alpha": {"l4-on-demand": 1}, "team-beta": {"l4-on-demand": 1}}


@pytest.mark.parametrize(
    "stack,model",
    [("local", LocalSettings), ("dev-gke", GkeSettings), ("prod-gke", GkeSettings), ("dev-eks", EksSettings), ("prod-eks", EksSettings)],
)
def test_the_cloud_says_which_settings_a_stack_has(stack: str, model: type) -> None:
    assert type(read_stack_file(STACKS / f"Pulumi.{stack}.yaml")) is model


def test_lists_of_yaml_are_read_as_what_cannot_change() -> None:
    read = read_stack_file(STACKS / "Pulumi.prod-gke.yaml")
    [flex] = [pool for pool in read.pools if pool.capacity_type is CapacityType.FLEX_START]

    assert isinstance(flex, GkePool)
    assert (flex.serves, flex.zones, flex.max_run_hours) == (("training",), (), 168)


def test_a_misspelt_setting_is_told_with_the_nearest_name() -> None:
    assert told(settings(budget={"monthly_usd": 100, "alert_percent": [50]})) == [
        "budget.alert_percent: is not a setting; did you mean alert_percents? allowed: alert_percents, monthly_usd, on_unknown_prices"
    ]


def test_a_value_outside_the_allowed_ones_is_told_with_the_nearest() -> None:
    assert told(settings(cloud="locl")) == [
        "cloud (is 'locl'): is not one of the allowed values; did you mean local? allowed: local, gke, eks"
    ]


def test_nothing_else_is_told_before_the_cloud_is_known() -> None:
    assert told({"surprise": 1}) == ["cloud: is missing; allowed: local, gke, eks"]


@pytest.mark.parametrize("value,shown", [(["cloud", "local"], "[cloud, local]"), ("local", "'local'"), (1, "1"), (None, "null")])
def test_settings_are_values_by_name(value: object, shown: str) -> None:
    assert told(value) == [f"(all) (is {shown}): should be settings by name, such as cloud: local"]


@pytest.mark.parametrize("written,shown", [("4", "'4'"), (4.5, "4.5"), (True, "true"), (None, "null")])
def test_a_value_of_the_wrong_type_is_not_taken_for_another(written: object, shown: str) -> None:
    shares = {"name": "red", "shares": {"l4-spot": written}}

    assert told(settings(teams=[shares])) == [f"teams.0.shares.l4-spot (is {shown}): should be a whole number"]


@pytest.mark.parametrize("written,shown", [(7, "7"), (1.35, "1.35"), (False, "false")])
def test_a_value_that_yaml_does_not_read_as_text_is_to_be_quoted(written: object, shown: str) -> None:
    assert told(settings(owner=written)) == [f"owner (is {shown}): should be text; put it in quotes"]


def test_everything_wrong_is_told_at_once() -> None:
    problems = told(settings(environment="Prod", pools=[], teams=[{"name": "red", "shares": {"l4-spot": -1}}], surprise=1))

    assert [problem.partition(":")[0].partition(" ")[0] for problem in problems] == [
        "environment",
        "pools",
        "teams.0.shares.l4-spot",
        "surprise",
    ]


def test_a_list_whose_items_are_wrong_is_not_also_called_too_short() -> None:
    assert [problem.partition(" ")[0] for problem in told(settings(pools=["l4-spot"]))] == ["pools.0"]


def test_a_long_value_does_not_bury_what_is_wrong_with_it() -> None:
    [problem] = told(settings(owner="A" * 500))

    assert problem.startswith(f"owner (is '{'A' * 56}...): is not a valid name")


@pytest.mark.parametrize(
    "written,problem",
    [
        (date(2026, 1, 1), "(is 2026-01-01): is read as a date; put it in quotes"),
        (float("nan"), "is not a number that can be meant"),
        (float("-inf"), "is not a number that can be meant"),
        (2**64, "is larger than any setting can be"),
        (-(2**64), "is larger than any setting can be"),
    ],
)
def test_what_yaml_can_say_and_settings_cannot_is_told_with_its_place(written: object, problem: str) -> None:
    for value, path in (
        (settings(owner=written), "owner"),
        (settings(teams=[{"name": "red", "shares": {"a": written}}]), "teams.0.shares.a"),
    ):
        [refused] = told(value)
        assert refused.startswith(path)
        assert problem in refused


def test_everything_that_settings_cannot_say_is_told_at_once() -> None:
    problems = told(settings(owner=date(2026, 1, 1), environment=float("nan"), teams=[{"name": "red", "shares": {7: 1}}]))

    assert [each.partition(" ")[0].rstrip(":") for each in problems] == ["environment", "owner", "teams.0.shares.7"]


@pytest.mark.parametrize("key", [7, 1.5, date(2026, 1, 1)])
def test_a_key_that_is_no_text_is_to_be_quoted(key: object) -> None:
    [problem] = told(settings(teams=[{"name": "red", "shares": {key: 2}}]))

    assert problem.startswith(f"teams.0.shares.{key}: is not a name; put it in quotes")


@pytest.mark.parametrize(
    "content,problem",
    [
        ("config: [", "(whole file): is not YAML"),
        ("a: 1\n---\nb: 2", "(whole file): is not YAML"),
        ("config: {flexspot:platform: !!python/name:os.system {}}", "(whole file): is not YAML"),
        ("config: 2026-13-45", "(whole file): holds what cannot be read: month must be in 1..12"),
        ("config: {}", "config.flexspot:platform: is missing"),
        ("config: text", "config.flexspot:platform: is missing"),
        ("- a list", "config.flexspot:platform: is missing"),
        ("", "config.flexspot:platform: is missing"),
    ],
)
def test_a_file_without_settings_says_where_they_belong(content: str, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.test.yaml"
    file.write_text(content)

    with pytest.raises(SettingsError, match=r"Pulumi\.test\.yaml: 1 problem") as refused:
        read_stack_file(file)

    assert problem in str(refused.value.problems[0])


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_a_file_that_is_not_utf_8_is_told_so(encoding: str, tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.test.yaml"
    file.write_bytes("config: {flexspot:platform: {cloud: local, owner: 'Zoë'}}".encode(encoding))

    with pytest.raises(SettingsError, match=r"Pulumi\.test\.yaml: 1 problem") as refused:
        read_stack_file(file)

    [problem] = refused.value.problems
    assert str(problem) == "(whole file): is not text in UTF-8; save it as UTF-8"


def test_a_file_in_utf_8_may_say_so_itself(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.test.yaml"
    file.write_text(LOCAL.read_text(encoding="utf-8"), encoding="utf-8-sig")

    assert read_stack_file(file) == read_stack_file(LOCAL)


def test_a_setting_that_stands_twice_is_told_before_its_last_value_is_taken(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.test.yaml"
    file.write_text("config:\n  flexspot:platform:\n    cloud: local\n    owner: ann\n    owner: 7\n")

    with pytest.raises(SettingsError) as refused:
        read_stack_file(file)

    assert [str(each) for each in refused.value.problems] == ["line 5: owner: stands twice, first on line 4; leave one of them out"]


def test_what_is_wrong_with_a_file_has_its_line(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.test.yaml"
    file.write_text("config:\n  flexspot:platform:\n    cloud: local\n    owner: 2026-01-01\n    environment: .nan\n")

    with pytest.raises(SettingsError) as refused:
        read_stack_file(file)

    assert [(each.line, each.path) for each in refused.value.problems] == [(4, "owner"), (5, "environment")]


@pytest.mark.parametrize("endless", ["&a [*a]", "&a {b: *a}", "&a [*a, *a]", "[" * 1000 + "]" * 1000])
def test_a_file_without_end_is_refused(endless: str, tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.test.yaml"
    file.write_text(f"config:\n  flexspot:platform: {{cloud: local, pools: {endless}}}\n")

    with pytest.raises(SettingsError):
        read_stack_file(file)


def test_a_stack_file_that_is_not_there_is_no_problem_of_its_settings(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_stack_file(tmp_path / "Pulumi.absent.yaml")


def test_a_problem_is_one_line_that_says_where_what_and_what_is_allowed() -> None:
    problem = SettingsProblem("pools.0.machine", "'h100'", "is not a machine", "allowed: g6.xlarge", line=7)

    assert str(problem) == "line 7: pools.0.machine (is 'h100'): is not a machine; allowed: g6.xlarge"
    assert str(SettingsProblem("teams", "", "is missing", "")) == "teams: is missing"


def test_the_nearest_comes_first_and_then_everything_that_is_allowed() -> None:
    assert nearest("locla", ["local", "gke"]) == "did you mean local? allowed: local, gke"


def test_nothing_close_is_suggested_for_something_far_away() -> None:
    assert nearest("zebra", ["local", "gke"]) == "allowed: local, gke"
    assert nearest("x", []) == "allowed: (none)"


def test_of_a_long_list_the_eight_that_look_most_alike_are_shown() -> None:
    sizes = [f"g6.{size}xlarge" for size in (2, 4, 8, 12, 16, 24, 48)]
    others = ["p4d.24xlarge", "p5.48xlarge", "zebra"]

    hint, _, shown = nearest("g6.4xlrge", [*others, *sizes]).removesuffix(" and 2 more").partition(" allowed: ")

    assert hint == "did you mean g6.4xlarge?"
    assert len(shown.split(", ")) == 8
    assert set(sizes) < set(shown.split(", "))
    assert shown.split(", ") == sorted(shown.split(", "))


def test_a_list_of_eight_is_shown_whole() -> None:
    assert nearest("x9", [f"a{number}" for number in range(8)]) == "allowed: a0, a1, a2, a3, a4, a5, a6, a7"
