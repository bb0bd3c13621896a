"""What a person writes in a stack file: pools, classes and teams. Strict: an unknown or misspelt setting is an error."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from capacity.capacity_type import CapacityType
from capacity.records import Record

Name = Annotated[str, Field(pattern=r"^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$")]
"""A name that is fit for a Kubernetes object and for a label's value: lower-case letters, digits, inner hyphens; 40 at most."""


class Platform(StrEnum):
    """Where a stack's platform runs.

    LOCAL is the lab's control plane on this machine, with fake nodes. GKE and EKS are clusters of the clouds, which need the clouds' own
    provider plugins; the program cannot declare them yet.
    """

    LOCAL = "local"
    GKE = "gke"
    EKS = "eks"


class PoolSettings(Record):
    """Machines of one type at one capacity type, up to a ceiling.

    `machine` is a name of the catalog; `max_nodes` is the ceiling, in nodes, and has no default; `serves` names workload classes.
    """

    name: Name
    machine: str
    capacity_type: CapacityType
    max_nodes: Annotated[int, Field(ge=1, le=1000)]
    serves: Annotated[tuple[Name, ...], Field(min_length=1)]


class ClassSettings(Record):
    """A workload class: what its pods are worth and whether they wait in a queue.

    `priority` is that of its PriorityClass `priority_class`; with `preempts` false it takes nothing from others.
    `queued` classes are admitted by Kueue; the others use capacity that no queue gives away.
    """

    name: Name
    priority_class: Name
    # Kubernetes keeps higher values for its own classes.
    priority: Annotated[int, Field(ge=0, le=1_000_000_000)]
    preempts: bool = True
    queued: bool
    description: Annotated[str, Field(min_length=1, max_length=200)]


class TeamSettings(Record):
    """A team, and how many GPUs of which queued pools are its own. What it leaves unused, others may borrow."""

    name: Name
    shares: Annotated[dict[Name, Annotated[int, Field(ge=1)]], Field(min_length=1)]


class PlatformSettings(Record):
    """The value of `flexspot:platform` in a stack file."""

    cloud: Platform
    environment: Name
    owner: Name
    cohort: Name = "platform"
    pools: Annotated[tuple[PoolSettings, ...], Field(min_length=1)]
    classes: Annotated[tuple[ClassSettings, ...], Field(min_length=1)]
    teams: Annotated[tuple[TeamSettings, ...], Field(min_length=1)]
