"""What only the clouds' APIs know of a change of a resource that is there; the table, with sources, is api_refusals.yaml."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    ZoneOf = Callable[[str], str]

TABLE = Path(__file__).with_suffix(".yaml")

EKS_CLUSTER = "aws:eks/cluster:Cluster"
NODE_GROUP = "aws:eks/nodeGroup:NodeGroup"
SUBNET = "aws:ec2/subnet:Subnet"
SUBNETWORK = "gcp:compute/subnetwork:Subnetwork"


@cache
def known_refusals() -> dict[str, dict[str, Any]]:
    """The table, by what is refused."""
    return yaml.safe_load(TABLE.read_text(encoding="utf-8"))


def refused_changes(token: str, old: dict[str, Any], new: dict[str, Any], zone_of: ZoneOf) -> Iterator[tuple[str, str]]:
    """What the API refuses of new inputs for a resource: which rule of the table, and the API's text.

    `zone_of` knows the zone of a subnet by its id, "" for one of somebody else's.
    """
    if token in {EKS_CLUSTER, NODE_GROUP}:
        yield from _version(token, old.get("version"), new.get("version"))
    if token == EKS_CLUSTER:
        zones = [sorted({zone_of(each) for each in inputs["vpcConfig"]["subnetIds"]}) for inputs in (old, new)]
        if zones[0] != zones[1] and "" not in (*zones[0], *zones[1]):
            yield _told("subnet-zones", *(", ".join(each) for each in zones))
    if token == SUBNETWORK:
        ranges = [{each["rangeName"]: each["ipCidrRange"] for each in inputs.get("secondaryIpRanges", [])} for inputs in (old, new)]
        yield from (_told("range-in-use", name, "") for name, cidr in ranges[0].items() if ranges[1].get(name) != cidr)


def _version(token: str, old: object, new: object) -> Iterator[tuple[str, str]]:
    if not isinstance(old, str) or not isinstance(new, str):
        return
    step = int(new.rpartition(".")[2]) - int(old.rpartition(".")[2])
    if token == EKS_CLUSTER and step not in {0, 1}:
        yield _told("version", old, new)
    if token == NODE_GROUP and step < 0:
        yield _told("node-group-version", old, new)


def _told(rule: str, before: str, after: str) -> tuple[str, str]:
    return rule, str(known_refusals()[rule]["text"]).format(before=before, after=after)
