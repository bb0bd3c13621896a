"""Stack files: what is read, and how everything wrong is told at once."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from capacity.settings.stack_file import parse_settings, read_stack_file
from capacity.values.errors import SettingsError, nearest

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


def test_nothing_else_is_told_before_the_cloud_is_known() -> None:
    assert told({"surprise": 1}) == ["cloud: is missing; allowed: local, gke, eks"]


@pytest.mark.parametrize("value,shown", [(["cloud", "local"], "[cloud, local]"), ("local", "'local'"), (1, "1"), (None, "null")])
def test_settings_are_values_by_name(value: object, shown: str) -> None:
    assert told(value) == [f"(all) (is {shown}): should be settings by name, such as cloud: local"]


def test_a_list_whose_items_are_wrong_is_not_also_called_too_short() -> None:
    assert [problem.partition(" ")[0] for problem in told(settings(pools=["l4-spot"]))] == ["pools.0"]


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


@pytest.mark.parametrize("endless", ["&a [*a]", "&a {b: *a}", "&a [*a, *a]", "[" * 1000 + "]" * 1000])
def test_a_file_without_end_is_refused(endless: str, tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.test.yaml"
    file.write_text(f"config:\n  flexspot:platform: {{cloud: local, pools: {endless}}}\n")

    with pytest.raises(SettingsError):
        read_stack_file(file)


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
