"""The state that the rules are timed on."""

from __future__ import annotations

import sys
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

import pytest

from capacity.values.verdict import Verdict
from policies import bench
from policies.core import Reading, judge_across, judge_all, read_source
from policies.inventory.reading.source import from_pulumi
from policies.judging import DEFAULTS
from policies.rules import all_rules

if TYPE_CHECKING:
    from policies.judging import AnyRule

pytestmark = pytest.mark.thorough


@cache
def readings(times: int) -> list[Reading]:
    return [read_source(from_pulumi(*each)) for each in bench.resources(times)]


def steps(rule: AnyRule, times: int) -> int:
    """How many calls the rule makes in the core over so many times the state: the same on every machine."""
    counted = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal counted
        counted += event == "call"

    given = readings(times)
    judge_across(given[:1], [rule], DEFAULTS)
    sys.setprofile(count)
    try:
        judge_across(given, [rule], DEFAULTS)
    finally:
        sys.setprofile(None)
    return counted


@pytest.mark.parametrize("rule", [rule for rule in all_rules() if rule.judge_among], ids=lambda rule: rule.name)
def test_over_twice_the_resources_a_rule_that_compares_them_takes_about_twice_the_steps(rule: AnyRule) -> None:
    once, twice = steps(rule, 1), steps(rule, 2)

    assert twice / once < 2.4, (once, twice)


def test_the_state_is_of_a_thousand_resources_and_gives_the_rules_work_without_breaking_one() -> None:
    made = bench.resources()
    found = [each for findings in judge_all([from_pulumi(*each) for each in made], all_rules(), DEFAULTS) for each in findings]

    assert len({(token, name) for token, name, _ in made}) == len(made) == 1000
    assert {each.verdict for each in found} <= {Verdict.PASS, Verdict.NOT_APPLICABLE}, [each.message for each in found][:5]
    assert Counter(each.rule for each in found if each.verdict is Verdict.PASS)["missing-toleration"] == 300


def test_the_figures_are_printed_for_one_resource(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def engine_seconds(_made: object, *, with_pack: bool) -> float:
        return 3.0 if with_pack else 1.0

    monkeypatch.setattr(bench, "_engine_seconds", engine_seconds)
    monkeypatch.setattr(bench, "_core_seconds", lambda _made: 0.5)  # pyrefly: ignore[implicit-any-lambda] -- resources

    bench.main()

    printed = capsys.readouterr().out
    assert "0.50" in printed
    assert "2.00" in printed
    assert "core, twice the resources (4000 for 2000): 1.00 times" in printed
