"""Records of Spot availability over time, in the public format of github.com/skypilot-org/spot-traces.

    {"metadata": {"gap_seconds": 300}, "data": [0, 4, 4, 2]}

A data point is how many nodes could be had, or were alive, in that gap. Collected for Z. Wu and others, "Can't Be Late: Optimizing Spot
Instance Savings under Deadlines", NSDI 2024.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from capacity.values.errors import ExitCode, ExplainedError
from capacity.values.usd import SECONDS_OF_AN_HOUR

if TYPE_CHECKING:
    from pathlib import Path


class _Metadata(BaseModel):
    # Collectors add notes of their own beside the gap.
    model_config = ConfigDict(frozen=True, extra="ignore")
    gap_seconds: Annotated[int, Field(ge=1)]


class _TraceFile(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")
    metadata: _Metadata
    data: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=2)]


@dataclass(frozen=True)
class Trace:
    """One zone's record: `available` has a number of nodes for each gap of `gap_seconds`."""

    name: str
    gap_seconds: int
    available: tuple[int, ...]

    @property
    def hours(self) -> float:
        """How long the record is."""
        return len(self.available) * self.gap_seconds / SECONDS_OF_AN_HOUR

    def available_share(self, nodes: int) -> float:
        """The share of the time in which that many nodes could be had together."""
        return sum(each >= nodes for each in self.available) / len(self.available)

    def interruptions_per_hour(self, nodes: int) -> float:
        """How often a gang of that many nodes, running whenever it could, lost its capacity in an hour of running; 0 if it never ran."""
        up = [each >= nodes for each in self.available]
        lost = sum(before and not after for before, after in pairwise(up))
        hours = sum(up) * self.gap_seconds / SECONDS_OF_AN_HOUR
        return lost / hours if hours else 0.0

    def mean_wait_hours(self, nodes: int) -> float:
        """How long such a gang had to wait on average until it could run again; 0 if it never lost its capacity."""
        up = [each >= nodes for each in self.available]
        lost = sum(before and not after for before, after in pairwise(up))
        if not lost:
            return 0.0
        first_up = up.index(True)
        return sum(not each for each in up[first_up:]) * self.gap_seconds / SECONDS_OF_AN_HOUR / lost

    def since(self, tick: int) -> Trace:
        """The same record from a later tick on."""
        return Trace(self.name, self.gap_seconds, self.available[tick:])


def read_trace(path: Path, name: str | None = None) -> Trace:
    """The trace of a file, called as the file when it is given no name. Raises ExplainedError when it cannot be read as one."""
    try:
        file = _TraceFile.model_validate_json(path.read_bytes())
    except OSError as error:
        remedy = "name a file that can be read."
        raise ExplainedError(f"the trace {path} cannot be read: {error.strerror}.", remedy, exit_code=ExitCode.BAD_USAGE) from error
    except ValidationError as error:
        told = tuple(f"{'.'.join(map(str, each['loc'])) or '(whole file)'}: {each['msg']}" for each in error.errors()[:5])
        raise ExplainedError(
            f"{path} is not a trace of Spot availability.",
            'give JSON of the form {"metadata": {"gap_seconds": 300}, "data": [0, 4, 4, 2]}, whole numbers of nodes.',
            exit_code=ExitCode.BAD_USAGE,
            evidence=told,
        ) from error
    return Trace(name or path.stem, file.metadata.gap_seconds, tuple(file.data))


def read_traces(folder: Path) -> list[list[Trace]]:
    """The traces under a folder, in groups: those of one folder with the same gap are zones of one place at the same time.

    A group is as long as its shortest. Raises ExplainedError for a folder without traces, or with a file that is none.
    """
    paths = sorted(folder.rglob("*.json")) if folder.is_dir() else []
    if not paths:
        remedy = "name a folder with .json files in the format of github.com/skypilot-org/spot-traces."
        raise ExplainedError(f"there are no traces under {folder}.", remedy, exit_code=ExitCode.BAD_USAGE)
    groups: dict[tuple[str, int], list[Trace]] = {}
    for path in paths:
        trace = read_trace(path, str(path.relative_to(folder).with_suffix("")))
        groups.setdefault((str(path.parent), trace.gap_seconds), []).append(trace)
    return [_aligned(each) for each in groups.values()]


def _aligned(traces: list[Trace]) -> list[Trace]:
    shortest = min(len(each.available) for each in traces)
    return [Trace(each.name, each.gap_seconds, each.available[:shortest]) for each in traces]
