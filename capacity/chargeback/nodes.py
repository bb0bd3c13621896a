"""What a node is, read off the labels that its cloud and its autoscaler gave it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from capacity.catalog.capacity_type import CapacityType
from capacity.catalog.machines import Cloud, Machine, machines_of
from capacity.catalog.node_labels import (
    CAPACITY_TYPE_LABEL,
    ENVIRONMENT_LABEL,
    GKE_POOL_LABEL,
    GKE_QUEUED_LABEL,
    GKE_RESERVATION_NAME_LABEL,
    GKE_SPOT_LABEL,
    INSTANCE_TYPE_LABEL,
    KARPENTER_POOL_LABEL,
    OWNER_LABEL,
    TEAM_LABEL,
)
from capacity.chargeback.labels import (
    EKS_CAPACITY_LABEL,
    EKS_POOL_LABEL,
    GKE_FLEX_START_LABEL,
    GKE_PROVISIONING_LABEL,
    REGION_LABEL,
    label_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

UNKNOWN = "(unknown)"
"""Stands where a label is missing. No Kubernetes label can have this value."""


@dataclass(frozen=True)
class CapacityMark:
    """A label by which a cloud or its autoscaler says how a node was bought; `value` None: whatever the label says."""

    label: str
    value: str | None
    capacity_type: CapacityType


CAPACITY_MARKS = (
    *(CapacityMark(CAPACITY_TYPE_LABEL, each, each) for each in (CapacityType.SPOT, CapacityType.ON_DEMAND, CapacityType.RESERVED)),
    CapacityMark(EKS_CAPACITY_LABEL, "SPOT", CapacityType.SPOT),
    CapacityMark(EKS_CAPACITY_LABEL, "ON_DEMAND", CapacityType.ON_DEMAND),
    CapacityMark(EKS_CAPACITY_LABEL, "CAPACITY_BLOCK", CapacityType.RESERVED),
    CapacityMark(GKE_QUEUED_LABEL, "true", CapacityType.QUEUED),
    CapacityMark(GKE_FLEX_START_LABEL, "true", CapacityType.FLEX_START),
    CapacityMark(GKE_PROVISIONING_LABEL, "flex-start", CapacityType.FLEX_START),
    CapacityMark(GKE_SPOT_LABEL, "true", CapacityType.SPOT),
    CapacityMark(GKE_PROVISIONING_LABEL, "spot", CapacityType.SPOT),
    CapacityMark(GKE_PROVISIONING_LABEL, "preemptible", CapacityType.SPOT),
    CapacityMark(GKE_RESERVATION_NAME_LABEL, None, CapacityType.RESERVED),
    # GKE labels a node of standard provisioning only where its autoscaler made it.
    CapacityMark(GKE_POOL_LABEL, None, CapacityType.ON_DEMAND),
)
"""The first that a node has counts: one that is queued is flex-start as well, and one of a reservation is in a pool."""


@dataclass(frozen=True)
class NodeFacts:
    """What decides a node's price and who answers for it. `owner` is the team, or else the owner, of its labels; empty: nobody."""

    machine: str = UNKNOWN
    region: str = UNKNOWN
    capacity_type: CapacityType | None = None
    pool: str = UNKNOWN
    environment: str = ""
    owner: str = ""

    @property
    def bought_as(self) -> str:
        """The capacity type in a word."""
        return UNKNOWN if self.capacity_type is None else self.capacity_type.value

    @property
    def catalogued(self) -> Machine | None:
        """The machine in the catalog, if it is there."""
        return None if (cloud := cloud_of(self.machine)) is None else machines_of(cloud).get(self.machine)


def cloud_of(machine: str) -> Cloud | None:
    """Whose machine it is, by its name: EC2 writes family.size, Compute Engine family-kind-size."""
    if machine == UNKNOWN:
        return None
    return Cloud.AWS if "." in machine else Cloud.GCP


def node_facts(labels: Mapping[str, str]) -> NodeFacts:
    """Of the labels of a kube_node_labels series."""

    def label(*keys: str) -> str:
        return next((value for key in keys if (value := labels.get(label_of(key)))), "")

    return NodeFacts(
        machine=label(INSTANCE_TYPE_LABEL) or UNKNOWN,
        region=label(REGION_LABEL) or UNKNOWN,
        capacity_type=_capacity_type(label),
        pool=label(KARPENTER_POOL_LABEL, GKE_POOL_LABEL, EKS_POOL_LABEL) or UNKNOWN,
        environment=label(ENVIRONMENT_LABEL),
        owner=label(TEAM_LABEL, OWNER_LABEL),
    )


def _capacity_type(label: _Label) -> CapacityType | None:
    for mark in CAPACITY_MARKS:
        value = label(mark.label)
        if value and mark.value in {None, value}:
            return mark.capacity_type
    return None


if TYPE_CHECKING:
    from collections.abc import Callable

    _Label = Callable[..., str]
