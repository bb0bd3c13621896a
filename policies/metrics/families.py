"""Metrics of which people ask what they do not have: families.yaml, read when the first expression needs it."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

FILE: Final = Path(__file__).parent / "families.yaml"

HISTOGRAM_SERIES: Final = ("_bucket", "_sum", "_count")
"""What the names of a classic histogram's series end in."""


@dataclass(frozen=True)
class AbsentLabels:
    """Labels that the series of an exporter have only if somebody adds them; `series` and `labels` may end in *.

    `of_exporter`: the series have them, and they say where the exporter runs. `instead` is what to do about it.
    """

    exporter: str
    series: tuple[str, ...]
    labels: tuple[str, ...]
    instead: str
    of_exporter: bool

    def covers(self, series: str, label: str) -> bool:
        """Whether the label is absent from the series."""
        return self.speaks_of(series) and any(fnmatchcase(label, each) for each in self.labels)

    def speaks_of(self, series: str) -> bool:
        """Whether the series is the exporter's."""
        return any(fnmatchcase(series, each) for each in self.series)


@cache
def _families() -> dict[str, Any]:
    return yaml.load(FILE.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)


def _names(part: str) -> frozenset[str]:
    return frozenset(name for each in _families()[part] for name in each["names"])


@cache
def histograms() -> frozenset[str]:
    """Names of which no series is called so."""
    return _names("histograms")


@cache
def amounts_by_container() -> frozenset[str]:
    """Series of which there is one for each container or pod, whose value is how much of a resource it has."""
    return _names("amounts_by_container")


@cache
def absent_labels() -> tuple[AbsentLabels, ...]:
    """Labels that people expect in vain."""
    return tuple(
        AbsentLabels(
            exporter=each["exporter"],
            series=tuple(each["series"]),
            labels=tuple(each["labels"]),
            instead=each["instead"],
            of_exporter=each.get("of_exporter", False),
        )
        for each in _families()["absent_labels"]
    )
