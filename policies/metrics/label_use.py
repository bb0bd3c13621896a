"""Which labels an expression asks of which series, so that nothing comes of it where the series do not have them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from policies.metrics.promql import Aggregation, Binary, Call, Literal, Selector

if TYPE_CHECKING:
    from policies.metrics.promql import Node

_KEEPS_ALL = frozenset({"topk", "bottomk", "limitk", "limit_ratio"})
_FILTERS = frozenset({"and", "unless"})


@dataclass(frozen=True, slots=True)
class _Origin:
    """Series on their way through an expression, by their name, with the labels that the expression itself has given them."""

    series: str
    given: frozenset[str] = frozenset()


@dataclass
class _Asked:
    """What was asked so far: series and label, in the order of the expression, each once."""

    found: dict[tuple[str, str], None] = field(default_factory=dict[tuple[str, str], None])

    def ask(self, origins: tuple[_Origin, ...], labels: tuple[str, ...]) -> None:
        for origin in origins:
            for label in labels:
                if label not in origin.given:
                    self.found[origin.series, label] = None


def labels_asked(tree: Node) -> tuple[tuple[str, str], ...]:
    """Series and label for each label that an expression selects, groups, matches, copies or rewrites by.

    A label that the expression gives the series itself, with label_replace or from the other side of a match, is not asked of them.
    """
    asked = _Asked()
    _flow(tree, asked)
    return tuple(asked.found)


def _flow(node: Node, asked: _Asked) -> tuple[_Origin, ...]:
    """The series of which the labels come through. What an aggregation or a match has left of them is not followed further."""
    match node:
        case Selector(name=name) if name:
            origins = (_Origin(name),)
            asked.ask(origins, tuple(each.label for each in node.matchers if each.needs_label))
            return origins
        case Call():
            return _call(node, asked)
        case Aggregation():
            origins = tuple(origin for part in node.parts for origin in _flow(part, asked))
            asked.ask(origins, node.by or ())
            return origins if node.by is None or node.operator in _KEEPS_ALL else ()
        case Binary():
            return _binary(node, asked)
        case _:
            return ()


def _call(node: Call, asked: _Asked) -> tuple[_Origin, ...]:
    origins = tuple(origin for part in node.parts for origin in _flow(part, asked))
    texts = tuple(part.value for part in node.parts if isinstance(part, Literal) and isinstance(part.value, str))
    if node.function not in {"label_replace", "label_join"} or not texts:
        return origins
    # Both name first the label that they write. One has its source third, before a pattern, the other all from the third on.
    asked.ask(origins, texts[2:3] if node.function == "label_replace" else texts[2:])
    return tuple(replace(origin, given=origin.given | {texts[0]}) for origin in origins)


def _binary(node: Binary, asked: _Asked) -> tuple[_Origin, ...]:
    left, right = (_flow(part, asked) for part in node.parts)
    asked.ask(left + right, node.on or ())
    if node.many is not None:
        many, one = (left, right) if node.many == 0 else (right, left)
        asked.ask(one, node.copied)
        return tuple(replace(origin, given=origin.given.union(node.copied)) for origin in many)
    if node.operator == "or":
        return left + right
    return () if node.on is not None and node.operator not in _FILTERS else left or right
