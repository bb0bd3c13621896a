"""Recording rules of Prometheus for GPUs: the GPUs and owner of each node, and GPUs allocated, used and idle by team."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import product
from math import ceil, floor
from typing import TYPE_CHECKING, Any

import yaml

from flexspot.capacity.catalog.accelerators import NVIDIA, SERIES_VALUES
from flexspot.capacity.catalog.machines import Vendor, machines_of
from flexspot.capacity.catalog.node_labels import ENVIRONMENT_LABEL, INSTANCE_TYPE_LABEL, OWNER_LABEL, TEAM_LABEL
from flexspot.capacity.chargeback.nodes import CAPACITY_MARKS, UNKNOWN, unit_share
from flexspot.capacity.chargeback.queries import CENTRAL, NO_TEAM, NONE, OWNER_LABELS, Question, label_of, queries

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from flexspot.capacity.catalog.machines import Gpu, Machine


@dataclass(frozen=True)
class RecordingRule:
    """A series that Prometheus records."""

    record: str
    """Name of the series."""
    expression: str
    """PromQL expression of its values."""
    labels: dict[str, str] = field(default_factory=dict[str, str])
    """Labels in addition to those of the expression."""


@dataclass(frozen=True)
class RuleGroup:
    """Rules that Prometheus evaluates in order, every `interval_seconds`. Each sees the results of those before it."""

    name: str
    interval_seconds: int
    rules: tuple[RecordingRule, ...]


def rules_spec(groups: Iterable[RuleGroup]) -> dict[str, Any]:
    """Return the content of a rules file, which is also the spec of a PrometheusRule and of Google's ClusterRules.

    https://prometheus.io/docs/prometheus/latest/configuration/recording_rules/
    """
    return {"groups": [_group(each) for each in groups]}


def rules_file(groups: Iterable[RuleGroup]) -> str:
    """Return the rules as a file for Prometheus' `rule_files`."""
    return yaml.safe_dump(rules_spec(groups), sort_keys=False, width=140, allow_unicode=True)


def _group(group: RuleGroup) -> dict[str, Any]:
    return {"name": group.name, "interval": f"{group.interval_seconds}s", "rules": [_rule(each) for each in group.rules]}


def _rule(rule: RecordingRule) -> dict[str, Any]:
    return {"record": rule.record, "expr": rule.expression, **({"labels": dict(rule.labels)} if rule.labels else {})}


@dataclass(frozen=True)
class SeriesScope:
    """The part of all series that the rules cover, such as {"cluster": "prod"}."""

    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    """Required of every series that a rule reads, and added to every series that it records."""

    @property
    def matcher(self) -> str:
        """The labels as one matcher, as the report's queries accept it. Empty for all series."""
        return ",".join(f"{name}={quoted(value)}" for name, value in sorted(self.labels.items()))

    def recorded(self, record: str, *matchers: str) -> str:
        """Return a selector of recorded series."""
        written = ",".join([*matchers, *([self.matcher] if self.labels else [])])
        return f"{record}{{{written}}}" if written else record

    def rule(self, record: str, expression: str, **labels: str) -> RecordingRule:
        """Return a rule whose series have the scope's labels."""
        return RecordingRule(record, expression, {**labels, **self.labels})


def quoted(text: str) -> str:
    """Return a text as PromQL writes it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def one_of(names: Iterable[str]) -> str:
    """Return a regular expression, as PromQL writes it, that matches only these names: letters, digits, hyphens, underscores and dots."""
    return quoted("|".join(each.replace(".", "\\.") for each in sorted(set(names))))


def given(expression: str, *labels: str) -> str:
    """Return an expression with the exporter's own labels where Prometheus has renamed them: `exported_pod` becomes `pod`.

    It renames them unless honor_labels is true: https://prometheus.io/docs/prometheus/latest/configuration/configuration/#scrape_config
    """
    for label in labels:
        expression = f'label_replace({expression}, "{label}", "$1", "exported_{label}", "(.+)")'
    return expression


def single(expression: str, *labels: str) -> str:
    """Return an expression with one series for each value of `labels`.

    Two replicas of an exporter may report different states, and a match fails if both are present.
    """
    return f"topk by ({', '.join(labels)}) (1, {expression})"


def first_of(expression: str, label: str, sources: Iterable[str], otherwise: str) -> str:
    """Return the expression with `label` set to the first of `sources` that is not empty.

    Values must not contain a semicolon. No Kubernetes label does.
    """
    names = ", ".join(quoted(each) for each in sources)
    joined = f'label_join({expression}, "{label}", ";", {names})'
    found = f'label_replace({joined}, "{label}", "$1", "{label}", ";*([^;]+).*")'
    return f'label_replace({found}, "{label}", {quoted(otherwise)}, "{label}", ";*")'


NODE = "flexspot_node:bought_as:max"
"""1, by node, machine, capacity_type, environment and owner. The owner is the node's team label, or else its owner label."""

_COPIED = {"machine": INSTANCE_TYPE_LABEL, "environment": ENVIRONMENT_LABEL}


def node_rule(asked: Mapping[Question, str], scope: SeriesScope) -> RecordingRule:
    """Return the rule for nodes."""
    node = single(given(asked[Question.NODE_LABELS], "node"), "node")
    node = f'label_replace({node}, "capacity_type", {quoted(UNKNOWN)}, "node", ".*")'
    # The last match wins, so the first mark is applied last.
    for mark in reversed(CAPACITY_MARKS):
        value = ".+" if mark.value is None else mark.value
        node = f'label_replace({node}, "capacity_type", {quoted(mark.capacity_type)}, "{label_of(mark.label)}", {quoted(value)})'
    for label, key in _COPIED.items():
        node = f'label_replace({node}, "{label}", "$1", "{label_of(key)}", "(.+)")'
    node = first_of(node, "owner", map(label_of, (TEAM_LABEL, OWNER_LABEL)), otherwise="")
    return scope.rule(NODE, f"max by (node, machine, capacity_type, environment, owner) ({node})")


UNITS = "flexspot_node:gpu_units:max"
"""Amount of each resource that a node offers, by node and resource."""

GPUS_PER_UNIT = "flexspot_node:gpus_per_unit:max"
"""GPUs per unit of a resource, by node and resource."""

NODE_GPUS = "flexspot_node:gpus:max"
"""GPUs of a node, by node."""

_OF_MACHINE = "flexspot_node:gpus_of_machine:max"
_PER_PARTITION = "flexspot_node:gpus_per_partition:max"
_MOST_SLICES = 7
_COMPUTE = (1, 2, 3, 4, 7)
_MEMORY = tuple(Fraction(1, parts) for parts in (1, 2, 4, 8))
_MEBIBYTES = 1024
_WHOLE = f"resource=~{one_of(SERIES_VALUES)}"


def gpu_unit_rules(asked: Mapping[Question, str], scope: SeriesScope) -> Iterator[RecordingRule]:
    """Yield the rules for units of GPUs. They need the rule for nodes."""
    yield scope.rule(UNITS, f"max by (node, resource) ({given(asked[Question.NODE_GPUS], 'node')})")
    for count, machines in _by_count().items():
        selected = scope.recorded(NODE, f"machine=~{one_of(each.name for each in machines)}")
        # The label distinguishes rules of the same name: Prometheus warns of duplicates.
        yield scope.rule(_OF_MACHINE, f"{count} * group by (node, gpu) ({_with_model(selected, machines)})", gpus=str(count))
    units, of_machine = scope.recorded(UNITS), scope.recorded(_OF_MACHINE)
    for share, profiles in _partitions().items():
        of_models = [(_profiles(names), f"gpu={quoted(model)}") for model, names in profiles.items()]
        offered = " or ".join(
            f"({scope.recorded(UNITS, f'resource=~{resource}')} and on (node) {scope.recorded(_OF_MACHINE, model)})"
            for resource, model in of_models
        )
        yield scope.rule(_PER_PARTITION, f"{_written(share)} * group by (node, resource) ({offered})", part=str(share))
    yield scope.rule(GPUS_PER_UNIT, f"max by (node, resource) ({_per_unit(scope)})")
    per_unit = scope.recorded(GPUS_PER_UNIT)
    yield scope.rule(
        NODE_GPUS,
        f"max by (node) ({of_machine}) or on (node) sum by (node) ({units} * on (node, resource) group_left () {per_unit})",
    )


def _by_count() -> dict[int, list[Machine]]:
    """Return the machines with a fixed number of GPUs, by that number. Nodes of other machines report their number."""
    counted: defaultdict[int, list[Machine]] = defaultdict(list)
    for machine, gpu in _machines():
        if len(gpu.counts) == 1:
            counted[gpu.count].append(machine)
    return dict(sorted(counted.items()))


def _machines() -> list[tuple[Machine, Gpu]]:
    machines = [each for cloud in Vendor for each in machines_of(cloud).values()]
    return [(each, each.gpu) for each in machines if each.gpu is not None]


@cache
def _partitions() -> dict[Fraction, dict[str, set[str]]]:
    """Return the resources by their part of a GPU and the GPU's model, where the part differs from that of an unknown GPU.

    NVIDIA's profiles have one, two, three, four or all seven slices of compute. They have all, a half, a quarter or an eighth of the
    memory, at most twice their part of the compute. Their names round gigabytes up or down.
    """
    found: defaultdict[Fraction, defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    by_gpu = {(gpu.model, gpu.memory_mib): (machine, gpu) for machine, gpu in _machines() if gpu.accelerator is NVIDIA}
    for (machine, gpu), compute, memory in product(by_gpu.values(), _COMPUTE, _MEMORY):
        if memory > 2 * Fraction(compute, _MOST_SLICES):
            continue
        gigabytes = memory * gpu.memory_mib / _MEBIBYTES
        for resource in (f"nvidia_com_mig_{compute}g_{rounded}gb" for rounded in (floor(gigabytes), ceil(gigabytes))):
            share = unit_share(resource, machine, {})
            if share != unit_share(resource, None, {}):
                found[share][gpu.model].add(resource)
    return {share: dict(sorted(found[share].items())) for share in sorted(found)}


def _with_model(selected: str, machines: list[Machine]) -> str:
    """Return the nodes with the GPU's model in the label `gpu`, where its partitions are known."""
    partitioned = {model for profiles in _partitions().values() for model in profiles}
    models: defaultdict[str, list[str]] = defaultdict(list)
    for each in machines:
        if each.gpu is not None and each.gpu.model in partitioned:
            models[each.gpu.model].append(each.name)
    for model, names in sorted(models.items()):
        selected = f'label_replace({selected}, "gpu", {quoted(model)}, "machine", {one_of(names)})'
    return selected


def _profiles(names: set[str]) -> str:
    """Return a regular expression of the profiles with suffixes, such as the media extensions of 1g.10gb+me."""
    prefix = "nvidia_com_mig_"
    return quoted(f"{prefix}({'|'.join(sorted(each.removeprefix(prefix) for each in names))})(_.+)?")


def _per_unit(scope: SeriesScope) -> str:
    """Return GPUs per unit: whole GPUs, shared ones, known partitions, and other partitions by their compute."""
    whole = scope.recorded(UNITS, _WHOLE)
    shared = f"clamp_max(max by (node) ({scope.recorded(_OF_MACHINE)}) / on (node) group_right () {whole}, 1)"
    by_compute = {compute: scope.recorded(UNITS, f'resource=~"nvidia_com_mig_{compute}g_.+"') for compute in range(1, _MOST_SLICES + 1)}
    unknown = " or ".join(
        f"{_written(Fraction(compute, _MOST_SLICES))} * group by (node, resource) ({offered})" for compute, offered in by_compute.items()
    )
    apart = "or on (node, resource)"
    return f"{shared} {apart} group by (node, resource) ({whole}) {apart} {scope.recorded(_PER_PARTITION)} {apart} ({unknown})"


def _written(share: Fraction) -> str:
    return str(share.numerator) if share.denominator == 1 else f"{share.numerator} / {share.denominator}"


OWNER_DIMENSIONS = ("team", "project", "workload_type", "environment")
"""Names of the owner labels in recorded series, in their order."""

DIMENSIONS = (*OWNER_DIMENSIONS, "capacity_type")
"""Labels by which GPUs are counted."""

POD_ALLOCATED = "flexspot_pod:gpus_allocated:sum"
"""GPUs, or Neuron devices, of a pod, by uid, namespace, pod, node and DIMENSIONS."""

POD_USED = "flexspot_pod:gpus_used:sum"
"""Busy GPUs among them, where activity is measured."""

POD_BUSY = "flexspot_pod:gpu_units_busy:sum"
"""Sum of the utilisation of a pod's devices, by namespace and pod."""

_UNITS = "flexspot_pod:gpu_units:sum"
_GPUS = "flexspot_pod:gpus:sum"
_POD = "uid, namespace, pod, node"


def pod_rules(asked: Mapping[Question, str], scope: SeriesScope) -> Iterator[RecordingRule]:
    """Yield the rules for pods. They need those for nodes and for units of GPUs."""
    units, per_unit = scope.recorded(_UNITS), scope.recorded(GPUS_PER_UNIT)
    requested = given(asked[Question.ALLOCATIONS], "namespace", "pod", "node")
    yield scope.rule(_UNITS, f"max by ({_POD}, resource) ({requested})")
    # A pod can appear before its node reports its resources.
    whole = scope.recorded(_UNITS, _WHOLE)
    yield scope.rule(_GPUS, f"sum by ({_POD}) ({units} * on (node, resource) group_left () {per_unit} or {whole})")
    yield scope.rule(POD_ALLOCATED, f"sum by ({_POD}, {', '.join(DIMENSIONS)}) ({_owned(asked, scope)})")
    busy = given(asked[Question.UTILISATION], "namespace", "pod")
    yield scope.rule(POD_BUSY, f"max by (namespace, pod) ({busy})")
    yield scope.rule(POD_USED, _used(scope, units, per_unit))


def _owned(asked: Mapping[Question, str], scope: SeriesScope) -> str:
    """Return the GPUs of pods with DIMENSIONS as labels: from the pod, else from its namespace, else from its node's environment."""
    gpus, node = scope.recorded(_GPUS), scope.recorded(NODE)
    keys = [label_of(each) for each in OWNER_LABELS]
    of_pod = single(asked[Question.POD_LABELS], "uid")
    of_namespace = single(given(asked[Question.NAMESPACES], "namespace"), "namespace")
    for dimension, key in zip(OWNER_DIMENSIONS, keys, strict=True):
        of_namespace = f'label_replace({of_namespace}, "namespace_{dimension}", "$1", "{key}", "(.+)")'
    default = ", ".join(f"namespace_{each}" for each in OWNER_DIMENSIONS)
    expression = (
        f"{gpus} * on (uid) group_left ({', '.join(keys)}) ({_all_of('uid', of_pod, gpus)})"
        f" * on (namespace) group_left ({default}) ({_all_of('namespace', of_namespace, gpus)})"
        f" * on (node) group_left (capacity_type, environment) ({_all_of('node', node, gpus)})"
    )
    for dimension, key in zip(OWNER_DIMENSIONS, keys, strict=True):
        sources = [key, f"namespace_{dimension}", *(["environment"] if dimension == "environment" else [])]
        expression = first_of(expression, dimension, sources, NO_TEAM if dimension == "team" else NONE)
    return first_of(expression, "capacity_type", ["capacity_type"], UNKNOWN)


def _all_of(label: str, known: str, gpus: str) -> str:
    """Return the known values, and 1 for labels without a known value: a match would drop their pods."""
    return f"{known} or on ({label}) group by ({label}) ({gpus})"


def _used(scope: SeriesScope, units: str, per_unit: str) -> str:
    """Return busy devices in GPUs, at most the allocated ones. A partition's device counts as its part of a GPU."""
    allocated, busy = scope.recorded(POD_ALLOCATED), scope.recorded(POD_BUSY)
    held = f"group by (namespace, pod, node, resource) ({units})"
    share = f"max by (namespace, pod) ({held} * on (node, resource) group_left () {per_unit})"
    measured = f"0 * {allocated} + on (namespace, pod) group_left () (clamp_min({busy}, 0) * on (namespace, pod) {share})"
    return f"({measured} < {allocated}) or ({allocated} and on (namespace, pod) {busy})"


GROUP = "flexspot-gpus"

INTERVAL_SECONDS = 60
"""The report's step."""

ALLOCATED = "flexspot:gpus_allocated:sum"
"""GPUs allocated to pods."""

USED = "flexspot:gpus_used:sum"
"""Busy GPUs among them. Without the GPUs whose activity is not measured."""

MEASURED = "flexspot:gpus_measured:sum"
"""Allocated GPUs whose activity is measured. The used ones are a part of these."""

IDLE = "flexspot:gpus_idle:sum"
"""GPUs that no pod has. With the allocated ones they are all GPUs. Their team is the node's, or else its owner, or else (central)."""


def rule_groups(scope: Mapping[str, str] | None = None) -> tuple[RuleGroup, ...]:
    """Return the rules. `scope` are labels that every series must have and every recorded one gets, such as {"cluster": "prod"}.

    All are in one group, because each needs the results of those before it.
    """
    return (RuleGroup(GROUP, INTERVAL_SECONDS, tuple(_rules(SeriesScope(scope or {})))),)


def rules_yaml(scope: Mapping[str, str] | None = None) -> str:
    """Return the rules as a file for Prometheus' `rule_files`."""
    return rules_file(rule_groups(scope))


def _rules(scope: SeriesScope) -> Iterator[RecordingRule]:
    asked = {each.question: each.expression for each in queries(scope.matcher)}
    yield node_rule(asked, scope)
    yield from gpu_unit_rules(asked, scope)
    yield from pod_rules(asked, scope)
    by = ", ".join(DIMENSIONS)
    allocated, used = scope.recorded(POD_ALLOCATED), scope.recorded(POD_USED)
    yield scope.rule(ALLOCATED, f"sum by ({by}) ({allocated})")
    yield scope.rule(USED, f"sum by ({by}) ({used})")
    yield scope.rule(MEASURED, f"sum by ({by}) ({allocated} and on (namespace, pod) {scope.recorded(POD_BUSY)})")
    yield scope.rule(IDLE, f"sum by (team, environment, capacity_type) ({_idle(scope)})", project=NONE, workload_type=NONE)


def _idle(scope: SeriesScope) -> str:
    """Return the GPUs of nodes without those of pods, with the nodes' owners. A pod's series can outlast its node's."""
    gpus, node = scope.recorded(NODE_GPUS), scope.recorded(NODE)
    had = f"sum by (node) ({scope.recorded(POD_ALLOCATED)}) or on (node) 0 * {gpus}"
    known = f"{node} or on (node) group by (node) ({gpus})"
    expression = f"clamp_min({gpus} - on (node) ({had}), 0) * on (node) group_left (capacity_type, environment, owner) ({known})"
    for label, source, otherwise in (
        ("team", "owner", CENTRAL),
        ("environment", "environment", NONE),
        ("capacity_type", "capacity_type", UNKNOWN),
    ):
        expression = first_of(expression, label, [source], otherwise)
    return expression
