"""Texts and questions for a person before something is deployed or deleted."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from flexspot.capacity.values.errors import ExitCode, ExplainedError
from flexspot.infra.cli.stacks.deploying import ask, given_answers, show_drift
from flexspot.infra.deployment.drift import Drift

if TYPE_CHECKING:
    from collections.abc import Callable

POOL = "urn:pulumi:local::flexspot::flexspot:index:GpuNodePool$kubernetes:karpenter.sh/v1:NodePool::l4-spot-node-pool"


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that makes a person at a terminal give an answer."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    return lambda answer: monkeypatch.setattr("sys.stdin", Terminal(f"{answer}\n"))


@pytest.mark.parametrize("answer", ["n", "", "no"])
def test_any_answer_but_yes_stops_the_run(answer: str, person: Callable[[str], None]) -> None:
    person(answer)

    with pytest.raises(ExplainedError, match=r"the answer was no\. Nothing was changed\.") as refused:
        ask("Deploy this to stack dev-gke?", yes=False)

    assert refused.value.exit_code is ExitCode.UNMET


def test_a_yes_continues_and_the_yes_option_asks_nothing(person: Callable[[str], None]) -> None:
    person("y")
    ask("Deploy this to stack dev-gke?", yes=False)
    person("n")
    ask("Deploy this to stack dev-gke?", yes=True)


def test_answers_about_created_resources_are_read_by_urn() -> None:
    given = given_answers([f"{POOL}=projects/a/b=c"], [f"{POOL}-2"])

    assert given == {POOL: "projects/a/b=c", f"{POOL}-2": None}


@pytest.mark.parametrize("made,not_made", [([f"{POOL}=a", f"{POOL}=b"], []), ([f"{POOL}=a"], [POOL])])
def test_two_answers_about_one_resource_are_refused(made: list[str], not_made: list[str]) -> None:
    with pytest.raises(ExplainedError, match=r"urn:.*l4-spot-node-pool has more than one answer\.") as refused:
        given_answers(made, not_made)

    assert refused.value.exit_code is ExitCode.BAD_USAGE


def test_manual_changes_are_a_table_that_is_cut_if_long(capsys: pytest.CaptureFixture[str]) -> None:
    show_drift([], "it is changed back")
    assert capsys.readouterr().out == ""

    show_drift([Drift(POOL, "spec.limits.nvidia.com/gpu", "4", "400")] * 43, "it is changed back")

    shown = capsys.readouterr().out
    assert "Changed by hand since the last run; it is changed back" in shown
    assert shown.count("│ NodePool l4-spot-node-pool │ spec.limits.nvidia.com/gpu │ 4        │ 400   │") == 40
    assert "and 3 more." in shown
