"""What was known of nodes, namespaces and pods, and when: labels come later than their object, and change."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from capacity.chargeback.labels import NODE_LABELS, OWNER_LABELS, Owner, allow_list, label_of, owner_of
from capacity.chargeback.nodes import NodeFacts, node_facts
from capacity.chargeback.queries import Question
from capacity.chargeback.samples import Timeline, merged, named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from capacity.chargeback.samples import Labels, Seconds, Series, Span

ValueT = TypeVar("ValueT")

Units = tuple[tuple[str, float], ...]

_OWNER_NAMES = tuple(map(label_of, OWNER_LABELS))
_NODE_NAMES = tuple(map(label_of, NODE_LABELS))


class KnownLabels:
    """Learns slice after slice, and keeps of the slices before only what was known last."""

    def __init__(self) -> None:
        self._facts: dict[str, Timeline[NodeFacts]] = {}
        self._units: dict[str, Timeline[Units]] = {}
        self._namespaces: dict[str, Timeline[tuple[str, ...]]] = {}
        self._pods: dict[str, Timeline[tuple[str, ...]]] = {}
        self._seen: set[Question] = set()

    def learn(self, found: Mapping[Question, list[Series]]) -> None:
        """The labels in the answers of a slice."""
        for each in (self._facts, self._units, self._namespaces, self._pods):
            for timeline in each.values():
                timeline.keep_last()
        _learn(self._facts, found[Question.NODE_LABELS], "node", node_facts)
        _learn(self._namespaces, found[Question.NAMESPACES], "namespace", _owner_values)
        _learn(self._pods, found[Question.POD_LABELS], "uid", _owner_values)
        self._learn_units(found[Question.NODE_GPUS])
        for question, names in ((Question.NODE_LABELS, _NODE_NAMES), (Question.POD_LABELS, _OWNER_NAMES)):
            if any(each.labels.get(name) for each in found[question] for name in names):
                self._seen.add(question)

    def of_node(self, node: str, span: Span) -> Iterator[tuple[NodeFacts, Span, dict[str, float]]]:
        """The span in pieces within which the node was the same: what it was, and what it offered."""
        facts, units = self._facts.get(node), self._units.get(node)
        for piece in [span] if facts is None else facts.cut(span):
            for part in [piece] if units is None else units.cut(piece):
                known = NodeFacts() if facts is None else facts.at(part.start)
                yield known, part, {} if units is None else dict(units.at(part.start))

    def of_pod(self, uid: str, namespace: str, environment: str, span: Span) -> Iterator[tuple[Owner, Span]]:
        """The span in pieces within which the pod was somebody's."""
        own, shared = self._pods.get(uid), self._namespaces.get(namespace)
        for piece in [span] if own is None else own.cut(span):
            for part in [piece] if shared is None else shared.cut(piece):
                of_own = {} if own is None else dict(zip(_OWNER_NAMES, own.at(part.start), strict=True))
                of_shared = {} if shared is None else dict(zip(_OWNER_NAMES, shared.at(part.start), strict=True))
                yield owner_of(of_own, of_shared, environment), part

    def missing(self) -> list[str]:
        """What kube-state-metrics never showed, and how it is made to."""
        told = {
            Question.NODE_LABELS: "No label of a node was seen: machines, capacity types and pools are unknown, and so are prices.",
            Question.POD_LABELS: "No owner label of a pod with GPUs was seen: teams are those of namespaces, where these have the label.",
        }
        missing = [text for question, text in told.items() if question not in self._seen]
        return [*missing, f"Start kube-state-metrics with {allow_list()}"] if missing else []

    def _learn_units(self, series: list[Series]) -> None:
        changes: dict[str, list[tuple[Seconds, str, float]]] = {}
        for (node, resource), samples in merged(series, "node", "resource").items():
            last: float | None = None
            for moment, value in samples:
                if value != last:
                    changes.setdefault(node, []).append((moment, resource, value))
                last = value
        for node, found in changes.items():
            timeline = self._units.setdefault(node, Timeline())
            state: dict[str, float] = dict(timeline.last or ())
            by_moment: dict[Seconds, dict[str, float]] = {}
            for moment, resource, value in sorted(found):
                by_moment.setdefault(moment, {})[resource] = value
            for moment, values in by_moment.items():
                state |= values
                timeline.learn(moment, tuple(sorted(state.items())))


def _owner_values(labels: Labels) -> tuple[str, ...]:
    return tuple(labels.get(name, "") for name in _OWNER_NAMES)


def _learn(into: dict[str, Timeline[ValueT]], series: list[Series], name: str, read: Callable[[Labels], ValueT]) -> None:
    """A set of labels is valid from its first sample on, and again from the first one after another set's."""
    by_object: dict[str, list[Series]] = {}
    for each in series:
        by_object.setdefault(named(each.labels, name), []).append(each)
    for key, sets in by_object.items():
        timeline = into.setdefault(key, Timeline())
        if len(sets) == 1:
            timeline.learn(sets[0].samples[0][0], read(sets[0].labels))
            continue
        values = [read(each.labels) for each in sets]
        for moment, number in sorted((moment, number) for number, each in enumerate(sets) for moment, _ in each.samples):
            timeline.learn(moment, values[number])
