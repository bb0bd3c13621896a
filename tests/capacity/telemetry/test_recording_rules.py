"""The recording rules as text: they are PromQL, read what the report reads, and record nothing twice.

In tests/lab a real Prometheus evaluates them, and the results are compared with the report's sums.
"""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
import yaml

from flexspot.capacity.catalog.machines import Vendor, machines_of
from flexspot.capacity.chargeback.nodes import CAPACITY_MARKS, unit_share
from flexspot.capacity.chargeback.queries import Question, kube_state_resources, kube_state_series, label_of, queries
from flexspot.capacity.telemetry import ALLOCATED, DIMENSIONS, IDLE, MEASURED, USED, rule_groups, rules_yaml
from flexspot.policies.metrics import Aggregation, Selector, parsed, promql_problem, required_labels, walk

SCOPES = [None, {"cluster": "prod"}, {"cluster": 'a "b" \\c', "region": "eu"}]

[GROUP] = rule_groups()


@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_every_expression_is_promql_and_short_enough_to_be_judged(scope: dict[str, str] | None) -> None:
    problems = {rule.record: promql_problem(rule.expression) for group in rule_groups(scope) for rule in group.rules}

    assert set(problems.values()) == {""}


def test_a_rule_reads_only_series_that_earlier_rules_recorded() -> None:
    recorded: set[str] = set()
    for rule in GROUP.rules:
        tree = parsed(rule.expression)
        assert tree is not None
        asked = {each.name for each in walk(tree) if isinstance(each, Selector) and each.name.startswith("flexspot")}
        assert asked <= recorded, rule.record
        recorded.add(rule.record)


def test_rules_read_only_series_of_kube_state_metrics_that_the_report_reads() -> None:
    asked = {
        each.name
        for rule in GROUP.rules
        if (tree := parsed(rule.expression)) is not None
        for each in walk(tree)
        if isinstance(each, Selector)
    }
    of_kubernetes = {name for name in asked if name.startswith("kube_")}

    assert of_kubernetes < set(kube_state_series())
    assert {f"{name.split('_')[1]}s" for name in of_kubernetes} <= set(kube_state_resources())


@pytest.mark.parametrize("record", [ALLOCATED, USED, MEASURED, IDLE])
def test_recorded_series_are_by_team_project_workload_type_environment_and_capacity_type(record: str) -> None:
    [rule] = [each for each in GROUP.rules if each.record == record]
    tree = parsed(rule.expression)

    assert isinstance(tree, Aggregation)
    assert tree.operator == "sum"
    assert {*(tree.by or ()), *rule.labels} == set(DIMENSIONS)


@pytest.mark.parametrize("scope", SCOPES[1:], ids=str)
def test_a_scopes_labels_are_in_every_selector_and_on_every_recorded_series(scope: dict[str, str]) -> None:
    for rule in (each for group in rule_groups(scope) for each in group.rules):
        tree = parsed(rule.expression)
        assert tree is not None
        assert scope.items() <= rule.labels.items()
        for selector in (each for each in walk(tree) if isinstance(each, Selector)):
            assert {(each.label, each.value) for each in selector.matchers if each.operator == "="} >= set(scope.items()), selector


def test_the_capacity_type_is_written_last_by_the_mark_that_counts_first() -> None:
    [rule] = [each for each in GROUP.rules if each.record == "flexspot_node:bought_as:max"]
    written = re.findall(r'"capacity_type", "([\w-]+)", "(\w+)", "([^"]+)"', rule.expression)

    assert written == [(mark.capacity_type, label_of(mark.label), mark.value or ".+") for mark in reversed(CAPACITY_MARKS)]


def test_a_partition_counts_as_much_as_in_the_report() -> None:
    by_model = {each.gpu.model: each for cloud in Vendor for each in machines_of(cloud).values() if each.gpu is not None}
    found = 0
    for rule in (each for each in GROUP.rules if each.record == "flexspot_node:gpus_per_partition:max"):
        for names, model in re.findall(r'mig_\(([^)]+)\)\(_\.\+\)\?"} and on \(node\) \S+{gpu="([^"]+)"}', rule.expression):
            for profile in names.split("|"):
                found += 1
                assert unit_share(f"nvidia_com_mig_{profile}", by_model[model], {}) == Fraction(rule.labels["part"]), (model, profile)
    assert found > 20


def test_every_machine_that_always_has_the_same_gpus_has_its_number() -> None:
    counted = {
        machine.replace("\\\\", ""): rule.labels["gpus"]
        for rule in GROUP.rules
        if rule.record == "flexspot_node:gpus_of_machine:max"
        for found in re.findall(r'bought_as:max{machine=~"([^"]+)"', rule.expression)
        for machine in found.split("|")
    }
    known = {
        name: str(each.gpu.count)
        for cloud in Vendor
        for name, each in machines_of(cloud).items()
        if each.gpu is not None and len(each.gpu.counts) == 1
    }

    assert counted == known


def test_rules_read_only_labels_that_the_allow_list_shows() -> None:
    shown = {name for each in queries() if each.question is not Question.OPENCOST for name in re.findall(r"label_\w+", each.expression)}
    for rule in GROUP.rules:
        tree = parsed(rule.expression)
        assert tree is not None
        assert {label for _, label in required_labels(tree) if label.startswith("label_")} <= shown


def test_the_file_is_what_prometheus_reads() -> None:
    [group] = yaml.safe_load(rules_yaml({"cluster": "prod"}))["groups"]

    assert group["name"] == "flexspot-gpus"
    assert group["interval"] == "60s"
    assert [set(rule) for rule in group["rules"]] == [{"record", "expr", "labels"}] * len(group["rules"])
    assert all(rule["labels"]["cluster"] == "prod" for rule in group["rules"])
