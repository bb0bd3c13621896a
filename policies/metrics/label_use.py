"""Which labels an expression asks of which series, and which series there are: families.yaml, read when the first expression needs it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from policies.metrics.promql import Aggregation, Binary, Call, Literal, Selector

if TYPE_CHECKING:
    from policies.metrics.promql import Node


FILE: Final = Path(__file__).parent / "families.yaml"

HISTOGRAM_SERIES: Final = ("_bucket", "_sum", "_count")
"""What the names of a classic histogram's series end in."""


@dataclass(frozen=True)
class AbsentLabels:
    """Labels that the series of an exporter have only if somebody adds them; `series` and `labels` may end in *.

    `of_exporter`: the series have them, and they say where the exporter runs. `instead` is what to do about it.
    """

    exporter: str
    series: tuple[str, ...]
    labels: tuple[str, ...]
    instead: str
    of_exporter: bool

    def covers(self, series: str, label: str) -> bool:
        """Whether the label is absent from the series."""
        return self.speaks_of(series) and any(fnmatchcase(label, each) for each in self.labels)

    def speaks_of(self, series: str) -> bool:
        """Whether the series is the exporter's."""
        return any(fnmatchcase(series, each) for each in self.series)


@cache
def _families() -> dict[str, Any]:
    return yaml.load(FILE.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)


def _names(part: str) -> frozenset[str]:
    return frozenset(name for each in _families()[part] for name in each["names"])


@cache
def histograms() -> frozenset[str]:
    """Names of which no series is called so."""
    return _names("histograms")


@cache
def amounts_by_container() -> frozenset[str]:
    """Series of which there is one for each container or pod, whose value is how much of a resource it has."""
    return _names("amounts_by_container")


@cache
def absent_labels() -> tuple[AbsentLabels, ...]:
    """Labels that people expect in vain."""
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
