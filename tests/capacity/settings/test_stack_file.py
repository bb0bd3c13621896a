"""Stack files: what is read, where it stands, and how everything wrong is told at once, in the words of a stack file."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from flexspot.capacity.settings.stack_file import keys_that_stand_twice, lines_of, parse_settings, reached, read_stack_file, shown
from flexspot.capacity.values.errors import SettingsError, nearest
from flexspot.capacity.values.names import FORMS

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


STACK = """\
# A stack.
encryptionsalt: v1
config:
  aws:region: us-east-1
  flexspot:platform:
    cloud: eks
    cluster:
      version: "1.35"
      system_pool: {machine: m6i.large,
        max_nodes: 3}
    pools:
      - name: l4
        serves: [training,
          spot-low]
      -
        name: t4
    teams: []
"""


@pytest.mark.parametrize(
    "path,line",
    [
        ("cloud", 6),
        ("cluster.system_pool.machine", 9),
        ("cluster.system_pool.max_nodes", 10),
        ("pools.0", 12),
        ("pools.0.name", 12),
        ("pools.0.serves", 13),
        ("pools.0.serves.1", 14),
        ("pools.1.name", 16),
    ],
)
def test_a_setting_has_the_line_of_its_name_and_an_item_its_own(path: str, line: int) -> None:
    assert lines_of(STACK)(path) == line


@pytest.mark.parametrize(
    "path,around",
    [
        ("cluster.ami", "cluster"),
        ("pools.0.machine", "pools.0"),
        ("pools.0.reservation.tags.purpose", "pools.0"),
        ("teams.0.shares.l4", "teams"),
    ],
)
def test_what_is_not_there_has_the_line_of_what_it_is_missing_from(path: str, around: str) -> None:
    line_of = lines_of(STACK)

    assert line_of(path) == line_of(around)


@pytest.mark.parametrize("path", ["owner", "budget.monthly_usd", "(all)", ""])
def test_what_is_missing_from_the_settings_has_the_line_of_their_key(path: str) -> None:
    assert lines_of(STACK)(path) == 5


@pytest.mark.parametrize("text", ["", "- a list", "a text", "config:", "config: text", "config: {}", "config: {aws:region: us-east-1}"])
def test_a_file_without_settings_has_no_lines_of_them(text: str) -> None:
    assert lines_of(text)("cloud") is None
    assert keys_that_stand_twice(text) == []


def test_what_is_merged_in_from_elsewhere_has_the_line_of_where_it_is_used() -> None:
    text = "config:\n  flexspot:platform:\n    pools:\n      - &first {name: a}\n      - {<<: *first, max_nodes: 2}\n"

    assert lines_of(text)("pools.1.name") == 5


def test_an_alias_that_holds_itself_ends() -> None:
    text = "config:\n  flexspot:platform:\n    cloud: local\n    pools: &endless [*endless]\n"

    assert lines_of(text)(f"pools{'.0' * 40}") == 4
    assert keys_that_stand_twice(text) == []


@pytest.mark.parametrize(
    "path,text",
    [
        ("cluster.version", "cluster:\n      version: '1.35'\n      ami: al2023@latest\n      version: '1.36'\n"),
        ("pools.1.max_nodes", "pools:\n      - {name: a}\n      - max_nodes: 4\n        name: b\n        max_nodes: 8\n"),
        ("teams.0.shares.l4", "teams:\n      - shares:\n          l4: 2\n          t4: 1\n          l4: 3\n"),
    ],
)
def test_a_key_that_stands_twice_is_found_however_deep(path: str, text: str) -> None:
    [problem] = keys_that_stand_twice(f"config:\n  flexspot:platform:\n    {text}")

    assert problem.path == path
    assert problem.line is not None
    assert problem.problem == f"stands twice, first on line {problem.line - 2}"


def test_the_same_key_in_two_items_or_two_settings_stands_once_in_each() -> None:
    pools = "pools: [{name: a, max_nodes: 1}, {name: b, max_nodes: 1}]"

    assert keys_that_stand_twice(f"config:\n  flexspot:platform:\n    {pools}\n    cluster: {{name: a}}\n    cohort: a\n") == []


def test_what_other_programs_write_twice_is_their_own_affair() -> None:
    assert keys_that_stand_twice("config:\n  aws:region: a\n  aws:region: b\n  flexspot:platform: {cloud: local}\n") == []


@pytest.mark.parametrize("pattern", FORMS)
def test_the_examples_of_a_form_have_that_form(pattern: str) -> None:
    words = FORMS[pattern].partition("such as ")[2]
    examples = [each.strip(" '") for each in re.split(r" or |,", words) if each.strip()]

    assert [each for each in examples if not re.search(pattern, each)] == []


def test_no_form_is_told_as_its_pattern() -> None:
    assert [words for words in FORMS.values() if re.search(r"[\\^$\[\]{}|]", words)] == []


@pytest.mark.parametrize(
    "written,text",
    [
        ("spot", "'spot'"),
        ("", "''"),
        ("4", "'4'"),
        (4, "4"),
        (4.5, "4.5"),
        (None, "null"),
        (True, "true"),
        (False, "false"),
        ([], "[]"),
        (["a", 1, None, True], "[a, 1, null, true]"),
        (date(2026, 1, 1), "2026-01-01"),
    ],
)
def test_a_value_is_shown_as_a_stack_file_has_it(written: object, text: str) -> None:
    assert shown(written) == text


def test_settings_by_name_are_shown_by_their_own_name() -> None:
    assert shown({"name": "l4-spot", "machine": "g6.xlarge"}) == "'l4-spot'"
    assert shown({"machine": "g6.xlarge"}) == ""
    assert shown({"name": 7}) == ""
    assert shown({}) == ""


@pytest.mark.parametrize("written", ["a" * 500, ["abc"] * 500, [{"name": "a" * 500}]])
def test_a_long_value_is_cut(written: object) -> None:
    text = shown(written)

    assert len(text) == 60
    assert text.endswith("...")


def test_a_value_that_holds_itself_or_is_none_of_yaml_is_shown_somehow() -> None:
    endless: list[object] = []
    endless.append(endless)

    assert len(shown(endless)) <= 60
    assert shown(object()) == "object"


def test_what_stands_at_a_place_is_reached_and_nothing_else() -> None:
    value = {"pools": [{"name": "l4"}], "text": "abc"}

    assert reached(value, ()) is value
    assert reached(value, ("pools", 0, "name")) == "l4"
    for nowhere in (("teams",), ("pools", 1), ("pools", "name"), ("pools", 0, "name", "first"), ("text", "first")):
        assert reached(value, nowhere) is None
