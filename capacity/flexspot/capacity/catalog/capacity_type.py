"""How capacity is bought, and what each way is on each platform: how one asks for it, how it ends, what it forbids, how nodes show it."""

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
    """How a machine is provisioned; pools, flavors, prices and reports all use this term.

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
    """Orders that no one order can follow: each of `capacity_types` would have to come before the next, and the last before the first."""

    capacity_types: tuple[CapacityType, ...]


def merged_order(orders: Iterable[tuple[CapacityType, ...]]) -> tuple[CapacityType, ...]:
    """The order that keeps every given one; where they leave it open, that of CapacityType itself. Raises OrderConflictError."""
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
    """Who makes the node, on which depends how the cloud marks it.

    NODE_POOL is a GKE node pool that somebody declares, as a stack's own are; it is not a Karpenter NodePool, which is KARPENTER.
    AUTO_PROVISIONING is GKE's node auto-provisioning (NAP) for pods that name no compute class.
    COMPUTE_CLASS is a GKE ComputeClass that creates node pools; it is not one that only names declared pools.
    """

    NODE_POOL = "node-pool"
    AUTO_PROVISIONING = "auto-provisioning"
    COMPUTE_CLASS = "compute-class"
    KARPENTER = "karpenter"


class CloudQuota(StrEnum):
    """Which of the cloud's quotas a node counts against; it is not a Kueue quota.

    PREEMPTIBLE is Google's for Spot and flex-start alike. RESERVATION: what counts, if anything, counted when the reservation was made.
    """

    ON_DEMAND = "on-demand"
    PREEMPTIBLE = "preemptible"
    RESERVATION = "reservation"
    SPOT = "spot"


class RunTimeSetting(StrEnum):
    """The one field that holds a bounded run time. A GKE pool's field must stay unset where the request holds it."""

    NODE_POOL = "node_config.max_run_duration"
    PROVISIONING_REQUEST = "ProvisioningRequest.spec.parameters.maxRunDurationSeconds"


class CloudTaint(Record):
    """A taint that the cloud sets. `value` is None where only the node's own circumstances give it, as the name of its compute class."""

    key: str
    value: str | None
    effect: Literal["NoSchedule", "NoExecute", "PreferNoSchedule"] = "NoSchedule"


class CloudMarks(Record):
    """The labels and taints that the cloud sets by itself on nodes of one origin. Everything else a pool must declare.

    A label's value is None where it differs from node to node. `taints_if` is the condition for the taints; None: they are always there.
    """

    labels: dict[str, str | None]
    taints: tuple[CloudTaint, ...] = ()
    taints_if: str | None = None
    source: str


class AutopilotFacts(Record):
    """How pods ask Autopilot for one capacity type, beside the GPU and how many of it a node has.

    `selector` are the labels that they select; `taints` what GKE then sets on the nodes, besides the GPU's own. GKE adds the tolerations
    to pods that select these labels as they are created.
    """

    selector: dict[str, str]
    taints: tuple[CloudTaint, ...] = ()
    source: str


class CapacityTypeFacts(Record):
    """One capacity type on one platform.

    `requested_by` names the fields that ask for it. `notice_seconds` is what user pods get between the signal and the end by default; None:
    the cloud does not interrupt before a known end. `max_notice_seconds` is what `notice_raised_by` can make of it; where nothing can, the
    two are the same. `min_run_seconds` and `max_run_seconds` bound the run time that `run_time_set_by` holds; None: there is no such bound.
    `autoscaler_labels` are what pods may select before a node exists; those that `marks` do not hold, the pool must declare. `autopilot` is
    how GKE Autopilot is asked for it; None: it has it not.
    """

    requested_by: str
    notice_seconds: Positive | None = None
    max_notice_seconds: Positive | None = None
    notice_raised_by: str | None = None
    min_run_seconds: Positive | None = None
    max_run_seconds: Positive | None = None
    run_time_set_by: RunTimeSetting | None = None
    quota: CloudQuota
    autoscaler_labels: Annotated[dict[str, str], Field(min_length=1)]
    marks: dict[Origin, CloudMarks]
    autopilot: AutopilotFacts | None = None
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
    """The capacity types of one platform, and the marks that a node has for its GPUs, whatever its capacity type."""

    platform: _Platform
    gpu_marks: dict[Origin, CloudMarks]
    types: dict[CapacityType, CapacityTypeFacts]


@cache
def _shipped(platform: str) -> CapacityTypeFile:
    if platform not in get_args(_Platform):
        raise ValueError(f"{platform!r} has no capacity types of its own; those that have: {', '.join(get_args(_Platform))}")
    return read_records(Path(__file__).parent / "capacity_types" / f"{platform}.yaml", CapacityTypeFile)


def facts_of(platform: str) -> dict[CapacityType, CapacityTypeFacts]:
    """The capacity types that `platform` has: EKS lacks flex-start and queued. Raises ValueError for another platform than gke and eks."""
    return _shipped(platform).types


def gpu_marks_of(platform: str) -> dict[Origin, CloudMarks]:
    """What marks a GPU node of `platform` by itself, by who makes the node. Raises ValueError as `facts_of` does."""
    return _shipped(platform).gpu_marks
