"""Recording rules as data, and as a Prometheus rules file takes them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class RecordingRule:
    """A series that Prometheus records: its name, the expression of its values, and labels that it gets besides the expression's."""

    record: str
    expression: str
    labels: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class RuleGroup:
    """Rules that are evaluated one after the other, every `interval_seconds`: each sees what those before it recorded."""

    name: str
    interval_seconds: int
    rules: tuple[RecordingRule, ...]


def rules_spec(groups: Iterable[RuleGroup]) -> dict[str, Any]:
    """The content of a rules file, which is also the spec of a PrometheusRule and of Google's ClusterRules.

    https://prometheus.io/docs/prometheus/latest/configuration/recording_rules/
    """
    return {"groups": [_group(each) for each in groups]}


def rules_file(groups: Iterable[RuleGroup]) -> str:
    """The rules as a file for Prometheus' `rule_files`."""
    return yaml.safe_dump(rules_spec(groups), sort_keys=False, width=140, allow_unicode=True)


def _group(group: RuleGroup) -> dict[str, Any]:
    return {"name": group.name, "interval": f"{group.interval_seconds}s", "rules": [_rule(each) for each in group.rules]}


def _rule(rule: RecordingRule) -> dict[str, Any]:
    return {"record": rule.record, "expr": rule.expression, **({"labels": dict(rule.labels)} if rule.labels else {})}
