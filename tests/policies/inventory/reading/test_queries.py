"""Places of PromQL expressions."""

from __future__ import annotations

import json
from typing import Any

import pytest
from manifests import manifest, views

from flexspot.policies.inventory.objects import QueryView


def config_map(key: str, text: str) -> list[QueryView]:
    return views(QueryView, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "d"}, "data": {key: text}})


def dashboard(*expressions: Any, key: str = "gpu.json") -> list[QueryView]:
    return config_map(key, json.dumps({"rows": [{"panels": [{"targets": [{"expr": each, "refId": "A"} for each in expressions]}]}]}))


def test_rules_are_named_by_their_alert_or_record() -> None:
    rules = [{"alert": "Idle", "expr": "a"}, {"record": "a:b", "expr": 1}, {"expr": "c"}]
    spec = {"groups": [{"name": "g", "rules": rules}]}
    found = views(QueryView, manifest("monitoring.coreos.com/v1", "PrometheusRule", spec))

    assert [each.described for each in found] == [
        "spec.groups[0].rules[0].expr (alert Idle)",
        "spec.groups[0].rules[1].expr (record a:b)",
        "spec.groups[0].rules[2].expr (rule 2)",
    ]
    assert [each.expression.text() for each in found] == ["a", "1", "c"]


@pytest.mark.parametrize(
    "written,read",
    [
        ("rate(x[$__rate_interval])", "rate(x[5m])"),
        ("rate(x[${__range}:$step])", "rate(x[5m:5m])"),
        ("x offset $shift", "x offset 5m"),
        ("topk($count, x)", "topk(1, x)"),
        ("sum by ($grouping) ($metric)", "sum by (variable) (variable)"),
        ('x{team=~"[[team]]", pod=~"${pod:regex}"}', 'x{team=~"variable", pod=~"variable"}'),
    ],
)
def test_variables_of_a_dashboard_are_replaced(written: str, read: str) -> None:
    assert [each.expression.text() for each in dashboard(written)] == [read]


def test_a_dashboards_expressions_are_found_with_their_paths() -> None:
    assert [each.where for each in dashboard("a")] == ['data["gpu.json"]: rows[0].panels[0].targets[0].expr']
    assert dashboard(7, None) == []
    assert dashboard("a", key="gpu.yaml") == []


@pytest.mark.parametrize("text", ['"expr"', '{"expr": ', "[" * 100_000 + '"expr"', '{"expr": "a"}' + " " * 5_000_000])
def test_a_text_that_is_no_dashboard_is_skipped(text: str) -> None:
    assert config_map("a.json", text) == []


def test_dashboards_of_grafanas_operator_are_read() -> None:
    dashboards = manifest("grafana.integreatly.org/v1beta1", "GrafanaDashboard", {"json": '{"panels": [{"expr": "a"}]}'})

    assert [each.where for each in views(QueryView, dashboards)] == ["spec.json: panels[0].expr"]
