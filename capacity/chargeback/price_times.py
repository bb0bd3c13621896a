"""Prices by moment: those of the shipped books, before them a file of one's own whose prices may change within the period."""

from __future__ import annotations

from bisect import bisect_right
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from capacity.catalog.machines import Cloud
from capacity.catalog.price_book import prices_of
from capacity.chargeback.spending_plans import hours_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from capacity.catalog.price_book import PriceBook, PriceFile
    from capacity.catalog.spend_commitment import SpendCommitment
    from capacity.chargeback.samples import Period, Seconds


class PriceTimes:
    """The price book of each cloud at each moment. `shipped` are those of no time, `own` the file before them, which has a `name`."""

    def __init__(self, shipped: Callable[[Cloud], PriceBook] = prices_of, own: PriceFile | None = None, name: str = "") -> None:
        self._shipped, self._own, self._name = shipped, own, name
        starts = set() if own is None else {int(each.start.timestamp()) for each in own.prices if each.start is not None}
        self.changes: tuple[Seconds, ...] = tuple(sorted(starts))
        """The moments at which some price changes, the first one first."""

        self._books: dict[tuple[Cloud, int], PriceBook] = {}

    def at(self, cloud: Cloud, moment: Seconds) -> PriceBook:
        """The prices of a moment. Raises DataFileError for a discount of the file that is off nothing."""
        number = bisect_right(self.changes, moment)
        if self._own is None or cloud is not self._own.cloud:
            return self._shipped(cloud)
        if (cloud, number) not in self._books:
            book = self._shipped(cloud)
            self._books[cloud, number] = book.with_rows_of(self._own, self._name, datetime.fromtimestamp(moment, UTC))
        return self._books[cloud, number]

    def of(self, moment: Seconds) -> Callable[[Cloud], PriceBook]:
        """The books of a moment."""
        return partial(self.at, moment=moment)

    def within(self, period: Period) -> tuple[Seconds, ...]:
        """The changes after the period's start and before its end."""
        return tuple(each for each in self.changes if period.start < each < period.end)

    def cuts(self, period: Period, also: Iterable[Seconds] = ()) -> tuple[Seconds, ...]:
        """At which moments the books must be cut, so that what is in one of them cost one price; `also` at these."""
        found = {*self.within(period), *hours_of(self.plans(period), period), *also}
        return tuple(sorted(each for each in found if period.start < each < period.end))

    def plans(self, period: Period) -> tuple[SpendCommitment, ...]:
        """The commitments of US dollars an hour of all clouds that hold in some of the period."""
        plans = [each for cloud in Cloud for each in self.at(cloud, period.start).spend_commitments]
        spans = [each.holds(period.start, period.end) for each in plans]
        return tuple(each for each, (start, end) in zip(plans, spans, strict=True) if end > start)
