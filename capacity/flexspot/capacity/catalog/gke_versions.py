"""Which version of GKE has what, as data with a source, and how GKE reads a version that is not whole."""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field

from flexspot.capacity.catalog.data_files import Record, Source, read_records
from flexspot.capacity.catalog.versions import version_order
from flexspot.capacity.values.names import GKE_VERSION

_FILE = Path(__file__).parent / "gke_versions.yaml"

_PATCH = 3
"""Numbers of a version that names one patch: 1.35.2."""


class GkeFeature(StrEnum):
    """What needs a version of GKE."""

    FLEX_START = "flex-start"
    QUEUED = "queued"
    COMPUTE_CLASS = "compute-class"
    COMPUTE_CLASS_RESERVATION = "compute-class-reservation"
    JOBSET_METRICS = "jobset-metrics"
    SHUTDOWN_GRACE = "shutdown-grace"
    CONFIDENTIAL_NODES = "confidential-nodes"


class GkeFloor(Record):
    """The first version that has something, on clusters of either mode; `on_autopilot` where Autopilot had it later."""

    least: Annotated[str, Field(pattern=GKE_VERSION)]
    on_autopilot: Annotated[str, Field(pattern=GKE_VERSION)] | None = None
    older_in_channels: bool

    def of(self, *, autopilot: bool) -> str:
        """The version for a cluster of that mode."""
        return self.on_autopilot if autopilot and self.on_autopilot else self.least


class _VersionFile(Record):
    sources: dict[GkeFeature, Source]
    features: dict[GkeFeature, GkeFloor]


def gke_floors() -> dict[GkeFeature, GkeFloor]:
    """Of each feature its first version."""
    return _file().features


@cache
def _file() -> _VersionFile:
    return read_records(_FILE, _VersionFile)


def names_a_patch(version: str) -> bool:
    """Whether a version names one patch, such as 1.35.2, or one release of it, 1.35.2-gke.10. A shorter one is an alias.

    GKE's API takes the newest release that an alias fits (google.container.v1, Cluster.initial_cluster_version: "1.X" picks the highest
    valid patch and gke.N of 1.X; read 2026-11-25).
    """
    return len(version_order(version)) >= _PATCH


def is_below(version: str, floor: str) -> bool:
    """Whether every release that GKE may take for `version` is older than `floor`: an alias that the floor fits is not below it."""
    order = version_order(version)
    return order < version_order(floor)[: len(order)]
