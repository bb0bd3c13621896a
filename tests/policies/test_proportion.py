"""What compares objects takes time in proportion to them: calls of functions are counted, which are the same on every machine."""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING

import pytest
from bench_lint import CROSSED, PER_DOUBLING

from policies import bench
from policies.core import Reading, judge_across, judge_all, read_source
from policies.inventory.reading.source import from_manifest, from_pulumi
from policies.judging import DEFAULTS
from policies.rules import all_rules

if TYPE_CHECKING:
    from collections.abc import Callable

    from policies.judging import AnyRule

pytestmark = pytest.mark.slow


def calls(work: Callable[[], object]) -> int:
    counted = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal counted
        counted += event == "call"

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return counted


@pytest.mark.parametrize("name", CROSSED)
def test_all_rules_do_four_times_as_much_for_four_times_the_objects_that_they_compare(name: str) -> None:
    make, count = CROSSED[name]
    few, many = ([from_manifest(each) for each in make(times * (count // 5))] for times in (1, 4))

    assert calls(lambda: judge_all(many, all_rules(), DEFAULTS)) / calls(lambda: judge_all(few, all_rules(), DEFAULTS)) <= PER_DOUBLING**2


@cache
def readings(times: int) -> list[Reading]:
    return [read_source(from_pulumi(*each)) for each in bench.resources(times)]


@pytest.mark.nightly(held_by="test_all_rules_do_four_times_as_much_for_four_times_the_objects_that_they_compare")
@pytest.mark.parametrize("rule", [rule for rule in all_rules() if rule.judge_among], ids=lambda rule: rule.name)
def test_over_twice_the_resources_a_rule_that_compares_them_takes_about_twice_the_steps(rule: AnyRule) -> None:
    small, large = readings(1), readings(2)
    judge_across(small[:1], [rule], DEFAULTS)
    once, twice = (calls(lambda given=given: judge_across(given, [rule], DEFAULTS)) for given in (small, large))

    assert twice / once < 2.4, (once, twice)
