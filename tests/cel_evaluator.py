"""A stand-in for an API server's admission: policies evaluated by Google's CEL in C++, with Kubernetes' functions. Not a test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flexspot.policies.admission.guarantee import MAY_EVERYWHERE
from flexspot.policies.inventory.pod_gpus import POD_MAKERS
from flexspot.policies.own_rules.evaluation import evaluate, used_variables

if TYPE_CHECKING:
    from collections.abc import Mapping

    from flexspot.policies.admission.policy import AdmissionPolicy

_RESOURCES = {
    ("", "LimitRange"): "limitranges",
    ("", "PersistentVolumeClaim"): "persistentvolumeclaims",
    ("", "ResourceQuota"): "resourcequotas",
    **{kind: maker.resource for kind, maker in POD_MAKERS.items()},
}


def judged(  # noqa: PLR0913 -- a request and its namespace are described by exactly these
    policy: AdmissionPolicy,
    written: dict[str, Any],
    *,
    namespace_labels: Mapping[str, str] | None = None,
    namespace_annotations: Mapping[str, str] | None = None,
    old: dict[str, Any] | None = None,
    sender: str = "ann@acme.com",
) -> dict[str, list[str]] | None:
    """Return the violations per rule of an object that is created, or updated from `old`. None if the policy does not apply.

    Service accounts outside the object's namespace have rights in the whole cluster.
    """
    group = written["apiVersion"].rpartition("/")[0]
    operation = "CREATE" if old is None else "UPDATE"
    asked = {
        (rule.group, resource, operation) for rule in policy.resource_rules for resource in rule.resources for operation in rule.operations
    }
    if (group, _RESOURCES.get((group, written["kind"])), operation) not in asked:
        return None
    namespace = written["metadata"].get("namespace", "default")
    values: dict[str, Any] = {
        "object": written,
        "oldObject": old or {},
        "request": {"operation": operation, "namespace": namespace, "userInfo": {"username": sender}},
        "namespaceObject": {
            "metadata": {"name": namespace, "labels": dict(namespace_labels or {}), "annotations": dict(namespace_annotations or {})}
        },
    }
    # This evaluator has no authorizer.
    may = str(not sender.startswith(f"system:serviceaccount:{namespace}:")).lower()
    if not all(evaluate(condition.expression.replace(MAY_EVERYWHERE, may), **values) for condition in policy.conditions):
        return None
    variables: dict[str, Any] = {}
    for each in policy.variables:
        used = {name: variables[name] for name in used_variables(each.expression)}
        variables[each.name] = evaluate(each.expression, **values, variables=used)
    for each in policy.validations:
        found = {each.problems: variables[each.problems]}
        assert evaluate(each.expression, variables=found) == (not variables[each.problems])
        if variables[each.problems]:
            assert evaluate(each.message_expression, variables=found).startswith(f"{each.rule}: " if policy.guards else f"{each.rule} (FLX")
    return {each.rule: variables[each.problems] for each in policy.validations}
