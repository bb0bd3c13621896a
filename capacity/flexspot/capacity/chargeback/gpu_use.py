"""Sums of a period's samples, before any price: seconds of nodes, how busy allocated GPUs were, and what interruptions cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from statistics import median
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from flexspot.capacity.chargeback.queries import Owner, Question
from flexspot.capacity.chargeback.samples import merged

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence
    from decimal import Decimal

    from flexspot.capacity.chargeback.nodes import NodeFacts
    from flexspot.capacity.chargeback.queries import Work
    from flexspot.capacity.chargeback.samples import Gap, Period, Seconds, Series


@dataclass
class Use:
    """An owner's use of one node, in GPU seconds."""

    allocated: Fraction = Fraction(0)
    measured: Fraction = Fraction(0)
    """The part of `allocated` in which utilisation was measured."""

    used: float = 0.0
    """The part of `measured` in which the GPU was busy."""

    def __add__(self, other: Use) -> Use:
        return Use(self.allocated + other.allocated, self.measured + other.measured, self.used + other.used)


@dataclass
class NodeBook:
    """One node while its facts did not change: seconds of existence, seconds of its GPUs, and their use."""

    seconds: Seconds = 0
    gpu_seconds: Fraction = Fraction(0)
    work: dict[Work, Use] = field(default_factory=dict["Work", Use])
    spans: list[tuple[Seconds, Seconds]] = field(default_factory=list[tuple["Seconds", "Seconds"]])
    """Times at which a reserved node existed, to compare with commitments. Empty for other nodes."""

    opencost_usd: Decimal | None = None
    """Cost according to OpenCost. None if OpenCost does not report the node."""

    @property
    def allocated(self) -> Fraction:
        """GPU seconds of all work."""
        return sum((each.allocated for each in self.work.values()), Fraction(0))

    @property
    def uses(self) -> dict[Owner, Use]:
        """Use by owner, summed over their work."""
        found: dict[Owner, Use] = {}
        for work, use in self.work.items():
            found[work.owner] = found.get(work.owner, Use()) + use
        return found

    def add_span(self, start: Seconds, end: Seconds) -> None:
        """Add a time at which the node existed, joined to the last span if it continues it."""
        if self.spans and self.spans[-1][1] == start:
            self.spans[-1] = (self.spans[-1][0], end)
        else:
            self.spans.append((start, end))


@dataclass
class Lost:
    """Work that one owner lost to interruptions."""

    interruptions: float = 0.0
    steps: float = 0.0
    """Steps of runs that were lost."""
    gpu_seconds: float = 0.0
    """GPU seconds of steps whose duration is known."""
    of_unknown_pace: float = 0.0
    """Steps whose duration is not known."""


class NodeKey(NamedTuple):
    """A node's name, its facts, and the start of its book: the same name may later belong to another machine."""

    node: str
    facts: NodeFacts
    since: Seconds
    """The last cut of the books before, or the start of the period. Prices are constant within a book."""


@dataclass
class Books:
    """Sums of a period."""

    period: Period
    step: Seconds
    cuts: tuple[Seconds, ...] = ()
    """Moments within the period at which each node gets a new book."""
    nodes: dict[NodeKey, NodeBook] = field(default_factory=dict[NodeKey, NodeBook])
    lost: dict[Owner, Lost] = field(default_factory=dict[Owner, Lost])
    evictions: dict[tuple[str, str], float] = field(default_factory=dict[tuple[str, str], float])
    """Number of evictions, by cluster queue and reason."""
    unmatched: dict[Owner, Fraction] = field(default_factory=dict[Owner, Fraction])
    """GPU seconds of pods on nodes that were never seen."""

    gaps: list[Gap] = field(default_factory=list["Gap"])
    """Times without samples that are not counted."""
    doubled: dict[str, Seconds] = field(default_factory=dict[str, "Seconds"])
    """Names that belonged to two objects at once, and for how long: the use of each is not known."""

    notes: list[str] = field(default_factory=list[str])
    """Explain to the reader how the sums were counted."""


KeyT = TypeVar("KeyT", bound="Hashable")


class Increases(Generic[KeyT]):
    """Adds up increases of counters by key over slices.

    A value below the last one belongs to a restarted counter and counts in full. So does the first value of a counter that appears after
    `known_from`; an earlier counter's first value belongs to an earlier time.
    """

    def __init__(self, known_from: Seconds) -> None:
        self._known_from = known_from
        self._last: dict[KeyT, float] = {}
        self.risen: dict[KeyT, float] = {}

    def read(self, key: KeyT, samples: Sequence[tuple[Seconds, float]]) -> None:
        """Add samples of one counter, oldest first."""
        last = self._last.get(key)
        risen = self.risen.get(key, 0.0)
        for moment, value in samples:
            if last is None:
                risen += value if moment > self._known_from else 0.0
            else:
                risen += value - last if value >= last else value
            last = value
        if last is not None:
            self._last[key] = last
            self.risen[key] = risen


@dataclass(frozen=True)
class HeldGpus:
    """GPUs of a pod from `start` until before `end`, in units of `share`. Their use is added to `use`.

    `goes_on` is True if the pod had them before in another book, so that an earlier sample also covers some of this time.
    """

    start: Seconds
    end: Seconds
    owner: Owner
    gpus: Fraction
    share: Fraction
    use: Use
    goes_on: bool = False


def add_utilisation(
    activity: Mapping[tuple[str, ...], list[tuple[Seconds, float]]], held: Mapping[tuple[str, str], list[HeldGpus]], step: Seconds
) -> None:
    """Add measured and used seconds. `activity` is, by namespace and pod, the sum over its devices of how busy each was, 0 to 1.

    A partition's activity is relative to the partition, so it is weighted by the partition's share of a GPU. Use is limited to the
    allocation.
    """
    for (namespace, pod), samples in activity.items():
        spans = sorted(held.get((namespace, pod), ()), key=lambda each: each.start)
        # Outside of the loop: converting a fraction to a number is slow.
        limits = [(float(each.share), float(each.gpus)) for each in spans]
        measured, used = [0] * len(spans), [0.0] * len(spans)
        position = 0
        for moment, busy in samples:
            while position < len(spans) and spans[position].end <= moment:
                position += 1
            for number in range(position, len(spans)):
                each = spans[number]
                if each.start >= moment + step:
                    break
                # Several resources at one moment share it; one that has ended meanwhile, or started since, gets none.
                if moment < each.end and (each.start <= moment or each.goes_on):
                    seconds = min(moment + step, each.end) - max(moment, each.start)
                    share, gpus = limits[number]
                    measured[number] += seconds
                    used[number] += min(max(0.0, busy) * share, gpus) * seconds
        for each, seconds, busy_seconds in zip(spans, measured, used, strict=True):
            each.use.measured += each.gpus * seconds
            each.use.used += busy_seconds


_PACES = 99
"""Most changes of which the median is taken; more would not change it."""


@dataclass
class _Pace:
    """Duration of one step of a run: the median, as the jump of a resumed run is not a step that it did."""

    step: float | None = None
    moment: Seconds = 0
    seconds_per_step: list[float] = field(default_factory=list[float])

    def see(self, moment: Seconds, step: float) -> None:
        if self.step is not None and step > self.step and len(self.seconds_per_step) < _PACES:
            self.seconds_per_step.append((moment - self.moment) / (step - self.step))
        if step != self.step:
            self.step, self.moment = step, moment


class LostWork:
    """Collects lost work slice by slice. Counters that existed at `known_from` start with their value at that time."""

    def __init__(self, known_from: Seconds) -> None:
        self._interruptions = Increases[tuple[str, ...]](known_from)
        self._lost_steps = Increases[tuple[str, ...]](known_from)
        self._evictions = Increases[tuple[str, ...]](known_from)
        self._paces: dict[tuple[str, ...], _Pace] = {}
        self._pods: dict[tuple[str, str], tuple[Owner, float]] = {}

    def take(self, found: Mapping[Question, list[Series]], held: Mapping[tuple[str, str], list[HeldGpus]]) -> None:
        """Add the answers of a slice and the pods that had GPUs in it."""
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
        """Return the lost work of each owner. Runs without GPUs are skipped."""
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
        """Return the number of evictions by cluster queue and reason."""
        found: dict[tuple[str, str], float] = {}
        for (_, queue, reason), risen in self._evictions.risen.items():
            if risen:
                found[queue, reason] = found.get((queue, reason), 0.0) + risen
        return found
