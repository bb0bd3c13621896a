"""RecordingRules: the same rules for each kind of Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml
from measured_objects import LEAST, rules

from flexspot.capacity.telemetry import rule_groups, rules_spec
from flexspot.components.measurement import RecordingRules

if TYPE_CHECKING:
    from component_types import Outputs, Refusal, Register

GOOGLES = "kubernetes:monitoring.googleapis.com/v1:ClusterRules"
OPERATORS = "kubernetes:monitoring.coreos.com/v1:PrometheusRule"
FILE = "kubernetes:core/v1:ConfigMap"


def test_googles_service_gets_them_for_the_whole_cluster(register: Register) -> None:
    [made] = rules(register, prometheus="managed").of(GOOGLES)

    assert made["metadata"] == {"name": "flexspot-gpus", "labels": {"flexspot.dev/owner": "ml"}}
    assert made["spec"] == rules_spec(rule_groups())


def test_the_operators_prometheus_selects_them_by_its_labels(register: Register) -> None:
    [made] = rules(register, prometheus="operator", monitor_labels={"release": "prometheus"}).of(OPERATORS)

    assert made["metadata"]["namespace"] == "measuring"
    assert made["metadata"]["labels"] == {"flexspot.dev/owner": "ml", "release": "prometheus"}
    assert made["spec"] == rules_spec(rule_groups())


def test_any_other_prometheus_gets_a_rules_file(register: Register) -> None:
    made = rules(register, prometheus="annotations")

    [file] = made.of(FILE)
    assert yaml.safe_load(file["data"]["flexspot-gpus.rules.yaml"]) == rules_spec(rule_groups())
    assert made.of(GOOGLES) == made.of(OPERATORS) == []


def test_the_recorded_series_are_the_output(outputs: Outputs) -> None:
    least: Any = LEAST

    found = outputs(lambda: RecordingRules("rules", least))

    assert found["series"] == [f"flexspot:gpus_{each}:sum" for each in ("allocated", "used", "measured", "idle")]


def test_an_unknown_prometheus_is_refused_with_the_allowed_ones(refusal: Refusal) -> None:
    assert "prometheus (is thanos): must be one of managed, operator, annotations" in refusal(
        RecordingRules, "rules", LEAST | {"prometheus": "thanos"}
    )
