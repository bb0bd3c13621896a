"""What Prometheus answers, as plain data: series of samples, each with its labels."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

Seconds = int
"""Seconds since 1970 UTC, or a number of them."""

Labels = dict[str, str]


class MalformedReplyError(ValueError):
    """A reply of another form than Prometheus' API has."""


@dataclass(frozen=True)
class Series:
    """The samples of one set of labels, the oldest first."""

    labels: Labels
    samples: list[tuple[Seconds, float]]


@dataclass
class Matrix:
    """The result of a range query. `dropped` counts samples that are no number (NaN, Inf): they count for nothing."""

    series: list[Series] = field(default_factory=list[Series])
    dropped: int = 0


def read_matrix(result: object) -> Matrix:
    """The `data.result` of a range query. Raises MalformedReplyError."""
    matrix = Matrix()
    try:
        for each in cast("list[dict[str, Any]]", result):
            labels = {str(key): str(value) for key, value in each["metric"].items()}
            read = [(round(moment), float(text)) for moment, text in each["values"]]
            samples = [sample for sample in read if math.isfinite(sample[1])]
            matrix.dropped += len(read) - len(samples)
            samples.sort()
            if samples:
                matrix.series.append(Series(labels, samples))
    except (TypeError, ValueError, KeyError, AttributeError, OverflowError) as error:
        raise MalformedReplyError("a series without labels and values") from error
    return matrix


def named(labels: Mapping[str, str], name: str) -> str:
    """A label that an exporter gave, where Prometheus has put it aside for one of its own: honor_labels is false by default.

    https://prometheus.io/docs/prometheus/latest/configuration/configuration/#scrape_config
    """
    return labels.get(f"exported_{name}") or labels.get(name, "")


def merged(series: list[Series], *names: str) -> dict[tuple[str, ...], list[tuple[Seconds, float]]]:
    """The samples by the values of `names`. Where two series tell of one moment, replicas told of the same thing: the greater counts."""
    found: dict[tuple[str, ...], list[list[tuple[Seconds, float]]]] = {}
    for each in series:
        found.setdefault(tuple(named(each.labels, name) for name in names), []).append(each.samples)
    return {key: parts[0] if len(parts) == 1 else _greatest(parts) for key, parts in found.items()}


def _greatest(parts: list[list[tuple[Seconds, float]]]) -> list[tuple[Seconds, float]]:
    values: dict[Seconds, float] = {}
    for samples in parts:
        for moment, value in samples:
            values[moment] = max(value, values.get(moment, value))
    return sorted(values.items())
