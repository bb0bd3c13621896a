"""Expressions in PromQL: rules of Prometheus' operator and of Google's managed Prometheus, alert policies, dashboards."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, cast

from policies.field import Field
from policies.queries import Query

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policies.reading.source import Source

_RULES = frozenset(
    {
        ("monitoring.coreos.com", "PrometheusRule"),
        ("monitoring.googleapis.com", "ClusterRules"),
        ("monitoring.googleapis.com", "GlobalRules"),
        ("monitoring.googleapis.com", "Rules"),
    }
)

_DASHBOARD_CHARACTERS: Final = 5_000_000
"""The longest dashboard that is read; a ConfigMap has a fifth of it at most."""

# Grafana's variables: $name, ${name}, ${name:format}, [[name]].
_VARIABLE = re.compile(r"\$\{\w+(?::\w+)?\}|\$\w+|\[\[\w+(?::\w+)?\]\]")


def read(source: Source) -> Iterator[Query]:
    """One view for each expression."""
    kind = (source.family, source.kind)
    if kind in _RULES:
        yield from _groups(source)
    elif kind == ("gcp:monitoring", "AlertPolicy"):
        yield from _alert_policy(source)
    elif kind == ("", "ConfigMap"):
        yield from _config_map(source)
    elif kind == ("grafana.integreatly.org", "GrafanaDashboard"):
        yield from _dashboard(source, "spec.json", source.fields.at("spec", "json"))


def _query(source: Source, where: str, role: str, expression: Field, *, templated: bool = False) -> Query:
    return Query(source.identity, True, source.fields.partial, where, role, expression, templated)


def _groups(source: Source) -> Iterator[Query]:
    groups = source.fields.at("spec", "groups")
    if not groups.known:
        yield _query(source, "spec.groups", "alerts", groups)
    for group_place, group in groups.parts().named:
        for place, rule in group.at("rules").parts().named:
            named = next(((word, name) for word in ("alert", "record") if isinstance(name := rule.at(word).text(), str)), ("rule", place))
            yield _query(source, f"spec.groups[{group_place}].rules[{place}].expr", " ".join(named), rule.at("expr"))


def _alert_policy(source: Source) -> Iterator[Query]:
    """Conditions in PromQL; those in MQL or of a filter are none of these."""
    for place, condition in source.fields.at("conditions").parts().named:
        asked = condition.at("conditionPrometheusQueryLanguage")
        if not asked.absent:
            where = f"conditions[{place}].conditionPrometheusQueryLanguage.query"
            yield _query(source, where, "alert condition", asked.at("query") if asked.known else asked)


def _config_map(source: Source) -> Iterator[Query]:
    """Grafana's dashboards are JSON, each under a key of its own."""
    for key, written in source.fields.at("data").parts().named:
        if key.endswith(".json"):
            yield from _dashboard(source, f'data["{key}"]', written)


def _dashboard(source: Source, where: str, written: Field) -> Iterator[Query]:
    text = written.value
    if not isinstance(text, str) or '"expr"' not in text or len(text) > _DASHBOARD_CHARACTERS:
        return
    try:
        dashboard = json.loads(text)
    except (ValueError, RecursionError):
        return
    for path, expression in _expressions(dashboard):
        yield _query(source, f"{where}: {path}", "panel", Field(_filled_in(expression)), templated=True)


def _expressions(dashboard: Any) -> Iterator[tuple[str, str]]:
    """The panels' expressions with their paths; panels stand in rows, or in one another."""
    todo: list[tuple[str, Any]] = [("", dashboard)]
    while todo:
        path, each = todo.pop()
        if isinstance(each, list):
            todo += [(f"{path}[{place}]", below) for place, below in enumerate(cast("list[Any]", each))]
        elif isinstance(each, dict):
            fields = cast("dict[str, Any]", each)
            if isinstance(fields.get("expr"), str):
                yield f"{path}.expr".lstrip("."), fields["expr"]
            todo += [(f"{path}.{key}", below) for key, below in fields.items() if isinstance(below, dict | list)]


def _filled_in(expression: str) -> str:
    """The expression with something in place of Grafana's variables: a time in a range, a number as a parameter, else a name."""

    def something(variable: re.Match[str]) -> str:
        before, after = expression[: variable.start()].rstrip(), expression[variable.end() :].lstrip()
        if before.endswith(("[", ":", "offset")):
            return "5m"
        return "1" if before.endswith("(") and after.startswith(",") else "variable"

    return _VARIABLE.sub(something, expression)
