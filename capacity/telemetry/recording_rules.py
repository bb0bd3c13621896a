"""GPUs allocated, used and idle by team, project, workload type, environment and capacity type: what Prometheus is to record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.chargeback.gpu_shares import WHOLE
from capacity.chargeback.labels import CENTRAL, NO_TEAM, NONE, OWNER_LABELS, label_of
from capacity.chargeback.nodes import UNKNOWN
from capacity.chargeback.queries import Question, queries
from capacity.telemetry.gpu_unit_rules import GPUS_PER_UNIT, NODE, NODE_GPUS, gpu_unit_rules, node_rule
from capacity.telemetry.rule_group import RuleGroup, Scope, first_of, given, quoted, rules_file, single

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from capacity.telemetry.rule_group import RecordingRule


OWNER_DIMENSIONS = ("team", "project", "workload_type", "environment")
"""What the owner labels are called in recorded series, in their order."""

DIMENSIONS = (*OWNER_DIMENSIONS, "capacity_type")
"""The labels by which GPUs are counted."""

POD_ALLOCATED = "flexspot_pod:gpus_allocated:sum"
"""GPUs that a pod has, by uid, namespace, pod, node and what they are counted by."""

POD_USED = "flexspot_pod:gpus_used:sum"
"""How many of them are busy, where that is measured."""

POD_BUSY = "flexspot_pod:gpu_units_busy:sum"
"""The sum over a pod's devices of how busy each is, by namespace and pod."""

_UNITS = "flexspot_pod:gpu_units:sum"
_GPUS = "flexspot_pod:gpus:sum"
_POD = "uid, namespace, pod, node"


def pod_rules(asked: Mapping[Question, str], scope: Scope) -> Iterator[RecordingRule]:
    """The rules, after those of nodes and of units of GPUs."""
    units, per_unit = scope.recorded(_UNITS), scope.recorded(GPUS_PER_UNIT)
    requested = given(asked[Question.ALLOCATIONS], "namespace", "pod", "node")
    yield scope.rule(_UNITS, f"max by ({_POD}, resource) ({requested})")
    # A pod can be there before its node tells what it offers.
    whole = scope.recorded(_UNITS, f"resource={quoted(WHOLE)}")
    yield scope.rule(_GPUS, f"sum by ({_POD}) ({units} * on (node, resource) group_left () {per_unit} or {whole})")
    yield scope.rule(POD_ALLOCATED, f"sum by ({_POD}, {', '.join(DIMENSIONS)}) ({_owned(asked, scope)})")
    busy = given(asked[Question.UTILISATION], "namespace", "pod")
    yield scope.rule(POD_BUSY, f"max by (namespace, pod) ({busy})")
    yield scope.rule(POD_USED, _used(scope, units, per_unit))


def _owned(asked: Mapping[Question, str], scope: Scope) -> str:
    """The GPUs of pods with the labels by which they are counted: a pod's own first, then its namespace's, then its node's environment."""
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
    """What is known, and 1 for what nothing is known of: a match would leave its pods out."""
    return f"{known} or on ({label}) group by ({label}) ({gpus})"


def _used(scope: Scope, units: str, per_unit: str) -> str:
    """Busy devices in GPUs, and at most what is allocated. A partition's device counts as much as the partition is of a GPU."""
    allocated, busy = scope.recorded(POD_ALLOCATED), scope.recorded(POD_BUSY)
    held = f"group by (namespace, pod, node, resource) ({units})"
    share = f"max by (namespace, pod) ({held} * on (node, resource) group_left () {per_unit})"
    measured = f"0 * {allocated} + on (namespace, pod) group_left () (clamp_min({busy}, 0) * on (namespace, pod) {share})"
    return f"({measured} < {allocated}) or ({allocated} and on (namespace, pod) {busy})"


GROUP = "flexspot-gpus"

INTERVAL_SECONDS = 60
"""The report's own step."""

ALLOCATED = "flexspot:gpus_allocated:sum"
"""GPUs that pods have."""

USED = "flexspot:gpus_used:sum"
"""How many of them were busy; nothing of those whose activity nobody measures."""

MEASURED = "flexspot:gpus_measured:sum"
"""How many of them have their activity measured: what is used is a part of these."""

IDLE = "flexspot:gpus_idle:sum"
"""GPUs that no pod has; with those allocated, all there are. Their team is that of the node, or else its owner, or else (central)."""


def rule_groups(scope: Mapping[str, str] | None = None) -> tuple[RuleGroup, ...]:
    """The rules. `scope` are labels that every series has to have and every recorded one gets, such as {"cluster": "prod"}; default: none.

    All are in one group, because each needs what the ones before it recorded.
    """
    return (RuleGroup(GROUP, INTERVAL_SECONDS, tuple(_rules(Scope(scope or {})))),)


def rules_yaml(scope: Mapping[str, str] | None = None) -> str:
    """The rules as a file for Prometheus' `rule_files`."""
    return rules_file(rule_groups(scope))


def _rules(scope: Scope) -> Iterator[RecordingRule]:
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


def _idle(scope: Scope) -> str:
    """What nodes have and pods do not, with whose the nodes are. A pod can be seen for longer than its node."""
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
