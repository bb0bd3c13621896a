"""Comparing objects takes time in proportion to their number, measured in function calls, which are the same on every machine."""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING

import bench_policies
import pytest
from manifests import Manifest, job, manifest, node_pool

from flexspot.policies.core import Reading, judge_across, judge_all, read_source
from flexspot.policies.inventory.reading.source import from_manifest, from_pulumi
from flexspot.policies.judging import DEFAULTS
from flexspot.policies.rules import all_rules

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexspot.policies.judging import Rule

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


def budgets(count: int) -> list[Manifest]:
    """Return PodDisruptionBudgets, each of which selects its own Deployment by an expression."""
    made: list[Manifest] = []
    for number in range(count):
        named = {"name": f"web-{number}", "namespace": "web"}
        selector = {"matchExpressions": [{"key": "app", "operator": "In", "values": [named["name"]]}]}
        pod = {"metadata": {"labels": {"app": named["name"]}}, "spec": {"containers": [{"name": "web", "image": "registry.example/web:1"}]}}
        made.append(manifest("policy/v1", "PodDisruptionBudget", {"minAvailable": 1, "selector": selector}, **named))
        made.append(manifest("apps/v1", "Deployment", {"selector": {"matchLabels": pod["metadata"]["labels"]}, "template": pod}, **named))
    return made


def pools_and_jobs(count: int) -> list[Manifest]:
    """Return NodePools with one taint each, and Jobs that each tolerate one of these taints and select no pool."""
    made: list[Manifest] = []
    for number in range(count):
        key = f"team-{number}"
        pool = node_pool(("node.kubernetes.io/instance-type", "In", ["g6.xlarge"]), taints=[{"key": key, "effect": "NoSchedule"}])
        for each in (pool, job(tolerations=[{"key": key, "operator": "Exists"}])):
            each["metadata"]["name"] = f"gpu-{number}"
            made.append(each)
    return made


@pytest.mark.parametrize("make,count", [(budgets, 100), (pools_and_jobs, 20)])
def test_four_times_the_objects_take_less_than_five_times_the_calls(make: Callable[[int], list[Manifest]], count: int) -> None:
    few, many = ([from_manifest(each) for each in make(times * count)] for times in (1, 4))

    assert calls(lambda: judge_all(many, all_rules(), DEFAULTS)) / calls(lambda: judge_all(few, all_rules(), DEFAULTS)) <= 2.2**2


@cache
def readings(times: int) -> list[Reading]:
    return [read_source(from_pulumi(*each)) for each in bench_policies.resources(times)]


@pytest.mark.nightly(tested_by="test_four_times_the_objects_take_less_than_five_times_the_calls")
@pytest.mark.parametrize("rule", [rule for rule in all_rules() if rule.among], ids=lambda rule: rule.name)
def test_a_rule_that_compares_resources_takes_about_twice_the_calls_for_twice_as_many(rule: Rule) -> None:
    small, large = readings(1), readings(2)
    judge_across(small[:1], [rule], DEFAULTS)
    once, twice = (calls(lambda given=given: judge_across(given, [rule], DEFAULTS)) for given in (small, large))

    assert twice / once < 2.4, (once, twice)
