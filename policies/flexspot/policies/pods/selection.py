"""Pods that a label selector selects, and the number of pods of one template that run at the same time."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING

from flexspot.policies.inventory.views import Inventory, PodSet
from flexspot.policies.values.field import UNKNOWN, Field, Tri, Unknown, all_of, negated

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from flexspot.policies.inventory.objects import KubernetesObject


_MEMBER = re.compile(r"spec\.(?P<path>[A-Za-z.]+)\[(?P<key>[^\]]+)\]")
_REPLICATED = frozenset({"Deployment", "StatefulSet", "ReplicaSet", "ReplicationController"})


def copies_of(pods: PodSet) -> Decimal | Unknown:
    """Return the number of pods that the object itself requests.

    UNKNOWN if it has no number and another object may set one: an autoscaler sets the replicas of a Deployment that names none.
    """
    if pods.job is not None:
        at_once = _at_least_one(pods.job.at("parallelism"))
        ends = pods.job.at("completions").number()
        width = min(at_once, ends) if isinstance(at_once, Decimal) and isinstance(ends, Decimal) else at_once
        return _times(width, _at_least_one(_member(pods).at("replicas")))
    if pods.kind in _REPLICATED:
        replicas = pods.object_spec.at("replicas").number()
        return UNKNOWN if replicas is None else replicas
    if pods.kind == "LeaderWorkerSet":
        size = _at_least_one(pods.object_spec.at("leaderWorkerTemplate", "size"))
        leads = pods.where.endswith("leaderTemplate.spec")
        width = Decimal(1) if leads or size is UNKNOWN else size - 1
        return _times(UNKNOWN if size is UNKNOWN else width, _at_least_one(pods.object_spec.at("replicas")))
    member = _member(pods)
    most = member.at("maxReplicas")
    return _at_least_one(member.at("replicas") if most.absent else most)


def _member(pods: PodSet) -> Field:
    """Return the element or entry of the object that contains the template, such as one of a JobSet's replicatedJobs."""
    found = _MEMBER.match(pods.where)
    if found is None:
        return Field(None)
    members = dict(pods.object_spec.at(*found["path"].split(".")).parts().named)
    return members.get(found["key"], Field(None))


def _at_least_one(count: Field) -> Decimal | Unknown:
    number = count.number()
    return Decimal(1) if number is None else number


def _times(one: Decimal | Unknown, other: Decimal | Unknown) -> Decimal | Unknown:
    return UNKNOWN if one is UNKNOWN or other is UNKNOWN else one * other


_WRITTEN_BY_CONTROLLERS = (
    *("apps.kubernetes.io/", "batch.kubernetes.io/", "controller-uid", "jobset.sigs.k8s.io/", "leaderworkerset.sigs.k8s.io/"),
    *("pod-template-hash", "ray.io/", "statefulset.kubernetes.io/", "training.kubeflow.org/"),
)
_JOB_NAME = ("job-name", "batch.kubernetes.io/job-name")


def selected(budget: KubernetesObject, inventory: Inventory) -> list[tuple[PodSet, Tri]]:
    """Return the pod sets that a budget selects or may select, each with True or UNKNOWN."""
    selector, space = budget.spec.at("selector"), budget.namespace
    if selector.absent:
        return []
    if space is UNKNOWN:
        here, elsewhere = list[PodSet](), _in_order(_candidates(selector, None, inventory), inventory)
    else:
        here, elsewhere = _candidates(selector, space, inventory), _candidates(selector, UNKNOWN, inventory)
    answers = [
        *((pods, selects(selector, pods)) for pods in here if not pods.partial),
        *((pods, all_of([selects(selector, pods), UNKNOWN])) for pods in elsewhere if not pods.partial),
    ]
    return [(pods, answer) for pods, answer in answers if answer is not False]


def _in_order(chosen: list[PodSet], inventory: Inventory) -> list[PodSet]:
    """Return the pod sets in the order of the inventory."""
    wanted = {id(each) for each in chosen}
    return [each for each in inventory.of(PodSet) if id(each) in wanted]


def _candidates(selector: Field, namespace: str | Unknown | None, inventory: Inventory) -> list[PodSet]:
    """Return the pod sets of a namespace (None: of all) that may have the selector's most selective label, or all if it has no label."""
    if namespace is None:
        pod_sets = list(inventory.of(PodSet))
    else:
        pod_sets = inventory.by("namespace", PodSet, lambda each: each.space).get(namespace, [])
    bounds: list[list[PodSet]] = []
    for key, values in _demanded(selector):
        of_key = inventory.once("pods by label", (namespace, key), lambda key=key: _by_label(key, pod_sets))
        wanted = of_key.keys() - {None, UNKNOWN} if values is None else values
        bounds.append([each for value in (*wanted, UNKNOWN) for each in of_key.get(value, ())])
    return min(bounds, key=len, default=pod_sets)


def _demanded(selector: Field) -> Iterator[tuple[str, set[object] | None]]:
    """Yield the labels that all selected pods have, each with its possible values. None means any value."""
    for key, value in selector.at("matchLabels").parts().named:
        if value.known:
            yield key, {value.text()}
    for expression in selector.at("matchExpressions").parts().fields:
        key, operator, values = expression.at("key").text(), expression.at("operator").text(), expression.at("values").parts()
        texts: set[object] = {each.text() for each in values.fields}
        if isinstance(key, str) and operator == "In" and values.complete and UNKNOWN not in texts:
            yield key, texts
        elif isinstance(key, str) and operator == "Exists":
            yield key, None


def _by_label(key: str, pod_sets: list[PodSet]) -> Mapping[object, list[PodSet]]:
    found: dict[object, list[PodSet]] = {}
    for pods in pod_sets:
        found.setdefault(_label(pods, key).text(), []).append(pods)
    return found


def selects(selector: Field, pods: PodSet) -> Tri:
    """Return whether `{matchLabels, matchExpressions}` selects the pods. An empty selector selects all."""
    labels = selector.at("matchLabels").parts()
    expressions = selector.at("matchExpressions").parts()
    if not (selector.known and labels.complete and expressions.complete):
        return UNKNOWN
    wanted = [_one_of(_label(pods, key), [value]) for key, value in labels.named]
    return all_of([True, *wanted, *(_holds(each, pods) for each in expressions.fields)])


def _holds(expression: Field, pods: PodSet) -> Tri:
    key, operator = expression.at("key").text(), expression.at("operator").text()
    if UNKNOWN in (key, operator):
        return UNKNOWN
    label = _label(pods, str(key))
    there: Tri = not label.absent if label.known else UNKNOWN
    values = list(expression.at("values").parts().fields)
    match operator:
        case "In":
            return _one_of(label, values)
        case "NotIn":
            return negated(_one_of(label, values))
        case "Exists":
            return there
        case _:
            return negated(there)


def _one_of(label: Field, values: list[Field]) -> Tri:
    texts = [each.text() for each in values]
    if not label.known:
        return UNKNOWN
    return True if label.text() in texts else (UNKNOWN if UNKNOWN in texts else False)


def _label(pods: PodSet, key: str) -> Field:
    written = pods.template_labels.at(key)
    if not written.absent:
        return written
    if key in _JOB_NAME and pods.kind == "Job":
        return Field(pods.identity.name)
    controlled = key in _JOB_NAME or key.startswith(_WRITTEN_BY_CONTROLLERS)
    return Field(UNKNOWN) if controlled and pods.kind != "Pod" else written
