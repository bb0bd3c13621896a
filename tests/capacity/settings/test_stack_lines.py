"""Where things stand in a stack file: the line of a setting, and keys that stand twice."""

from __future__ import annotations

import pytest

from capacity.settings.stack_file import keys_that_stand_twice, lines_of

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
