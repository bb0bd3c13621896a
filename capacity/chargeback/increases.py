"""Counters that start again: by how much they rose, whatever restarts there were between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from capacity.chargeback.samples import Seconds

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
