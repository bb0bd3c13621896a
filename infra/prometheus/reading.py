"""A period read in slices: each asked once, halved where it is too large, and handed over before the next is asked for."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from capacity.values.errors import ExplainedError
from infra.prometheus.client import Answer, TooLargeError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping

    from capacity.chargeback.period import Period
    from capacity.chargeback.queries import Query, Question
    from capacity.chargeback.samples import Matrix
    from infra.prometheus.client import PrometheusClient
    from infra.prometheus.kept_slices import KeptSlices


@contextmanager
def collection_paused() -> Generator[None]:
    """Pauses the search for cyclic garbage, as it was before afterwards.

    A day of samples is millions of small lists in no cycle, which are freed when nobody refers to them. While they are made Python would
    look through all of them over and over: decoding took three times as long.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


POINTS_AT_MOST = 11_000
"""Prometheus refuses a range query of more points in a series (web/api/v1/api.go); no option changes that."""

_DAY = 86_400
_SETTLES_SECONDS = 600
"""A moment so near to now may still get samples, by remote write or a late scrape: an answer of it is not kept."""


@dataclass
class Reading:
    """Reads a period. `warnings` are the server's, each once; `now` decides what may be kept."""

    client: PrometheusClient
    kept: KeptSlices
    step: int
    now: int
    told: Callable[[int, int], None] = field(default=lambda _done, _all: None)
    warnings: dict[str, None] = field(default_factory=dict[str, None])
    from_disk: int = 0

    def slices(self, period: Period, queries: tuple[Query, ...]) -> Iterator[Mapping[Question, Matrix]]:
        """The answers to all queries, slice by slice; only one slice is in memory. Raises ExplainedError."""
        pieces = list(period.slices(slice_seconds(self.step)))
        for number, (start, end) in enumerate(pieces):
            self.told(number, len(pieces))
            yield {query.question: self._read(query, start, end) for query in queries}
        self.told(len(pieces), len(pieces))

    def _read(self, query: Query, start: int, end: int) -> Matrix:
        answer = self.kept.find(query, start, end)
        if answer is not None:
            self.from_disk += 1
        else:
            answer = self._ask(query, start, end)
            if end <= self.now - _SETTLES_SECONDS:
                self.kept.keep(query, start, end, answer)
        self.warnings |= dict.fromkeys(answer.warnings)
        return answer.matrix

    def _ask(self, query: Query, start: int, end: int) -> Answer:
        try:
            return self.client.query_range(query, start, end, self.step)
        except TooLargeError as error:
            half = (end - start) // self.step // 2 * self.step
            if half == 0:
                raise ExplainedError(
                    f"even one moment of {query.question} is more than Prometheus or this command takes at once.",
                    "select one cluster with --match, or raise Prometheus' --query.max-samples.",
                    evidence=(str(error),),
                ) from error
        first, second = self._ask(query, start, start + half), self._ask(query, start + half, end)
        return Answer([*first.result, *second.result], (*first.warnings, *second.warnings))


def slice_seconds(step: int) -> int:
    """A day, or what fits into the limit of points, in whole steps."""
    return min(max(1, _DAY // step), POINTS_AT_MOST - 1) * step
