"""Keeps the books: takes the answers of one slice of time after the other and keeps sums, never samples."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from capacity.catalog.capacity_type import CapacityType
from capacity.chargeback.gpu_use import Books, Held, LostWork, NodeBook, Use, add_utilisation
from capacity.chargeback.nodes import Doubled, KnownLabels, gpus_of_node, unit_share
from capacity.chargeback.queries import Question
from capacity.chargeback.samples import BRIDGED_STEPS, Gap, Matrix, SpanReader, merged

if TYPE_CHECKING:
    from collections.abc import Mapping

    from capacity.chargeback.nodes import NodeFacts
    from capacity.chargeback.queries import Owner
    from capacity.chargeback.samples import Period, Seconds

_HOUR = 3600
_MOVING = 600
"""For so many seconds the old and the new may both be told of: Prometheus repeats the last sample of what vanished for five minutes."""


class Ledger:
    """The books of a `period` sampled every `step` seconds. Slices are taken in order; then it is closed."""

    def __init__(self, period: Period, step: Seconds, bridged_steps: int = BRIDGED_STEPS) -> None:
        self._books = Books(period, step)
        self._labels = KnownLabels()
        self._lost = LostWork(period.start + step)
        self._nodes = SpanReader[tuple[str, ...]](step, bridged_steps, period.end)
        self._pods = SpanReader[tuple[str, ...]](step, bridged_steps, period.end)
        self._opencost = SpanReader[tuple[str, ...]](step, bridged_steps, period.end)
        self._doubled = Doubled()
        self._dropped = 0

    def take(self, answers: Mapping[Question, Matrix]) -> None:
        """The answers of one slice; a question that is not answered is one of which nothing is known."""
        self._dropped += sum(each.dropped for each in answers.values())
        found = {question: answers.get(question, Matrix()).series for question in Question}
        self._labels.learn(found)
        nodes = merged(found[Question.NODES], "node", "provider_id", "system_uuid")
        self._doubled.see("node", ((key[0], key[1:], [moment for moment, _ in samples]) for key, samples in nodes.items()))
        for key, samples in nodes.items():
            for span in self._nodes.read(key, samples):
                for facts, piece, units in self._labels.of_node(key[0], span):
                    book = self._book(key[0], facts)
                    book.seconds += piece.seconds
                    if facts.capacity_type is CapacityType.RESERVED:
                        book.there(piece.start, piece.end)
                    book.gpu_seconds += gpus_of_node(facts.catalogued, units) * piece.seconds
        held: dict[tuple[str, str], list[Held]] = {}
        for key, samples in merged(found[Question.ALLOCATIONS], "uid", "namespace", "pod", "node", "resource").items():
            self._allocate(key, samples, held)
        add_utilisation(merged(found[Question.UTILISATION], "namespace", "pod"), held, self._books.step)
        self._lost.take(found, held)
        for (node,), samples in merged(found[Question.OPENCOST], "node").items():
            for span in self._opencost.read((node,), samples):
                for facts, piece, _ in self._labels.of_node(node, span):
                    book = self._book(node, facts)
                    book.opencost_usd = (book.opencost_usd or Decimal(0)) + Decimal(repr(piece.value)) * piece.seconds / _HOUR

    def close(self) -> Books:
        """What was counted."""
        books = self._books
        books.lost, books.evictions = self._lost.by_owner(), self._lost.evictions()
        for key, book in list(books.nodes.items()):
            if book.seconds == 0:
                for owner, use in book.uses.items():
                    books.homeless[owner] = books.homeless.get(owner, Fraction(0)) + use.allocated
                del books.nodes[key]
        books.gaps = [
            *(Gap(f"node {key[0]}", start, end) for key, start, end in self._nodes.gaps),
            *(Gap(f"pod {key[1]}/{key[2]}", start, end) for key, start, end in self._pods.gaps),
        ]
        for each in (self._labels.doubled, self._doubled):
            books.doubled |= each.longer_than(_MOVING, books.step)
        if self._dropped:
            books.notes.append(f"{self._dropped} samples are no numbers (NaN or Inf) and count for nothing.")
        books.notes += self._labels.missing()
        return books

    def _allocate(self, key: tuple[str, ...], samples: list[tuple[Seconds, float]], held: dict[tuple[str, str], list[Held]]) -> None:
        uid, namespace, pod, node, resource = key
        for span in self._pods.read(key, samples):
            for facts, on_node, units in self._labels.of_node(node, span):
                share = unit_share(resource, facts.catalogued, units)
                for owner, piece in self._labels.of_pod(uid, namespace, facts.environment, on_node):
                    use = self._use(node, facts, owner)
                    gpus = share * round(piece.value)
                    use.allocated += gpus * piece.seconds
                    held.setdefault((namespace, pod), []).append(Held(piece.start, piece.end, owner, gpus, share, use))

    def _book(self, node: str, facts: NodeFacts) -> NodeBook:
        return self._books.nodes.setdefault((node, facts), NodeBook())

    def _use(self, node: str, facts: NodeFacts, owner: Owner) -> Use:
        return self._book(node, facts).uses.setdefault(owner, Use())
