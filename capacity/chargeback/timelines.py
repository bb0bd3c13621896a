"""Samples as time: for how long something was so, where nobody looked, and what was known when."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from capacity.chargeback.samples import Seconds

KeyT = TypeVar("KeyT", bound="Hashable")
ValueT = TypeVar("ValueT")

BRIDGED_STEPS = 5
"""How many missing samples are taken to be as the one before, unless told otherwise."""


@dataclass(frozen=True)
class Span:
    """`value` from `start` until before `end`."""

    start: Seconds
    end: Seconds
    value: float

    @property
    def seconds(self) -> Seconds:
        """How long it is."""
        return self.end - self.start


@dataclass(frozen=True)
class Gap:
    """Between two samples of `name` nobody looked for longer than is bridged: what was then is not counted."""

    name: str
    start: Seconds
    end: Seconds


class SpanReader(Generic[KeyT]):
    """Turns samples into spans, slice after slice, and keeps of each key its last sample alone.

    A sample at t stands for t until before t + `step`, so n samples are n steps: a start and an end are each off by less than a step.
    Up to `bridged_steps` missing samples are taken to be as the one before; more end the span and are told as a gap. `end` clips.
    """

    def __init__(self, step: Seconds, bridged_steps: int, end: Seconds) -> None:
        self._step = step
        self._bridged = step * (bridged_steps + 1)
        self._end = end
        self._last: dict[KeyT, tuple[Seconds, float]] = {}
        self.gaps: list[tuple[KeyT, Seconds, Seconds]] = []

    def read(self, key: KeyT, samples: Sequence[tuple[Seconds, float]]) -> Iterator[Span]:
        """The spans of more samples of `key`, oldest first; they touch where nothing is missing."""
        start: Seconds | None = None
        reached, value = self._last.get(key, (None, 0.0))
        reached = None if reached is None else reached + self._step
        for moment, found in samples:
            missing = 0 if reached is None else moment - reached
            if missing < 0:
                # Counted already.
                continue
            if missing > 0:
                if missing + self._step <= self._bridged:
                    if start is None:
                        start = reached
                    reached = moment
                else:
                    self.gaps.append((key, moment - missing, moment))
            if start is None:
                start = moment
            elif found != value or reached != moment:
                yield from self._clipped(start, reached or moment, value)
                start = moment
            reached, value = moment + self._step, found
        if start is not None and reached is not None:
            yield from self._clipped(start, reached, value)
            self._last[key] = (reached - self._step, value)

    def _clipped(self, start: Seconds, end: Seconds, value: float) -> Iterator[Span]:
        if start < min(end, self._end):
            yield Span(start, min(end, self._end), value)


class Timeline(Generic[ValueT]):
    """What was known of something from which moment on."""

    def __init__(self) -> None:
        self._moments: list[Seconds] = []
        self._values: list[ValueT] = []

    def learn(self, moment: Seconds, value: ValueT) -> None:
        """From `moment` on it is `value`; moments rise."""
        if not self._values or self._values[-1] != value:
            self._moments.append(moment)
            self._values.append(value)

    @property
    def last(self) -> ValueT | None:
        """What was known last; None: nothing yet."""
        return self._values[-1] if self._values else None

    def at(self, moment: Seconds) -> ValueT:
        """What was known then: the newest before, or, before anything was, the first. An object is there before its labels are."""
        return self._values[max(0, bisect_right(self._moments, moment) - 1)]

    def cut(self, span: Span) -> Iterator[Span]:
        """The span in pieces, each of which lies within one value."""
        start = span.start
        for moment in self._moments[bisect_right(self._moments, span.start) :]:
            if moment >= span.end:
                break
            # What came first is valid before it was seen.
            if moment != self._moments[0]:
                yield Span(start, moment, span.value)
                start = moment
        yield Span(start, span.end, span.value)

    def keep_last(self) -> None:
        """Forgets what was before; for the next slice."""
        del self._moments[:-1], self._values[:-1]
