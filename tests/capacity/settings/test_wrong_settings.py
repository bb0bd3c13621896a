"""Mistakes in settings, and their messages: path, problem and allowed values."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from pydantic import Field, TypeAdapter
from settings_documents import LEAST, LEFT_OUT, changed

from flexspot.capacity.catalog.data_files import Record
from flexspot.capacity.plan.build import build_plan
from flexspot.capacity.settings.stack_file import lines_of, parse_settings, read_stack_file
from flexspot.capacity.values.errors import SettingsError

if TYPE_CHECKING:
    from flexspot.capacity.values.errors import SettingsProblem

ROWS = Path(__file__).parent / "wrong_settings.yaml"


class Mistake(Record):
    """A row of wrong_settings.yaml, whose header explains the fields."""

    mistake: str
    cloud: str
    changes: dict[str, Any] = Field(default_factory=dict)
    without: tuple[str, ...] = ()
    path: str
    problem: str
    allowed: str = ""
    shown: str | None = None
    rule: str | None = None


KINDS = TypeAdapter(dict[str, tuple[Mistake, ...]]).validate_python(yaml.safe_load(ROWS.read_text(encoding="utf-8")))
MISTAKES = [each for kind in KINDS.values() for each in kind]

OF_THE_VALIDATOR = re.compile(
    r"Input|Extra inputs|Field required|Value error|String|Tuple|Dictionary|JSON|instance of|ctx|regex|pattern"
    r"|\b(tuple|dictionary|dict|array|string|integer|boolean|int|str|bool|float|None|True|False|NoneType)\b"
)
"""Words of pydantic and Python, which users should not see."""

each_mistake = pytest.mark.parametrize("wrong", MISTAKES, ids=[f"{each.cloud}: {each.mistake}" for each in MISTAKES])


def settings_with(wrong: Mistake) -> dict[str, Any]:
    """Return settings with that mistake."""
    return changed(wrong.cloud, {**wrong.changes, **dict.fromkeys(wrong.without, LEFT_OUT)})


def problems_of(written: object) -> tuple[SettingsProblem, ...]:
    """Return all problems, from plain data to a plan."""
    try:
        build_plan(parse_settings(written, "Pulumi.test.yaml"), "Pulumi.test.yaml")
    except SettingsError as error:
        return error.problems
    return ()


@pytest.mark.parametrize("cloud", LEAST)
def test_valid_settings_have_no_problems(cloud: str) -> None:
    # The minimal settings of EKS create a network, from which alone the API server is reachable, and no runner is in it yet.
    known = {"eks": ["nobody-in-the-network"]}.get(cloud, [])

    assert [each.rule for each in build_plan(parse_settings(LEAST[cloud], "Pulumi.test.yaml")).warnings] == known


@each_mistake
def test_a_mistake_is_reported_once_with_its_path_and_the_allowed_values(wrong: Mistake) -> None:
    problems = problems_of(settings_with(wrong))

    assert [each.path for each in problems] == [wrong.path]
    [problem] = problems
    assert wrong.problem in problem.problem
    assert wrong.allowed in f"{problem.problem}; {problem.allowed}"
    assert wrong.shown in (None, problem.value)
    assert wrong.rule in (None, problem.rule)
    assert problem.refused
    assert str(problem).startswith(wrong.path), "a message begins with the path"


@each_mistake
def test_no_message_contains_words_of_the_validator(wrong: Mistake) -> None:
    [problem] = problems_of(settings_with(wrong))

    assert OF_THE_VALIDATOR.findall(str(problem)) == []
    assert len(str(problem).splitlines()) == 1


FILE = """\
config:
  aws:region: us-east-1
  flexspot:platform:
    cloud: eks
    environment: test
    owner: ann
    account: "111122223333"
    region: us-east-1
    zones: [us-east-1a, us-east-1b]
    cluster:
      version: "1.35"
      ami: {ami}
    pools:
      - name: l4-spot
        machine: {machine}
        capacity_type: {capacity_type}
        max_nodes: {max_nodes}
        serves: [training]
    teams:
      - {{name: red, shares: {{{share}: 2}}}}
"""


def test_all_malformed_settings_are_reported_at_once_with_their_lines(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.test.yaml"
    file.write_text(FILE.format(ami="latest", machine="g6.xlarge", capacity_type="spott", max_nodes="four", share="L4"))

    with pytest.raises(SettingsError) as refused:
        read_stack_file(file)

    assert sorted((each.line or 0, each.path) for each in refused.value.problems) == [
        (12, "cluster.ami"),
        (16, "pools.0.capacity_type"),
        (17, "pools.0.max_nodes"),
        (20, "teams.0.shares.L4"),
    ]


def test_all_conflicting_settings_are_reported_at_once_with_their_lines(tmp_path: Path) -> None:
    text = FILE.format(ami="al2023@v20260903", machine="g6.xlarge", capacity_type="on-demand", max_nodes=4, share="t4-spot")
    file = tmp_path / "Pulumi.test.yaml"
    file.write_text(text.replace("us-east-1b", "us-west-2b"))

    with pytest.raises(SettingsError) as refused:
        build_plan(read_stack_file(file), file.name)
    with_lines = refused.value.with_lines(lines_of(text))

    assert [(each.line, each.path) for each in with_lines.problems] == [
        (9, "zones.1"),
        (18, "pools.0.serves"),
        (20, "teams.0.shares.t4-spot"),
    ]
    assert str(with_lines).startswith(
        "Pulumi.test.yaml: 3 problem(s) in the settings\n  line 9: zones.1 (is 'us-west-2b'): is not in region"
    )


def test_a_missing_setting_of_a_pool_has_the_line_of_the_pool(tmp_path: Path) -> None:
    text = FILE.format(ami="al2023@v20260903", machine="g6.xlarge", capacity_type="reserved", max_nodes=4, share="l4-spot")
    file = tmp_path / "Pulumi.test.yaml"
    file.write_text(text)

    with pytest.raises(SettingsError) as refused:
        build_plan(read_stack_file(file), file.name)
    [problem] = refused.value.with_lines(lines_of(text)).problems

    assert (problem.path, problem.line) == ("pools.0.reservation", 14)
