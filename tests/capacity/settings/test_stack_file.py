"""Stack files: reading, line numbers, and problems, which are all reported at once in the words of a stack file."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from flexspot.capacity.settings.stack_file import duplicate_keys, lines_of, parse_settings, read_stack_file, shown, value_at
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


def problems(value: object) -> list[str]:
    with pytest.raises(SettingsError) as refused:
        parse_settings(value, "Pulumi.test.yaml")
    return [str(problem) for problem in refused.value.problems]


def test_only_the_cloud_is_reported_while_it_is_unknown() -> None:
    assert problems({"surprise": 1}) == ["cloud: is missing; allowed: local, gke, eks"]


@pytest.mark.parametrize("value,shown", [(["cloud", "local"], "[cloud, local]"), ("local", "'local'"), (1, "1"), (None, "null")])
def test_settings_must_be_a_mapping(value: object, shown: str) -> None:
    assert problems(value) == [f"(all) (is {shown}): must be a mapping of settings, such as cloud: local"]


def test_a_list_with_invalid_items_is_not_also_reported_as_too_short() -> None:
    assert [problem.partition(" ")[0] for problem in problems(settings(pools=["l4-spot"]))] == ["pools.0"]


@pytest.mark.parametrize(
    "written,problem",
    [
        (date(2026, 1, 1), "(is 2026-01-01): is read as a date; put it in quotes"),
        (float("nan"), "is not a finite number"),
        (float("-inf"), "is not a finite number"),
        (2**64, "is larger than any setting can be"),
        (-(2**64), "is larger than any setting can be"),
    ],
)
def test_values_that_only_yaml_supports_are_reported_with_their_path(written: object, problem: str) -> None:
    for value, path in (
        (settings(owner=written), "owner"),
        (settings(teams=[{"name": "red", "shares": {"a": written}}]), "teams.0.shares.a"),
    ):
        [refused] = problems(value)
        assert refused.startswith(path)
        assert problem in refused


@pytest.mark.parametrize("key", [7, 1.5, date(2026, 1, 1)])
def test_a_key_that_is_not_text_needs_quotes(key: object) -> None:
    [problem] = problems(settings(teams=[{"name": "red", "shares": {key: 2}}]))

    assert problem.startswith(f"teams.0.shares.{key}: is not a name; put it in quotes")


@pytest.mark.parametrize(
    "content,problem",
    [
        ("config: [", "(whole file): is not YAML"),
        ("a: 1\n---\nb: 2", "(whole file): is not YAML"),
        ("config: {flexspot:platform: !!python/name:os.system {}}", "(whole file): is not YAML"),
        ("config: 2026-13-45", "(whole file): contains an unreadable value: month must be in 1..12"),
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
def test_a_file_that_is_not_utf_8_is_refused(encoding: str, tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.test.yaml"
    file.write_bytes("config: {flexspot:platform: {cloud: local, owner: 'Zoë'}}".encode(encoding))

    with pytest.raises(SettingsError, match=r"Pulumi\.test\.yaml: 1 problem") as refused:
        read_stack_file(file)

    [problem] = refused.value.problems
    assert str(problem) == "(whole file): is not text in UTF-8; save it as UTF-8"


def test_a_file_in_utf_8_may_start_with_a_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.test.yaml"
    file.write_text(LOCAL.read_text(encoding="utf-8"), encoding="utf-8-sig")

    assert read_stack_file(file) == read_stack_file(LOCAL)


def test_a_duplicate_key_is_reported_before_its_last_value_is_checked(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.test.yaml"
    file.write_text("config:\n  flexspot:platform:\n    cloud: local\n    owner: ann\n    owner: 7\n")

    with pytest.raises(SettingsError) as refused:
        read_stack_file(file)

    assert [str(each) for each in refused.value.problems] == ["line 5: owner: is set twice, first on line 4; leave one of them out"]


@pytest.mark.parametrize("endless", ["&a [*a]", "&a {b: *a}", "&a [*a, *a]", "[" * 1000 + "]" * 1000])
def test_a_file_without_end_is_refused(endless: str, tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.test.yaml"
    file.write_text(f"config:\n  flexspot:platform: {{cloud: local, pools: {endless}}}\n")

    with pytest.raises(SettingsError):
        read_stack_file(file)


def test_a_distant_value_gets_no_suggestion() -> None:
    assert nearest("zebra", ["local", "gke"]) == "allowed: local, gke"
    assert nearest("x", []) == "allowed: (none)"


def test_the_eight_most_similar_values_of_a_long_list_are_shown() -> None:
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
def test_a_setting_has_the_line_of_its_name_and_an_item_its_own_line(path: str, line: int) -> None:
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
def test_a_missing_setting_has_the_line_of_the_settings_around_it(path: str, around: str) -> None:
    line_of = lines_of(STACK)

    assert line_of(path) == line_of(around)


@pytest.mark.parametrize("path", ["owner", "budget.monthly_usd", "(all)", ""])
def test_a_missing_top_level_setting_has_the_line_of_the_settings_key(path: str) -> None:
    assert lines_of(STACK)(path) == 5


@pytest.mark.parametrize("text", ["", "- a list", "a text", "config:", "config: text", "config: {}", "config: {aws:region: us-east-1}"])
def test_a_file_without_settings_has_no_lines(text: str) -> None:
    assert lines_of(text)("cloud") is None
    assert duplicate_keys(text) == []


def test_a_merged_key_has_the_line_of_the_merge() -> None:
    text = "config:\n  flexspot:platform:\n    pools:\n      - &first {name: a}\n      - {<<: *first, max_nodes: 2}\n"

    assert lines_of(text)("pools.1.name") == 5


def test_an_alias_that_contains_itself_terminates() -> None:
    text = "config:\n  flexspot:platform:\n    cloud: local\n    pools: &endless [*endless]\n"

    assert lines_of(text)(f"pools{'.0' * 40}") == 4
    assert duplicate_keys(text) == []


@pytest.mark.parametrize(
    "path,text",
    [
        ("cluster.version", "cluster:\n      version: '1.35'\n      ami: al2023@latest\n      version: '1.36'\n"),
        ("pools.1.max_nodes", "pools:\n      - {name: a}\n      - max_nodes: 4\n        name: b\n        max_nodes: 8\n"),
        ("teams.0.shares.l4", "teams:\n      - shares:\n          l4: 2\n          t4: 1\n          l4: 3\n"),
    ],
)
def test_a_duplicate_key_is_found_at_any_depth(path: str, text: str) -> None:
    [problem] = duplicate_keys(f"config:\n  flexspot:platform:\n    {text}")

    assert problem.path == path
    assert problem.line is not None
    assert problem.problem == f"is set twice, first on line {problem.line - 2}"


def test_the_same_key_in_two_items_or_two_settings_is_no_duplicate() -> None:
    pools = "pools: [{name: a, max_nodes: 1}, {name: b, max_nodes: 1}]"

    assert duplicate_keys(f"config:\n  flexspot:platform:\n    {pools}\n    cluster: {{name: a}}\n    cohort: a\n") == []


def test_duplicate_keys_of_other_programs_are_ignored() -> None:
    assert duplicate_keys("config:\n  aws:region: a\n  aws:region: b\n  flexspot:platform: {cloud: local}\n") == []


@pytest.mark.parametrize("pattern", FORMS)
def test_the_examples_of_a_form_match_it(pattern: str) -> None:
    words = FORMS[pattern].partition("such as ")[2]
    examples = [each.strip(" '") for each in re.split(r" or |,", words) if each.strip()]

    assert [each for each in examples if not re.search(pattern, each)] == []


def test_no_form_is_described_by_a_pattern() -> None:
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
def test_a_value_is_shown_as_in_a_stack_file(written: object, text: str) -> None:
    assert shown(written) == text


def test_a_mapping_is_shown_by_its_name() -> None:
    assert shown({"name": "l4-spot", "machine": "g6.xlarge"}) == "'l4-spot'"
    assert shown({"machine": "g6.xlarge"}) == ""
    assert shown({"name": 7}) == ""
    assert shown({}) == ""


@pytest.mark.parametrize("written", ["a" * 500, ["abc"] * 500, [{"name": "a" * 500}]])
def test_a_long_value_is_cut(written: object) -> None:
    text = shown(written)

    assert len(text) == 60
    assert text.endswith("...")


def test_values_that_contain_themselves_or_are_not_yaml_can_be_shown() -> None:
    endless: list[object] = []
    endless.append(endless)

    assert len(shown(endless)) <= 60
    assert shown(object()) == "object"


def test_value_at_returns_none_for_a_location_that_does_not_exist() -> None:
    value = {"pools": [{"name": "l4"}], "text": "abc"}

    assert value_at(value, ()) is value
    assert value_at(value, ("pools", 0, "name")) == "l4"
    for nowhere in (("teams",), ("pools", 1), ("pools", "name"), ("pools", 0, "name", "first"), ("text", "first")):
        assert value_at(value, nowhere) is None
