"""PromQL as a tree of a few kinds of nodes, so that rules ask what an expression does; and why an expression is no PromQL."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from policies.values.field import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Iterator

    import promql_parser

    from policies.values.field import Unknown


_CHARACTERS: Final = 20_000
"""The longest expression that is read."""

_STEPS: Final = 200
"""The most brackets and operators of one. The parser descends a step for each, and at some thousands the whole process ends."""

_STEP = re.compile(r"[(\[{+*/%^<>=!-]|\b(?:and|or|unless|atan2)\b")

COMPARISONS: Final = frozenset({"==", "!=", ">", "<", ">=", "<="})


@dataclass(frozen=True, slots=True)
class Matcher:
    """One condition of a selector; `operator` is =, !=, =~ or !~."""

    label: str
    operator: str
    value: str

    @property
    def needs_label(self) -> bool:
        """Whether no series without the label meets it: an absent label is an empty one to PromQL."""
        match self.operator:
            case "=":
                return bool(self.value)
            case "!=":
                return not self.value
            case "=~":
                return not _matches_nothing(self.value)
            case _:
                return _matches_nothing(self.value)


@dataclass(frozen=True, slots=True)
class Node:
    """A part of an expression; `parts` are those below it."""

    parts: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """A number or a text."""

    value: float | str = ""


@dataclass(frozen=True, slots=True)
class Selector(Node):
    """Series by name, at a time or over one. `name` is empty where the name is no plain one."""

    name: str = ""
    matchers: tuple[Matcher, ...] = ()


@dataclass(frozen=True, slots=True)
class Call(Node):
    """A function of `parts`."""

    function: str = ""


@dataclass(frozen=True, slots=True)
class Aggregation(Node):
    """An aggregation over `parts[0]`; `by` are the labels that it groups by, None where it says which it drops (`without`)."""

    operator: str = ""
    by: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """`parts[0]` and `parts[1]`, matched `on` labels, None where it does not say.

    `copied` are labels that group_left takes from the right side, or group_right from the left; `many` is the side that may have several
    series for one of the other: 0, 1, or None.
    """

    operator: str = ""
    on: tuple[str, ...] | None = None
    copied: tuple[str, ...] = ()
    many: int | None = None


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it, from the outside in."""
    yield node
    for part in node.parts:
        yield from walk(part)


def too_long(text: str) -> bool:
    """Whether an expression is not read at all, whatever it is."""
    return len(text) > _CHARACTERS or len(_STEP.findall(text)) > _STEPS


@lru_cache(maxsize=2048)
def parsed(text: str) -> Node | None:
    """The expression as a tree; None for what is no PromQL, or too long to be read."""
    if too_long(text):
        return None
    import promql_parser  # noqa: PLC0415 -- only where there is an expression

    try:
        return _node(promql_parser.parse(text), promql_parser)
    except ValueError:
        return None
    except BaseException as error:  # a panic of Rust's is none of Python's ordinary exceptions, and its class cannot be imported
        if type(error).__name__ != "PanicException":
            raise
        return None


def _node(expression: Any, kinds: Any) -> Node:  # noqa: PLR0911 -- one line for each kind
    """The parser's tree as ours. Brackets, signs and ranges say nothing that a rule asks for, and are left out."""
    match expression:
        case kinds.ParenExpr() | kinds.UnaryExpr() | kinds.SubqueryExpr():
            return _node(expression.expr, kinds)
        case kinds.MatrixSelector():
            return _selector(expression.vector_selector)
        case kinds.VectorSelector():
            return _selector(expression)
        case kinds.Call():
            return Call(tuple(_node(each, kinds) for each in expression.args), expression.func.name)
        case kinds.AggregateExpr():
            return Aggregation((_node(expression.expr, kinds),), str(expression.op), _kept(expression.modifier, kinds))
        case kinds.BinaryExpr():
            return _binary(expression, kinds)
        case _:
            return Literal((), expression.val)


def _kept(modifier: promql_parser.AggModifier | None, kinds: Any) -> tuple[str, ...] | None:
    if modifier is None:
        return ()
    return tuple(modifier.labels) if modifier.type == kinds.AggModifierType.By else None


def _selector(expression: promql_parser.VectorSelector) -> Selector:
    matchers = tuple(Matcher(each.name, _OPERATORS[str(each.op)], each.value) for each in expression.matchers.matchers)
    named = next((each.value for each in matchers if each.label == "__name__" and each.operator == "="), "")
    return Selector((), expression.name or named, matchers)


_OPERATORS = {"MatchOp.Equal": "=", "MatchOp.NotEqual": "!=", "MatchOp.Re": "=~", "MatchOp.NotRe": "!~"}


def _binary(expression: promql_parser.BinaryExpr, kinds: Any) -> Binary:
    sides = (_node(expression.lhs, kinds), _node(expression.rhs, kinds))
    modifier = expression.modifier
    if modifier is None:
        return Binary(sides, str(expression.op))
    matching = modifier.matching
    on = tuple(matching.labels) if matching and matching.type == kinds.LabelModifierType.Include else None
    cardinality = kinds.VectorMatchCardinality
    side = 0 if modifier.card == cardinality.ManyToOne else (1 if modifier.card == cardinality.OneToMany else None)
    return Binary(sides, str(expression.op), on, tuple(modifier.group_labels or ()), side)


def _matches_nothing(pattern: str) -> bool:
    """Whether a regular expression matches the empty text. One that Python cannot read is taken to."""
    try:
        return re.fullmatch(pattern, "") is not None
    except re.error:
        return True


_WORDS: Final = 120

# Prometheus behind a feature flag takes more than the parser (promql-parser 0.12): calculated durations and modifiers of ranges.
_EXPERIMENTAL = re.compile(r"\[[^\]\"']*[-+*/%^][^\]\"']*\]|\b(?:anchored|smoothed|fill)\b")


def promql_problem(text: str) -> str | Unknown:
    """What is wrong with an expression, empty for one that can be read.

    UNKNOWN for one that is too long to be read, and for what another Prometheus may take: functions that came or went with a release, and
    syntax that has to be turned on.
    """
    if too_long(text):
        return UNKNOWN
    if parsed(text) is not None:
        return ""
    import promql_parser  # noqa: PLC0415 -- only where there is an expression

    try:
        promql_parser.parse(text)
    except ValueError as error:
        said = " ".join(str(error).split())[:_WORDS]
        return UNKNOWN if said.startswith("unknown function") or _EXPERIMENTAL.search(text) else said
    except BaseException as error:  # as in `parsed`: a panic of the parser's is a defect of the parser
        if type(error).__name__ != "PanicException":
            raise
    return UNKNOWN
