"""What gathers series: kube-state-metrics with the labels that it was told to show, and how DCGM's exporter is scraped."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from policies.queries import Exporter
from policies.unknown import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from policies.field import Field
    from policies.reading.source import Source

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


def read(source: Source) -> Iterator[Exporter]:
    """What the object says of an exporter: it scrapes it, is its chart, or runs it."""
    kind = (source.family, source.kind)
    if kind in _MONITORS:
        yield from _monitor(source, _MONITORS[kind])
    elif kind == ("helm.sh", "Release"):
        yield from _release(source)
    elif kind in {("apps", "Deployment"), ("apps", "StatefulSet")}:
        yield from _workload(source)


def _exporter(source: Source, program: str, given: Iterable[tuple[str, str]], *, complete: bool) -> Exporter:
    labels: dict[str, frozenset[str]] = {}
    for series, label in given:
        labels[series] = labels.get(series, frozenset()) | {label}
    return Exporter(source.identity, True, source.fields.partial, program, labels, complete and not source.fields.partial)


def _monitor(source: Source, where: tuple[str, ...]) -> Iterator[Exporter]:
    """A monitor is an exporter's if its name or its selector says so."""
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
    # Google's collector leaves the exporter's own labels alone if it is told to set none.
    if source.kind == "ClusterPodMonitoring" and metadata.value == []:
        labels |= _OF_PODS
    complete = endpoints.complete and spec.known and all(known for _, known in scraped)
    yield _exporter(source, program, ((_SERIES[program], label) for label in labels), complete=complete)


def _scraped(endpoint: Field, *relabelings: str) -> tuple[set[str], bool]:
    """The labels that an endpoint adds, and whether these are all."""
    listed = [endpoint.at(name).parts() for name in relabelings]
    each_rule = [each for parts in listed for each in parts.fields]
    labels = {text for each in each_rule if isinstance(text := each.at("targetLabel").text(), str)}
    honors = endpoint.at("honorLabels").equals("true")
    open_ended = [each for each in each_rule if UNKNOWN in (each.at("targetLabel").text(), each.at("action").text())]
    open_ended += [each for each in each_rule if each.at("action").equals("labelmap", "LabelMap") is True]
    return labels | (_OF_PODS if honors is True else set()), honors is not UNKNOWN and not open_ended and all(
        each.complete for each in listed
    )


def _release(source: Source) -> Iterator[Exporter]:
    chart = str(source.fields.at("chart").text()).rstrip("/").rpartition("/")[2]
    values = source.fields.at("values")
    whole = values.known and source.fields.at("valueYamlFiles").absent
    if chart in {"kube-state-metrics", "kube-prometheus-stack"}:
        below = values.at("kube-state-metrics") if chart == "kube-prometheus-stack" else values
        allowed, known = _allowed_by_chart(below)
        yield _exporter(source, KUBE_STATE_METRICS, allowed, complete=known and whole)
    elif chart in {"dcgm-exporter", "gpu-operator"}:
        monitor = values.at("serviceMonitor") if chart == "dcgm-exporter" else values.at("dcgmExporter", "serviceMonitor")
        # The chart of the exporter has a ServiceMonitor unless told otherwise, the operator if told so.
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


def _workload(source: Source) -> Iterator[Exporter]:
    for container in source.fields.at("spec", "template", "spec", "containers").parts().fields:
        image = container.at("image").text()
        if isinstance(image, str) and image.rpartition("/")[2].startswith(KUBE_STATE_METRICS):
            allowed, known = _allowed_by_arguments(container.at("args"))
            yield _exporter(source, KUBE_STATE_METRICS, allowed, complete=known)


def _allowed_by_arguments(arguments: Field) -> tuple[set[tuple[str, str]], bool]:
    """Of `--flag=value`, or of a flag and its value one after the other."""
    listed = arguments.parts()
    texts = [str(each.text()) for each in listed.fields]
    words = [word for text in texts for word in (text.split("=", 1) if text.startswith("--") else [text])]
    allowed: set[tuple[str, str]] = set()
    for flag, value in pairwise(words):
        if flag in _ALLOWLISTS:
            allowed |= _allowed(value, *_ALLOWLISTS[flag])
    return allowed, listed.complete and all(each.known for each in listed.fields)


def _allowed(written: str, part: str, prefix: str) -> set[tuple[str, str]]:
    """Series and labels of an allowlist. kube-state-metrics writes what is no letter or digit of a key as _, in small letters by word."""
    return {
        (f"kube_{'*' if entry['kinds'] == '*' else entry['kinds'].removesuffix('s')}_{part}", prefix + _as_label(key))
        for entry in _ALLOWED.finditer(written)
        for key in entry["keys"].split(",")
    }


def _as_label(key: str) -> str:
    """A key of a label as kube-state-metrics names it: app.kubernetes.io/name is app_kubernetes_io_name, and every key is *."""
    return "*" if key.strip() == "*" else re.sub(r"\W", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key.strip())).lower()
