"""What each pod has of GPUs, whose it is, and how busy it keeps them, as recorded series."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.chargeback.gpu_shares import WHOLE
from capacity.chargeback.label_names import OWNER_LABELS, label_of
from capacity.chargeback.nodes import UNKNOWN
from capacity.chargeback.owners import NO_TEAM, NONE
from capacity.chargeback.queries import Question
from capacity.measurement.gpu_unit_rules import GPUS_PER_UNIT
from capacity.measurement.node_rules import NODE
from capacity.measurement.promql_text import first_of, given, quoted, single

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from capacity.measurement.promql_text import Scope
    from capacity.measurement.rule_group import RecordingRule

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
