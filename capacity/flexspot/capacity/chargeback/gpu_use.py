"""What a period's samples add up to, before any price: seconds of nodes, how busy allocated GPUs were, and what interruptions took."""

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
    """What somebody had on one node, in GPU seconds.

    `measured` are those of the allocated ones at which utilisation was measured, `used` how much of these was.
    """

    allocated: Fraction = Fraction(0)
    measured: Fraction = Fraction(0)
    used: float = 0.0

    def __add__(self, other: Use) -> Use:
        return Use(self.allocated + other.allocated, self.measured + other.measured, self.used + other.used)


@dataclass
class NodeBook:
    """One node, for as long as it was the same: `seconds` there, its GPUs times seconds, and who had them.

    `spans` are when it was there, of reserved nodes alone: what is committed must be held against them. `opencost_usd` is what OpenCost
    says that it cost; None where OpenCost says nothing.
    """

    seconds: Seconds = 0
    gpu_seconds: Fraction = Fraction(0)
    work: dict[Work, Use] = field(default_factory=dict["Work", Use])
    spans: list[tuple[Seconds, Seconds]] = field(default_factory=list[tuple["Seconds", "Seconds"]])
    opencost_usd: Decimal | None = None

    @property
    def allocated(self) -> Fraction:
        """All GPU seconds that somebody had."""
        return sum((each.allocated for each in self.work.values()), Fraction(0))

    @property
    def uses(self) -> dict[Owner, Use]:
        """What each owner had, of whatever work."""
        found: dict[Owner, Use] = {}
        for work, use in self.work.items():
            found[work.owner] = found.get(work.owner, Use()) + use
        return found

    def there(self, start: Seconds, end: Seconds) -> None:
        """It was there then; what goes on where the last span ended is one with it."""
        if self.spans and self.spans[-1][1] == start:
            self.spans[-1] = (self.spans[-1][0], end)
        else:
            self.spans.append((start, end))


@dataclass
class Lost:
    """What interruptions took from one owner. `gpu_seconds` is known only of runs whose pace is."""

    interruptions: float = 0.0
    steps: float = 0.0
    gpu_seconds: float = 0.0
    of_unknown_pace: float = 0.0
    """Steps of which it is not known how long they took."""


class NodeKey(NamedTuple):
    """A node's name, what it is, and since when the books are kept: a name may be given twice, to another machine.

    `since` is the last of the books' cuts before what is in them, or the start of the period: what is in one book cost one price.
    """

    node: str
    facts: NodeFacts
    since: Seconds


@dataclass
class Books:
    """Everything that was counted in a period. `notes` are what a reader must know of how.

    At each of the `cuts`, which lie within the period, a node's books begin anew.
    """

    period: Period
    step: Seconds
    cuts: tuple[Seconds, ...] = ()
    nodes: dict[NodeKey, NodeBook] = field(default_factory=dict[NodeKey, NodeBook])
    lost: dict[Owner, Lost] = field(default_factory=dict[Owner, Lost])
    evictions: dict[tuple[str, str], float] = field(default_factory=dict[tuple[str, str], float])
    homeless: dict[Owner, Fraction] = field(default_factory=dict[Owner, Fraction])
    """GPU seconds that pods had on nodes of which nothing was seen."""

    gaps: list[Gap] = field(default_factory=list["Gap"])
    doubled: dict[str, Seconds] = field(default_factory=dict[str, "Seconds"])
    """Names under which two things were told of at once, and for how long: which of them something was of cannot be known."""

    notes: list[str] = field(default_factory=list[str])


KeyT = TypeVar("KeyT", bound="Hashable")


class Increases(Generic[KeyT]):
    """Adds up counters by key over slices.

    A value below the last one is that of a restarted counter, and counts whole. So does the first value of a counter that appears after
    `known_from`; what a counter had by then is of an earlier time.
    """

    def __init__(self, known_from: Seconds) -> None:
        self._known_from = known_from
        self._last: dict[KeyT, float] = {}
        self.risen: dict[KeyT, float] = {}

    def read(self, key: KeyT, samples: Sequence[tuple[Seconds, float]]) -> None:
        """More samples of one counter, oldest first."""
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
    """A pod had `gpus` GPUs from `start` until before `end`, in units of `share`; `use` is where that is counted.

    `goes_on`: it had them before, too, in other books, so that a sample of then stands for some of this time as well.
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
    """Adds what was measured and used. `activity` is, by namespace and pod, the sum over its devices of how busy each was, 0 to 1.

    A partition's activity is that of the partition, so it counts as much as the partition is of a GPU. Nobody uses more than is allocated.
    """
    for (namespace, pod), samples in activity.items():
        spans = sorted(held.get((namespace, pod), ()), key=lambda each: each.start)
        # Once, and not with every sample: a fraction is slow to become a number.
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
                # Of several resources at one moment each has its part; one that has ended meanwhile, or begun since, has none.
                if moment < each.end and (each.start <= moment or each.goes_on):
                    seconds = min(moment + step, each.end) - max(moment, each.start)
                    share, gpus = limits[number]
                    measured[number] += seconds
                    used[number] += min(max(0.0, busy) * share, gpus) * seconds
        for each, seconds, busy_seconds in zip(spans, measured, used, strict=True):
            each.use.measured += each.gpus * seconds
            each.use.used += busy_seconds


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

    def take(self, found: Mapping[Question, list[Series]], held: Mapping[tuple[str, str], list[HeldGpus]]) -> None:
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
