"""Capacity types, with the facts about each on each platform: request, end, restrictions, labels and taints of its nodes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from pydantic import Field, model_validator

from flexspot.capacity.catalog.data_files import Record, SourcedFile, read_records

if TYPE_CHECKING:
    from collections.abc import Iterable


class CapacityType(StrEnum):
    """Purchase option of a machine; pools, flavors, prices and reports all use this term.

    RESERVED is capacity paid for in advance: a GCP reservation, an AWS capacity reservation or capacity block. FLEX_START is capacity that
    GCP's Dynamic Workload Scheduler provides when available, for at most seven days, and does not reclaim earlier; it is not Spot. QUEUED
    is the same for all nodes of a request at once, through a ProvisioningRequest. SPOT is spare capacity that the cloud reclaims at short
    notice; this is not preemption by Kueue, which is about quota. ON_DEMAND is capacity at list price until it is released; availability is
    not guaranteed.
    """

    RESERVED = "reserved"
    FLEX_START = "flex-start"
    QUEUED = "queued"
    SPOT = "spot"
    ON_DEMAND = "on-demand"


_RANK = {each: rank for rank, each in enumerate(CapacityType)}


@dataclass(frozen=True)
class OrderConflictError(Exception):
    """Orders that cannot be merged: each of `capacity_types` would have to come before the next, and the last before the first."""

    capacity_types: tuple[CapacityType, ...]


def merged_order(orders: Iterable[tuple[CapacityType, ...]]) -> tuple[CapacityType, ...]:
    """Return one order that keeps every given one. Ties follow the order of CapacityType. Raises OrderConflictError."""
    graph: TopologicalSorter[CapacityType] = TopologicalSorter()
    for order in orders:
        graph.add(order[0])
        for earlier, later in pairwise(order):
            graph.add(later, earlier)
    try:
        graph.prepare()
    except CycleError as error:
        raise OrderConflictError(tuple(error.args[1][:-1])) from error
    merged: list[CapacityType] = []
    ready: set[CapacityType] = set()
    while graph.is_active():
        ready |= set(graph.get_ready())
        first = min(ready, key=_RANK.__getitem__)
        ready.remove(first)
        merged.append(first)
        graph.done(first)
    return tuple(merged)


_Platform = Literal["gke", "eks"]
Positive = Annotated[int, Field(ge=1)]


class Origin(StrEnum):
    """The creator of a node. The cloud's labels and taints depend on it.

    NODE_POOL is a declared GKE node pool, such as a stack's pools; it is not a Karpenter NodePool, which is KARPENTER. AUTO_PROVISIONING is
    GKE's node auto-provisioning (NAP) for pods that name no compute class. COMPUTE_CLASS is a GKE ComputeClass that creates node pools; it
    is not one that only names declared pools.
    """

    NODE_POOL = "node-pool"
    AUTO_PROVISIONING = "auto-provisioning"
    COMPUTE_CLASS = "compute-class"
    KARPENTER = "karpenter"


class CloudQuota(StrEnum):
    """The cloud's quota that a node counts against; it is not a Kueue quota.

    PREEMPTIBLE is Google's quota for Spot and flex-start. RESERVATION: usage counted when the reservation was created, if at all.
    """

    ON_DEMAND = "on-demand"
    PREEMPTIBLE = "preemptible"
    RESERVATION = "reservation"
    SPOT = "spot"


class RunTimeSetting(StrEnum):
    """The one field that limits the run time. A GKE pool's field must stay unset where the request sets it."""

    NODE_POOL = "node_config.max_run_duration"
    PROVISIONING_REQUEST = "ProvisioningRequest.spec.parameters.maxRunDurationSeconds"


class CloudTaint(Record):
    """A taint that the cloud sets."""

    key: str
    value: str | None
    """None if the value differs from node to node, such as the name of its compute class."""
    effect: Literal["NoSchedule", "NoExecute", "PreferNoSchedule"] = "NoSchedule"


class CloudMarks(Record):
    """The labels and taints that the cloud itself sets on nodes of one origin. A pool must declare everything else."""

    labels: dict[str, str | None]
    """Labels; None for a value that differs from node to node."""
    taints: tuple[CloudTaint, ...] = ()
    taints_if: str | None = None
    """Condition for the taints; None if they are always set."""
    source: str


class AutopilotFacts(Record):
    """The way pods request one capacity type from Autopilot, in addition to the GPU and the number per node."""

    selector: dict[str, str]
    """Labels that pods select. GKE adds the tolerations to pods with these labels when they are created."""
    taints: tuple[CloudTaint, ...] = ()
    """Taints that GKE then sets on the nodes, in addition to the GPU's own."""
    source: str


class CapacityTypeFacts(Record):
    """One capacity type on one platform."""

    requested_by: str
    """Names of the fields that request it."""
    notice_seconds: Positive | None = None
    """Default seconds between the signal to user pods and their end. None: the cloud does not interrupt before a known end."""
    max_notice_seconds: Positive | None = None
    """Longest notice that `notice_raised_by` can set; equal to `notice_seconds` where nothing raises it."""
    notice_raised_by: str | None = None
    min_run_seconds: Positive | None = None
    """Lower bound of the run time in `run_time_set_by`; None if unbounded."""
    max_run_seconds: Positive | None = None
    """Upper bound of the same; None if unbounded."""
    run_time_set_by: RunTimeSetting | None = None
    quota: CloudQuota
    autoscaler_labels: Annotated[dict[str, str], Field(min_length=1)]
    """Labels that pods may select before a node exists. The pool must declare those that `marks` does not contain."""
    marks: dict[Origin, CloudMarks]
    autopilot: AutopilotFacts | None = None
    """The way to request it from GKE Autopilot; None if Autopilot does not offer it."""
    source: str

    @model_validator(mode="after")
    def _bounds_agree(self) -> CapacityTypeFacts:
        notice, most = self.notice_seconds, self.max_notice_seconds
        if (notice is None) != (most is None) or (notice or 0) > (most or 0):
            raise ValueError(f"notice_seconds {notice} must be at most max_notice_seconds {most}; both or neither are given")
        if (notice != most) != (self.notice_raised_by is not None):
            raise ValueError("notice_raised_by is given if and only if max_notice_seconds is above notice_seconds")
        shortest, longest = self.min_run_seconds, self.max_run_seconds
        if len({shortest is None, longest is None, self.run_time_set_by is None}) > 1 or (shortest or 0) > (longest or 0):
            raise ValueError(f"min_run_seconds {shortest} must be at most max_run_seconds {longest}; with run_time_set_by, all or none")
        return self


class CapacityTypeFile(SourcedFile):
    """The capacity types of one platform, and the labels and taints of GPU nodes of any capacity type."""

    platform: _Platform
    gpu_marks: dict[Origin, CloudMarks]
    types: dict[CapacityType, CapacityTypeFacts]


@cache
def _shipped(platform: str) -> CapacityTypeFile:
    if platform not in get_args(_Platform):
        raise ValueError(f"{platform!r} has no capacity types of its own; those that have: {', '.join(get_args(_Platform))}")
    return read_records(Path(__file__).parent / "capacity_types" / f"{platform}.yaml", CapacityTypeFile)


def facts_of(platform: str) -> dict[CapacityType, CapacityTypeFacts]:
    """Return the capacity types of `platform`: EKS lacks flex-start and queued. Raises ValueError for other platforms than gke and eks."""
    return _shipped(platform).types


def gpu_marks_of(platform: str) -> dict[Origin, CloudMarks]:
    """Return the labels and taints that `platform` sets on GPU nodes, by the node's creator. Raises ValueError as `facts_of` does."""
    return _shipped(platform).gpu_marks
