"""Readers of exporters, with the labels that they show, and of expressions in PromQL: rules, alert policies, dashboards."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, cast

from flexspot.policies.inventory.objects import Exporter, QueryView
from flexspot.policies.values.field import UNKNOWN, Field

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flexspot.policies.inventory.reading.source import ObjectSource


DCGM, KUBE_STATE_METRICS = "dcgm-exporter", "kube-state-metrics"

_MONITORS = {
    ("monitoring.coreos.com", "ServiceMonitor"): ("endpoints",),
    ("monitoring.coreos.com", "PodMonitor"): ("podMetricsEndpoints",),
    ("monitoring.googleapis.com", "PodMonitoring"): ("endpoints",),
    ("monitoring.googleapis.com", "ClusterPodMonitoring"): ("endpoints",),
}
_RELABELINGS = ("relabelings", "metricRelabelings", "metricRelabeling")
_OF_PODS = frozenset({"namespace", "pod", "container"})
_SERIES = {DCGM: "DCGM_*", KUBE_STATE_METRICS: "kube_*"}

_ALLOWLISTS = {"--metric-labels-allowlist": ("labels", "label_"), "--metric-annotations-allowlist": ("annotations", "annotation_")}
_CHART_ALLOWLISTS = {"metricLabelsAllowlist": ("labels", "label_"), "metricAnnotationsAllowList": ("annotations", "annotation_")}

# nodes=[karpenter.sh/capacity-type,topology.kubernetes.io/zone],pods=[*]
_ALLOWED = re.compile(r"(?P<kinds>[\w*]+)=\[(?P<keys>[^\]]*)\]")


def read_exporters(source: ObjectSource) -> Iterator[Exporter]:
    """Yield the exporters that the object scrapes, installs as a chart, or runs."""
    kind = (source.family, source.kind)
    if kind in _MONITORS:
        yield from _monitor(source, _MONITORS[kind])
    elif source.chart:
        yield from _release(source)
    elif kind in {("apps", "Deployment"), ("apps", "StatefulSet")}:
        yield from _workload(source)


def _exporter(source: ObjectSource, program: str, given: Iterable[tuple[str, str]], *, complete: bool) -> Exporter:
    labels: dict[str, frozenset[str]] = {}
    for series, label in given:
        labels[series] = labels.get(series, frozenset()) | {label}
    return Exporter(*source.seen, program, labels, complete and not source.fields.partial)


def _monitor(source: ObjectSource, where: tuple[str, ...]) -> Iterator[Exporter]:
    """Yield the exporter of a monitor whose name or selector identifies it."""
    spec = source.fields.at("spec")
    said = [source.identity.name, *(text for _, value in spec.at("selector", "matchLabels").parts().named if (text := str(value.text())))]
    program = next((each for each in (DCGM, KUBE_STATE_METRICS) if any(each.removesuffix("-exporter") in text for text in said)), None)
    if program is None:
        return
    endpoints = spec.at(*where).parts()
    scraped = [_scraped(endpoint, *_RELABELINGS) for endpoint in endpoints.fields]
    labels = {label for added, _ in scraped for label in added}
    labels |= {
        text
        for name in ("targetLabels", "podTargetLabels")
        for each in spec.at(name).parts().fields
        if isinstance(text := each.text(), str)
    }
    metadata = spec.at("targetLabels", "metadata")
    labels |= {text for each in metadata.parts().fields if isinstance(text := each.text(), str)} - _OF_PODS
    # Google's collector keeps the exporter's own labels if it is configured to set none.
    if source.kind == "ClusterPodMonitoring" and metadata.value == []:
        labels |= _OF_PODS
    complete = endpoints.complete and spec.known and all(known for _, known in scraped)
    yield _exporter(source, program, ((_SERIES[program], label) for label in labels), complete=complete)


def _scraped(endpoint: Field, *relabelings: str) -> tuple[set[str], bool]:
    """Return the labels that an endpoint adds, and whether the list is complete."""
    listed = [endpoint.at(name).parts() for name in relabelings]
    each_rule = [each for parts in listed for each in parts.fields]
    labels = {text for each in each_rule if isinstance(text := each.at("targetLabel").text(), str)}
    honors = endpoint.at("honorLabels").equals("true")
    open_ended = [each for each in each_rule if UNKNOWN in (each.at("targetLabel").text(), each.at("action").text())]
    open_ended += [each for each in each_rule if each.at("action").equals("labelmap", "LabelMap") is True]
    return labels | (_OF_PODS if honors is True else set()), honors is not UNKNOWN and not open_ended and all(
        each.complete for each in listed
    )


def _release(source: ObjectSource) -> Iterator[Exporter]:
    chart, values = source.chart, source.fields.at("values")
    whole = values.known and source.fields.at("valueYamlFiles").absent
    if chart in {"kube-state-metrics", "kube-prometheus-stack"}:
        below = values.at("kube-state-metrics") if chart == "kube-prometheus-stack" else values
        allowed, known = _allowed_by_chart(below)
        yield _exporter(source, KUBE_STATE_METRICS, allowed, complete=known and whole)
    elif chart in {"dcgm-exporter", "gpu-operator"}:
        monitor = values.at("serviceMonitor") if chart == "dcgm-exporter" else values.at("dcgmExporter", "serviceMonitor")
        # The exporter's chart has a ServiceMonitor by default; the operator has one only if enabled.
        if monitor.at("enabled").equals("true" if chart == "gpu-operator" else "false") is (chart == "gpu-operator"):
            labels, known = _scraped(monitor, *_RELABELINGS)
            yield _exporter(source, DCGM, ((_SERIES[DCGM], label) for label in labels), complete=known and whole)


def _allowed_by_chart(values: Field) -> tuple[set[tuple[str, str]], bool]:
    allowed, known = _allowed_by_arguments(values.at("extraArgs"))
    for name, (part, prefix) in _CHART_ALLOWLISTS.items():
        listed = values.at(name).parts()
        known = known and listed.complete and all(each.known for each in listed.fields)
        allowed |= _allowed(",".join(str(each.text()) for each in listed.fields), part, prefix)
    return allowed, known


def _workload(source: ObjectSource) -> Iterator[Exporter]:
    for image, container in source.containers():
        if image.rpartition("/")[2].startswith(KUBE_STATE_METRICS):
            allowed, known = _allowed_by_arguments(container.at("args"))
            yield _exporter(source, KUBE_STATE_METRICS, allowed, complete=known)


def _allowed_by_arguments(arguments: Field) -> tuple[set[tuple[str, str]], bool]:
    """Return the series and labels allowed by `--flag=value`, or by a flag and its value one after the other."""
    listed = arguments.parts()
    texts = [str(each.text()) for each in listed.fields]
    words = [word for text in texts for word in (text.split("=", 1) if text.startswith("--") else [text])]
    allowed: set[tuple[str, str]] = set()
    for flag, value in pairwise(words):
        if flag in _ALLOWLISTS:
            allowed |= _allowed(value, *_ALLOWLISTS[flag])
    return allowed, listed.complete and all(each.known for each in listed.fields)


def _allowed(written: str, part: str, prefix: str) -> set[tuple[str, str]]:
    """Return series and labels of an allowlist.

    kube-state-metrics writes other characters of a key than letters and digits as _, in snake case.
    """
    return {
        (f"kube_{'*' if entry['kinds'] == '*' else entry['kinds'].removesuffix('s')}_{part}", prefix + _as_label(key))
        for entry in _ALLOWED.finditer(written)
        for key in entry["keys"].split(",")
    }


def _as_label(key: str) -> str:
    """Return a key of a label as kube-state-metrics names it: app.kubernetes.io/name is app_kubernetes_io_name, and every key is *."""
    return "*" if key.strip() == "*" else re.sub(r"\W", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key.strip())).lower()


_RULES = frozenset(
    {
        ("monitoring.coreos.com", "PrometheusRule"),
        ("monitoring.googleapis.com", "ClusterRules"),
        ("monitoring.googleapis.com", "GlobalRules"),
        ("monitoring.googleapis.com", "Rules"),
    }
)

_DASHBOARD_CHARACTERS: Final = 5_000_000
"""Length of the longest dashboard that is read. A ConfigMap has a fifth of it at most."""

# Grafana's variables: $name, ${name}, ${name:format}, [[name]].
_VARIABLE = re.compile(r"\$\{\w+(?::\w+)?\}|\$\w+|\[\[\w+(?::\w+)?\]\]")


def read_queries(source: ObjectSource) -> Iterator[QueryView]:
    """Yield one view for each expression."""
    kind = (source.family, source.kind)
    if kind in _RULES:
        yield from _groups(source)
    elif kind == ("gcp:monitoring", "AlertPolicy"):
        yield from _alert_policy(source)
    elif kind == ("", "ConfigMap"):
        yield from _config_map(source)
    elif kind == ("grafana.integreatly.org", "GrafanaDashboard"):
        yield from _dashboard(source, "spec.json", source.fields.at("spec", "json"))


def _groups(source: ObjectSource) -> Iterator[QueryView]:
    groups = source.fields.at("spec", "groups")
    if not groups.known:
        yield QueryView(*source.seen, "spec.groups", "alerts", groups)
    for group_place, group in groups.parts().named:
        for place, rule in group.at("rules").parts().named:
            named = next(((word, name) for word in ("alert", "record") if isinstance(name := rule.at(word).text(), str)), ("rule", place))
            yield QueryView(*source.seen, f"spec.groups[{group_place}].rules[{place}].expr", " ".join(named), rule.at("expr"))


def _alert_policy(source: ObjectSource) -> Iterator[QueryView]:
    """Yield conditions in PromQL, not those in MQL or of a filter."""
    for place, condition in source.fields.at("conditions").parts().named:
        asked = condition.at("conditionPrometheusQueryLanguage")
        if not asked.absent:
            where = f"conditions[{place}].conditionPrometheusQueryLanguage.query"
            yield QueryView(*source.seen, where, "alert condition", asked.at("query") if asked.known else asked)


def _config_map(source: ObjectSource) -> Iterator[QueryView]:
    """Yield expressions of Grafana's dashboards, which are JSON under separate keys."""
    for key, written in source.fields.at("data").parts().named:
        if key.endswith(".json"):
            yield from _dashboard(source, f'data["{key}"]', written)


def _dashboard(source: ObjectSource, where: str, written: Field) -> Iterator[QueryView]:
    text = written.value
    if not isinstance(text, str) or '"expr"' not in text or len(text) > _DASHBOARD_CHARACTERS:
        return
    try:
        dashboard = json.loads(text)
    except (ValueError, RecursionError):
        return
    for path, expression in _expressions(dashboard):
        yield QueryView(*source.seen, f"{where}: {path}", "panel", Field(_filled_in(expression)), templated=True)


def _expressions(dashboard: Any) -> Iterator[tuple[str, str]]:
    """Yield the panels' expressions with their paths. Panels are in rows, or nested."""
    todo: list[tuple[str, Any]] = [("", dashboard)]
    while todo:
        path, each = todo.pop()
        if isinstance(each, list):
            todo += [(f"{path}[{place}]", below) for place, below in enumerate(cast("list[Any]", each))]
        elif isinstance(each, dict):
            fields = cast("dict[str, Any]", each)
            if isinstance(fields.get("expr"), str):
                yield f"{path}.expr".lstrip("."), fields["expr"]
            todo += [(f"{path}.{key}", below) for key, below in fields.items() if isinstance(below, (dict, list))]


def _filled_in(expression: str) -> str:
    """Return the expression with Grafana's variables replaced: by a time in a range, a number as a parameter, else a name."""

    def something(variable: re.Match[str]) -> str:
        before, after = expression[: variable.start()].rstrip(), expression[variable.end() :].lstrip()
        if before.endswith(("[", ":", "offset")):
            return "5m"
        return "1" if before.endswith("(") and after.startswith(",") else "variable"

    return _VARIABLE.sub(something, expression)
