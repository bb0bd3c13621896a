"""CEL as the API server evaluates it: Google's own evaluator in C++, with some of the functions that Kubernetes adds.

Kubernetes' libraries are described in https://kubernetes.io/docs/reference/using-api/cel/ (2026-11-26). Supported are:

- regular expressions: `find` and `findAll`;
- lists: `min`, `max` and `sum`, but not `isSorted`, `indexOf` and `lastIndexOf`;
- quantities: `quantity`, `isQuantity`, `compareTo`, `isGreaterThan`, `isLessThan` and `asApproximateFloat`, but not `add`, `sub`, `sign`,
  `isInteger` and `asInteger`.

The libraries of URLs, IP addresses, networks, versions and formats, and the authorizer, are missing.
"""

from __future__ import annotations

import operator
import re
from functools import cache
from typing import Any, Final

from cel_expr_python import cel
from cel_expr_python.ext import ext_optional, ext_strings

from flexspot.capacity.values.quantities import quantity

NAMES: Final = ("object", "oldObject", "request", "namespaceObject", "variables")
"""Variables available to a policy's expressions."""


class CelError(ValueError):
    """An expression that does not compile, or that fails on an object, so that the API server has no answer either."""


def _number(text: str) -> float:
    found = quantity(text)
    if found is None:
        raise ValueError("it is not a quantity")
    return float(found)


def _is_number(text: str) -> bool:
    return quantity(text) is not None


def _order(one: float, other: float) -> int:
    return (one > other) - (one < other)


def _find(text: str, pattern: str) -> str:
    found = re.search(pattern, text)
    return found[0] if found else ""


def _find_all(text: str, pattern: str) -> list[str]:
    return [each[0] for each in re.finditer(pattern, text)]


def _function(name: str, returns: cel.Type, takes: list[cel.Type], implementation: Any, *, member: bool) -> cel.FunctionDecl:
    return cel.FunctionDecl(name, [cel.Overload(f"{name}_of_kubernetes", returns, takes, member, implementation)])


@cache
def _environment() -> cel.Env:
    number, text, truth, whole, listed, element = (
        *(cel.Type.DOUBLE, cel.Type.STRING, cel.Type.BOOL, cel.Type.INT, cel.Type.LIST),
        cel.Type.DYN,
    )
    functions = [
        _function("quantity", number, [text], _number, member=False),
        _function("isQuantity", truth, [text], _is_number, member=False),
        _function("compareTo", whole, [number, number], _order, member=True),
        _function("isGreaterThan", truth, [number, number], operator.gt, member=True),
        _function("isLessThan", truth, [number, number], operator.lt, member=True),
        _function("asApproximateFloat", number, [number], float, member=True),
        _function("find", text, [text, text], _find, member=True),
        _function("findAll", listed, [text, text], _find_all, member=True),
        _function("min", element, [listed], min, member=True),
        _function("max", element, [listed], max, member=True),
        _function("sum", element, [listed], sum, member=True),
    ]
    return cel.NewEnv(
        variables=dict.fromkeys(NAMES, cel.Type.DYN),
        extensions=[ext_optional.ExtOptional(), ext_strings.ExtStrings()],
        functions=functions,
    )


@cache
def compiled(expression: str) -> cel.Expression:
    """Return the compiled expression. Raises CelError if it is not CEL, or names something that a policy does not have."""
    try:
        return _environment().compile(expression)
    except Exception as error:
        raise CelError(f"{error}\nin {expression}") from error


def other_than_truth(expression: str) -> str:
    """Return a description of an expression's result that the API server rejects because it is not a bool. Empty if it is accepted.

    The server requires exactly a bool (Kubernetes 1.36.1, apiserver/pkg/admission/plugin/cel/compile.go), so a bare field of an object is
    rejected. Variables have no type here, so an expression with one is accepted.
    """
    kind = compiled(expression).return_type()
    may_be = kind == cel.Type.BOOL or (kind == cel.Type.DYN and used_variables(expression))
    return "" if may_be else "a value of no known type" if kind == cel.Type.DYN else f"a value of type {kind.name().lower()}"


def evaluate(expression: str, **values: Any) -> Any:
    """Return the value of an expression. Raises CelError if it fails."""
    # Only values that the expression names are passed: their conversion to CEL takes most of the time.
    found = compiled(expression).eval(data={name: values.get(name, {}) for name in _roots(expression)})
    if found.type() == cel.Type.ERROR:
        raise CelError(f"{found.value()}\nin {expression}")
    # cel-expr-python 0.1.3 drops a reference to None for each null that it returns, until the interpreter aborts: no null may be in it.
    return found.plain_value()


@cache
def _roots(expression: str) -> frozenset[str]:
    """Return the NAMES that an expression uses. May include others, such as one inside a literal."""
    return frozenset(name for name in NAMES if re.search(rf"\b{name}\b", expression))


@cache
def used_variables(expression: str) -> frozenset[str]:
    """Return the variables that an expression names. Passing others as well would take most of the time."""
    return frozenset(re.findall(r"\bvariables\.(\w+)", expression))
