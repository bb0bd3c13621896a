"""What interruptions took: steps that flexspot_runtime had to do again, and workloads that Kueue sent back to their queues."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

from capacity.chargeback.books import Lost
from capacity.chargeback.increases import Increases
from capacity.chargeback.queries import Question
from capacity.chargeback.samples import merged

if TYPE_CHECKING:
    from collections.abc import Mapping

    from capacity.chargeback.owners import Owner
    from capacity.chargeback.samples import Seconds, Series
    from capacity.chargeback.utilisation import Held

_PACES = 99
"""Of so many changes the median is taken; more would say the same."""


@dataclass
class _Pace:
    """How long one step of a run takes: the median, because the jump of a resumed run is no step that it did."""

    step: float | None = None
    moment: Seconds = 0
    seconds_per_step: list[float] = field(default_factory=list[float])

    def see(self, moment: Seconds, step: float) -> None:
        if self.step is not None and step > self.step and len(self.seconds_per_step) < _PACES:
            self.seconds_per_step.append((moment - self.moment) / (step - self.step))
        if step != self.step:
            self.step, self.moment = step, moment


class LostWork:
    """Takes slices; counters that were there at `known_from` begin with what they had then."""

    def __init__(self, known_from: Seconds) -> None:
        self._interruptions = Increases[tuple[str, ...]](known_from)
        self._lost_steps = Increases[tuple[str, ...]](known_from)
        self._evictions = Increases[tuple[str, ...]](known_from)
        self._paces: dict[tuple[str, ...], _Pace] = {}
        self._pods: dict[tuple[str, str], tuple[Owner, float]] = {}

    def take(self, found: Mapping[Question, list[Series]], held: Mapping[tuple[str, str], list[Held]]) -> None:
        """The answers of a slice, and who had GPUs in it."""
        self._pods |= {pod: (spans[-1].owner, float(spans[-1].gpus)) for pod, spans in held.items()}
        for key, samples in merged(found[Question.STEPS], "namespace", "pod").items():
            pace = self._paces.setdefault(key, _Pace())
            for moment, step in samples:
                pace.see(moment, step)
        counters = (
            (self._interruptions, Question.INTERRUPTIONS, ("namespace", "pod")),
            (self._lost_steps, Question.LOST_STEPS, ("namespace", "pod")),
            (self._evictions, Question.EVICTIONS, ("instance", "cluster_queue", "reason")),
        )
        for counter, question, names in counters:
            for key, samples in merged(found[question], *names).items():
                counter.read(key, samples)

    def by_owner(self) -> dict[Owner, Lost]:
        """What each owner lost. Runs without GPUs are left out."""
        lost: dict[Owner, Lost] = {}
        for pod, (owner, gpus) in self._pods.items():
            interruptions, steps = self._interruptions.risen.get(pod, 0.0), self._lost_steps.risen.get(pod, 0.0)
            if not interruptions and not steps:
                continue
            book = lost.setdefault(owner, Lost())
            book.interruptions += interruptions
            book.steps += steps
            paces = self._paces[pod].seconds_per_step if pod in self._paces else []
            if paces:
                book.gpu_seconds += steps * median(paces) * gpus
            else:
                book.of_unknown_pace += steps
        return lost

    def evictions(self) -> dict[tuple[str, str], float]:
        """By cluster queue and reason."""
        found: dict[tuple[str, str], float] = {}
        for (_, queue, reason), risen in self._evictions.risen.items():
            if risen:
                found[queue, reason] = found.get((queue, reason), 0.0) + risen
        return found
