"""How busy allocated GPUs were: DCGM's samples of pods, laid over the spans in which these pods had GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

    from capacity.chargeback.books import Use
    from capacity.chargeback.owners import Owner
    from capacity.chargeback.samples import Seconds


@dataclass(frozen=True)
class Held:
    """A pod had `gpus` GPUs from `start` until before `end`, in units of `share`; `use` is where that is counted."""

    start: Seconds
    end: Seconds
    owner: Owner
    gpus: Fraction
    share: Fraction
    use: Use


def add_utilisation(
    activity: Mapping[tuple[str, ...], list[tuple[Seconds, float]]], held: Mapping[tuple[str, str], list[Held]], step: Seconds
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
                if each.start > moment:
                    break
                # Of several resources at one moment each has its part; one that has ended meanwhile has none.
                if moment < each.end:
                    seconds = min(step, each.end - moment)
                    share, gpus = limits[number]
                    measured[number] += seconds
                    used[number] += min(max(0.0, busy) * share, gpus) * seconds
        for each, seconds, busy_seconds in zip(spans, measured, used, strict=True):
            each.use.measured += each.gpus * seconds
            each.use.used += busy_seconds
