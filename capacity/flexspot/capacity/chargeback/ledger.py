"""Ledger: turns the answers of consecutive slices of time into the books. It keeps sums, never samples."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.chargeback.gpu_use import Books, HeldGpus, LostWork, NodeBook, NodeKey, Use, add_utilisation
from flexspot.capacity.chargeback.nodes import KnownLabels, NameConflicts, gpus_of_node, unit_share
from flexspot.capacity.chargeback.queries import Question
from flexspot.capacity.chargeback.samples import BRIDGED_STEPS, Gap, Matrix, Span, SpanReader, merged
from flexspot.capacity.values.quantities import SECONDS_OF_AN_HOUR

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from flexspot.capacity.chargeback.nodes import NodeFacts
    from flexspot.capacity.chargeback.queries import Work
    from flexspot.capacity.chargeback.samples import Period, Seconds

MOVING_SECONDS = 600
"""Seconds for which an old and a new object may both be reported: Prometheus repeats the last sample of a vanished series for five
minutes.
"""


class _Presence:
    """Times at which nodes of one name existed: the last before a slice, and those in it.

    A pod has no GPUs of a node that does not exist, although it is seen for a while longer than its node.
    """

    def __init__(self, spans: list[Span]) -> None:
        self._spans = sorted(spans, key=lambda each: each.start)
        self.until = max((each.end for each in spans), default=0)

    def cut(self, span: Span) -> Iterator[tuple[Span, bool]]:
        """Yield the span in pieces, each with whether a node existed."""
        reached = span.start
        for each in self._spans:
            start, end = max(each.start, reached), min(each.end, span.end)
            if start < end:
                if reached < start:
                    yield Span(reached, start, span.value), False
                yield Span(start, end, span.value), True
                reached = end
        if reached < span.end:
            yield Span(reached, span.end, span.value), False

    def is_transition(self, piece: Span) -> bool:
        """Return whether a piece is short and close to a node's existence, so that the node was seen late or the pod for too long."""
        after = any(each.end <= piece.start and piece.end - each.end <= MOVING_SECONDS for each in self._spans)
        return after or any(piece.end <= each.start <= piece.start + MOVING_SECONDS for each in self._spans)


_NOWHERE = _Presence([])


@dataclass(frozen=True)
class _Allocation:
    """GPUs that a pod had on a node in a span, in units of `share`."""

    pod: tuple[str, str]
    node: str
    facts: NodeFacts
    work: Work
    gpus: Fraction
    share: Fraction
    span: Span


class Ledger:
    """The books of a `period` sampled every `step` seconds. Slices are added in order, then the ledger is closed.

    At each of `cuts`, ordered moments, a price may change: books before and after are separate.
    """

    def __init__(self, period: Period, step: Seconds, bridged_steps: int = BRIDGED_STEPS, cuts: Iterable[Seconds] = ()) -> None:
        self._books = Books(period, step, tuple(each for each in cuts if period.start < each < period.end))
        self._labels = KnownLabels()
        self._lost = LostWork(period.start + step)
        self._nodes = SpanReader[tuple[str, ...]](step, bridged_steps, period.end)
        self._pods = SpanReader[tuple[str, ...]](step, bridged_steps, period.end)
        self._opencost = SpanReader[tuple[str, ...]](step, bridged_steps, period.end)
        self._doubled = NameConflicts()
        self._last_spans: dict[str, Span] = {}
        self._waiting: list[_Allocation] = []
        self._dropped = 0

    def take(self, answers: Mapping[Question, Matrix]) -> None:
        """Add the answers of one slice. A missing question counts as unknown."""
        self._dropped += sum(each.dropped for each in answers.values())
        found = {question: answers.get(question, Matrix()).series for question in Question}
        self._labels.learn(found)
        nodes = merged(found[Question.NODES], "node", "provider_id", "system_uuid")
        self._doubled.see("node", ((key[0], key[1:], [moment for moment, _ in samples]) for key, samples in nodes.items()))
        there = {node: [span] for node, span in self._last_spans.items()}
        for key, samples in nodes.items():
            for span in self._nodes.read(key, samples):
                there.setdefault(key[0], []).append(span)
                self._count(key[0], span)
        self._last_spans = {node: max(spans, key=lambda each: each.end) for node, spans in there.items()}
        presence = {node: _Presence(spans) for node, spans in there.items()}
        held: dict[tuple[str, str], list[HeldGpus]] = {}
        waiting, self._waiting = self._waiting, list[_Allocation]()
        for each in waiting:
            self._divide(each, presence.get(each.node, _NOWHERE), held, at_last=True)
        for key, samples in merged(found[Question.ALLOCATIONS], "uid", "namespace", "pod", "node", "resource").items():
            self._allocate(key, samples, presence.get(key[3], _NOWHERE), held)
        add_utilisation(merged(found[Question.UTILISATION], "namespace", "pod"), held, self._books.step)
        self._lost.take(found, held)
        for (node,), samples in merged(found[Question.OPENCOST], "node").items():
            for span in self._opencost.read((node,), samples):
                for facts, whole, _ in self._labels.of_node(node, span):
                    for piece in self._cut(whole):
                        book = self._book(node, facts, piece.start)
                        book.opencost_usd = (book.opencost_usd or Decimal(0)) + Decimal(
                            repr(piece.value)
                        ) * piece.seconds / SECONDS_OF_AN_HOUR

    def close(self) -> Books:
        """Return the books after the last slice."""
        books = self._books
        for each in self._waiting:
            was = self._last_spans.get(each.node)
            self._divide(each, _Presence([was] if was else []), {}, at_last=True)
        books.lost, books.evictions = self._lost.by_owner(), self._lost.evictions()
        for key, book in list(books.nodes.items()):
            # Only OpenCost knows this node.
            if book.seconds == 0:
                del books.nodes[key]
        books.gaps = [
            *(Gap(f"node {key[0]}", start, end) for key, start, end in self._nodes.gaps),
            *(Gap(f"pod {key[1]}/{key[2]}", start, end) for key, start, end in self._pods.gaps),
        ]
        for each in (self._labels.doubled, self._doubled):
            books.doubled |= each.longer_than(MOVING_SECONDS, books.step)
        if self._dropped:
            books.notes.append(f"{self._dropped} samples are no numbers (NaN or Inf) and count for nothing.")
        books.notes += self._labels.missing()
        return books

    def _count(self, node: str, span: Span) -> None:
        """Add the time of a node."""
        for facts, whole, units in self._labels.of_node(node, span):
            gpus = gpus_of_node(facts.catalogued, units)
            for piece in self._cut(whole):
                book = self._book(node, facts, piece.start)
                book.seconds += piece.seconds
                if facts.capacity_type is CapacityType.RESERVED:
                    book.add_span(piece.start, piece.end)
                book.gpu_seconds += gpus * piece.seconds

    def _allocate(
        self, key: tuple[str, ...], samples: list[tuple[Seconds, float]], node_was: _Presence, held: dict[tuple[str, str], list[HeldGpus]]
    ) -> None:
        uid, namespace, pod, node, resource = key
        for span in self._pods.read(key, samples):
            for facts, on_node, units in self._labels.of_node(node, span):
                share = unit_share(resource, facts.catalogued, units)
                for work, whole in self._labels.of_pod(uid, namespace, pod, facts.environment, on_node):
                    self._divide(_Allocation((namespace, pod), node, facts, work, share * round(whole.value), share, whole), node_was, held)

    def _divide(self, had: _Allocation, node_was: _Presence, held: dict[tuple[str, str], list[HeldGpus]], *, at_last: bool = False) -> None:
        """Count GPUs of a pod while its node existed. A later piece waits for the next slice, in which the node may continue."""
        for piece, was_there in node_was.cut(had.span):
            if was_there:
                for part in self._cut(piece):
                    use = self._book(had.node, had.facts, part.start).work.setdefault(had.work, Use())
                    use.allocated += had.gpus * part.seconds
                    goes_on = part.start > piece.start
                    held.setdefault(had.pod, []).append(HeldGpus(part.start, part.end, had.work.owner, had.gpus, had.share, use, goes_on))
            elif not at_last and piece.start >= node_was.until:
                self._waiting.append(replace(had, span=piece))
            elif not node_was.is_transition(piece):
                unmatched, owner = self._books.unmatched, had.work.owner
                unmatched[owner] = unmatched.get(owner, Fraction(0)) + had.gpus * piece.seconds

    def _book(self, node: str, facts: NodeFacts, moment: Seconds) -> NodeBook:
        books = self._books
        number = bisect_right(books.cuts, moment)
        since = books.cuts[number - 1] if number else books.period.start
        return books.nodes.setdefault(NodeKey(node, facts, since), NodeBook())

    def _cut(self, span: Span) -> Iterator[Span]:
        """Yield the span in pieces that do not cross a cut."""
        start, cuts = span.start, self._books.cuts
        for cut in cuts[bisect_right(cuts, span.start) :]:
            if cut >= span.end:
                break
            yield Span(start, cut, span.value)
            start = cut
        yield span if start == span.start else Span(start, span.end, span.value)
