"""An API server's answer without one: policies evaluated by Google's own CEL in C++, with functions of Kubernetes beside it. Not a test."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from cel_expr_python import cel
from cel_expr_python.ext import ext_optional, ext_strings

from policies.inventory.pod_gpus import POD_MAKERS
from policies.values.field import quantity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policies.admission.policy import AdmissionPolicy

_NAMES = ("object", "oldObject", "request", "namespaceObject", "variables")
_RESOURCES = {
    ("", "LimitRange"): "limitranges",
    ("", "ResourceQuota"): "resourcequotas",
    **{kind: maker.resource for kind, maker in POD_MAKERS.items()},
}


class CelError(AssertionError):
    """An expression that does not compile, or that fails on an object: the API server would not know an answer."""


def _number(text: str) -> float:
    found = quantity(text)
    if found is None:
        raise ValueError(text)
    return float(found)


def _is_number(text: str) -> bool:
    return quantity(text) is not None


def _order(one: float, other: float) -> int:
    return (one > other) - (one < other)


def _function(name: str, returns: cel.Type, takes: list[cel.Type], implementation: Any, *, member: bool) -> cel.FunctionDecl:
    return cel.FunctionDecl(name, [cel.Overload(f"{name}_of_kubernetes", returns, takes, member, implementation)])


@cache
def _environment() -> cel.Env:
    number, text = cel.Type.DOUBLE, cel.Type.STRING
    functions = [
        _function("quantity", number, [text], _number, member=False),
        _function("isQuantity", cel.Type.BOOL, [text], _is_number, member=False),
        _function("compareTo", cel.Type.INT, [number, number], _order, member=True),
        _function("min", cel.Type.INT, [cel.Type.LIST], min, member=True),
        _function("max", cel.Type.INT, [cel.Type.LIST], max, member=True),
    ]
    return cel.NewEnv(
        variables=dict.fromkeys(_NAMES, cel.Type.DYN),
        extensions=[ext_optional.ExtOptional(), ext_strings.ExtStrings()],
        functions=functions,
    )


@cache
def _compiled(expression: str) -> cel.Expression:
    try:
        return _environment().compile(expression)
    except Exception as error:
        raise CelError(f"{error}\nin {expression}") from error


def evaluate(expression: str, **values: Any) -> Any:
    """What an expression is worth; raises CelError where it fails."""
    # Whatever is handed over is made CEL of, and that takes most of the time.
    found = _compiled(expression).eval(data={name: values.get(name, {}) for name in _roots(expression)})
    if found.type() == cel.Type.ERROR:
        raise CelError(f"{found.value()}\nin {expression}")
    # cel-expr-python 0.1.3 drops a reference to None for each null that it returns, until the interpreter aborts: no null may be in it.
    return found.plain_value()


def judged(
    policy: AdmissionPolicy,
    written: dict[str, Any],
    *,
    namespace_labels: Mapping[str, str] | None = None,
    old: dict[str, Any] | None = None,
    sender: str = "ann@acme.com",
) -> dict[str, list[str]] | None:
    """What each rule finds wrong with an object that is created, or updated from `old`; None where the policy is not asked."""
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
        "namespaceObject": {"metadata": {"name": namespace, "labels": dict(namespace_labels or {})}},
    }
    if not all(evaluate(condition.expression, **values) for condition in policy.conditions):
        return None
    variables: dict[str, Any] = {}
    for each in policy.variables:
        used = {name: variables[name] for name in _used(each.expression)}
        variables[each.name] = evaluate(each.expression, **values, variables=used)
    for each in policy.validations:
        found = {each.problems: variables[each.problems]}
        assert evaluate(each.expression, variables=found) == (not variables[each.problems])
        if variables[each.problems]:
            assert evaluate(each.message_expression, variables=found).startswith(f"{each.rule}: " if policy.guards else f"{each.rule} (FLX")
    return {each.rule: variables[each.problems] for each in policy.validations}


@cache
def _roots(expression: str) -> frozenset[str]:
    """The names at the beginning of paths in an expression; more at worst, as from a literal."""
    return frozenset(name for name in _NAMES if re.search(rf"\b{name}\b", expression))


@cache
def _used(expression: str) -> frozenset[str]:
    """The variables that an expression names: handing over others would take most of the time."""
    return frozenset(re.findall(r"\bvariables\.(\w+)", expression))
