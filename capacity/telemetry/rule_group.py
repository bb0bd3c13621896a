"""Recording rules as data, as a Prometheus rules file takes them, and the PromQL that several are written with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


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


@dataclass(frozen=True)
class Scope:
    """The part of the series that the rules are about, such as {"cluster": "prod"}: asked of every series, and on every recorded one."""

    labels: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def matcher(self) -> str:
        """The labels as one matcher, as the queries of the report take it; empty for everything."""
        return ",".join(f"{name}={quoted(value)}" for name, value in sorted(self.labels.items()))

    def recorded(self, record: str, *matchers: str) -> str:
        """A selector of recorded series."""
        written = ",".join([*matchers, *([self.matcher] if self.labels else [])])
        return f"{record}{{{written}}}" if written else record

    def rule(self, record: str, expression: str, **labels: str) -> RecordingRule:
        """A rule whose series say which part they are about."""
        return RecordingRule(record, expression, {**labels, **self.labels})


def quoted(text: str) -> str:
    """A text as PromQL writes it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def one_of(names: Iterable[str]) -> str:
    """A regular expression, as PromQL writes it, of these names alone: letters, digits, hyphens, underscores and dots."""
    return quoted("|".join(each.replace(".", "\\.") for each in sorted(set(names))))


def given(expression: str, *labels: str) -> str:
    """Labels as the exporter gave them, where Prometheus has put them aside for its own: `exported_pod` becomes `pod`.

    It does so unless honor_labels is true: https://prometheus.io/docs/prometheus/latest/configuration/configuration/#scrape_config
    """
    for label in labels:
        expression = f'label_replace({expression}, "{label}", "$1", "exported_{label}", "(.+)")'
    return expression


def single(expression: str, *labels: str) -> str:
    """One series for each value of `labels`. Two replicas of an exporter may tell of two states, and no match can have both."""
    return f"topk by ({', '.join(labels)}) (1, {expression})"


def first_of(expression: str, label: str, sources: Iterable[str], otherwise: str) -> str:
    """The expression with `label` of the first of `sources` that is not empty; values hold no semicolon, as no Kubernetes label does."""
    names = ", ".join(quoted(each) for each in sources)
    joined = f'label_join({expression}, "{label}", ";", {names})'
    found = f'label_replace({joined}, "{label}", "$1", "{label}", ";*([^;]+).*")'
    return f'label_replace({found}, "{label}", {quoted(otherwise)}, "{label}", ";*")'
