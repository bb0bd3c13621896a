"""PromQL as a tree of a few kinds of nodes, with syntax problems, and the labels that an expression requires of each series.

Known series are listed in metric_families.yaml, which is read with the first expression.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from flexspot.policies.values.field import UNKNOWN, Unknown

if TYPE_CHECKING:
    from collections.abc import Iterator

    import promql_parser


_CHARACTERS: Final = 20_000
"""Length of the longest expression that is read."""

_STEPS: Final = 200
"""Most brackets and operators of an expression. The parser recurses once for each, and a few thousand crash the whole process."""

_STEP = re.compile(r"[(\[{+*/%^<>=!-]|\b(?:and|or|unless|atan2)\b")

COMPARISONS: Final = frozenset({"==", "!=", ">", "<", ">=", "<="})


@dataclass(frozen=True, slots=True)
class Matcher:
    """One condition of a selector."""

    label: str
    operator: str
    """One of =, !=, =~ and !~."""
    value: str

    @property
    def needs_label(self) -> bool:
        """True if no series without the label meets the condition. To PromQL an absent label is an empty one."""
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
    """A part of an expression, with the parts below it."""

    parts: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """A number or a text."""

    value: float | str = ""


@dataclass(frozen=True, slots=True)
class Selector(Node):
    """Series by name, at one time or over a range."""

    name: str = ""
    """Empty if the name is given by a pattern."""
    matchers: tuple[Matcher, ...] = ()


@dataclass(frozen=True, slots=True)
class Call(Node):
    """A call of a function with `parts` as its arguments."""

    function: str = ""


@dataclass(frozen=True, slots=True)
class Aggregation(Node):
    """An aggregation over `parts[0]`."""

    operator: str = ""
    by: tuple[str, ...] | None = None
    """Labels that it groups by; None if it lists dropped labels (`without`)."""


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """A binary operation on `parts[0]` and `parts[1]`."""

    operator: str = ""
    on: tuple[str, ...] | None = None
    """Labels that it matches by; None if it does not list them."""
    copied: tuple[str, ...] = ()
    """Labels that group_left takes from the right side, or group_right from the left."""
    many: int | None = None
    """The side, 0 or 1, that may have several series for one of the other; None if neither."""


def walk(node: Node) -> Iterator[Node]:
    """Yield the node and everything below it, from the outside in."""
    yield node
    for part in node.parts:
        yield from walk(part)


def parsed(text: str) -> Node | None:
    """Return the expression as a tree. None if it is not PromQL, or too long to be read."""
    found = _read(text)
    return found if isinstance(found, Node) else None


def promql_problem(text: str) -> str | Unknown:
    """Return the problem of an expression, or an empty text if it can be read.

    UNKNOWN if it is too long to be read, or if another Prometheus may accept it: functions that came or went with a release, and syntax
    that has to be turned on.
    """
    found = _read(text)
    return "" if isinstance(found, Node) else found


_PROBLEM_LENGTH: Final = 120
"""Most characters of the parser's message that are quoted."""

# Prometheus with a feature flag accepts more than the parser (promql-parser 0.12): calculated durations and modifiers of ranges.
_EXPERIMENTAL = re.compile(r"\[[^\]\"']*[-+*/%^][^\]\"']*\]|\b(?:anchored|smoothed|fill)\b")


@lru_cache(maxsize=2048)
def _read(text: str) -> Node | str | Unknown:
    """Return the expression as a tree, or its problem."""
    if len(text) > _CHARACTERS or len(_STEP.findall(text)) > _STEPS:
        return UNKNOWN
    import promql_parser  # noqa: PLC0415 -- only where there is an expression

    try:
        return _node(promql_parser.parse(text), promql_parser)
    except ValueError as error:
        said = " ".join(str(error).split())[:_PROBLEM_LENGTH]
        return UNKNOWN if said.startswith("unknown function") or _EXPERIMENTAL.search(text) else said
    except BaseException as error:  # a Rust panic is not an Exception, and its class cannot be imported
        if type(error).__name__ != "PanicException":
            raise
        return UNKNOWN


def _node(expression: Any, kinds: Any) -> Node:  # noqa: PLR0911 -- one line for each kind
    """Return the parser's tree as ours. Brackets, signs and ranges are left out, since no rule uses them."""
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
    """Return whether a regular expression matches the empty text. One that Python cannot read counts as matching."""
    try:
        return re.fullmatch(pattern, "") is not None
    except re.error:
        return True


FILE: Final = Path(__file__).parent / "metric_families.yaml"

HISTOGRAM_SERIES: Final = ("_bucket", "_sum", "_count")
"""Suffixes of the series names of a classic histogram."""


@dataclass(frozen=True)
class AbsentLabels:
    """Labels that the series of an exporter have only if a configuration adds them."""

    exporter: str
    series: tuple[str, ...]
    """Names of series, which may end in *."""
    labels: tuple[str, ...]
    """Names of labels, which may end in *."""
    instead: str
    """Advice to the user."""
    of_exporter: bool
    """True if the series have these labels, but with the place of the exporter as their value."""

    def covers(self, series: str, label: str) -> bool:
        """Return whether the label is absent from the series."""
        return self.speaks_of(series) and any(fnmatchcase(label, each) for each in self.labels)

    def speaks_of(self, series: str) -> bool:
        """Return whether the series is the exporter's."""
        return any(fnmatchcase(series, each) for each in self.series)


@cache
def _families() -> dict[str, Any]:
    return yaml.load(FILE.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)


def _names(part: str) -> frozenset[str]:
    return frozenset(name for each in _families()[part] for name in each["names"])


@cache
def histograms() -> frozenset[str]:
    """Return the names of histograms. No series has such a name without a suffix."""
    return _names("histograms")


@cache
def amounts_by_container() -> frozenset[str]:
    """Return the names of series with one value per container or pod: its amount of a resource."""
    return _names("amounts_by_container")


@cache
def absent_labels() -> tuple[AbsentLabels, ...]:
    """Return the labels that people wrongly expect."""
    return tuple(
        AbsentLabels(
            exporter=each["exporter"],
            series=tuple(each["series"]),
            labels=tuple(each["labels"]),
            instead=each["instead"],
            of_exporter=each.get("of_exporter", False),
        )
        for each in _families()["absent_labels"]
    )


_KEEPS_ALL = frozenset({"topk", "bottomk", "limitk", "limit_ratio"})
_FILTERS = frozenset({"and", "unless"})


@dataclass(frozen=True, slots=True)
class _Origin:
    """Series passing through an expression, by name, with the labels that the expression itself has added."""

    series: str
    given: frozenset[str] = frozenset()


@dataclass
class _Requirements:
    """Series and labels required so far, in the order of the expression, each once."""

    found: dict[tuple[str, str], None] = field(default_factory=dict[tuple[str, str], None])

    def require(self, origins: tuple[_Origin, ...], labels: tuple[str, ...]) -> None:
        for origin in origins:
            for label in labels:
                if label not in origin.given:
                    self.found[origin.series, label] = None


def required_labels(tree: Node) -> tuple[tuple[str, str], ...]:
    """Return series and label for each label that an expression selects, groups, matches, copies or rewrites by.

    A label that the expression itself adds, with label_replace or from the other side of a match, is not required of the series.
    """
    required = _Requirements()
    _flow(tree, required)
    return tuple(required.found)


def _flow(node: Node, required: _Requirements) -> tuple[_Origin, ...]:
    """Return the series whose labels pass through. Results of an aggregation or match with fewer labels are not followed further."""
    match node:
        case Selector(name=name) if name:
            origins = (_Origin(name),)
            required.require(origins, tuple(each.label for each in node.matchers if each.needs_label))
            return origins
        case Call():
            return _call(node, required)
        case Aggregation():
            origins = tuple(origin for part in node.parts for origin in _flow(part, required))
            required.require(origins, node.by or ())
            return origins if node.by is None or node.operator in _KEEPS_ALL else ()
        case Binary():
            return _flow_binary(node, required)
        case _:
            return ()


def _call(node: Call, required: _Requirements) -> tuple[_Origin, ...]:
    origins = tuple(origin for part in node.parts for origin in _flow(part, required))
    texts = tuple(part.value for part in node.parts if isinstance(part, Literal) and isinstance(part.value, str))
    if node.function not in {"label_replace", "label_join"} or not texts:
        return origins
    # Both functions name the written label first. label_replace has its source third, before a pattern; label_join has sources from the
    # third on.
    required.require(origins, texts[2:3] if node.function == "label_replace" else texts[2:])
    return tuple(replace(origin, given=origin.given | {texts[0]}) for origin in origins)


def _flow_binary(node: Binary, required: _Requirements) -> tuple[_Origin, ...]:
    left, right = (_flow(part, required) for part in node.parts)
    required.require(left + right, node.on or ())
    if node.many is not None:
        many, one = (left, right) if node.many == 0 else (right, left)
        required.require(one, node.copied)
        return tuple(replace(origin, given=origin.given.union(node.copied)) for origin in many)
    if node.operator == "or":
        return left + right
    return () if node.on is not None and node.operator not in _FILTERS else left or right
