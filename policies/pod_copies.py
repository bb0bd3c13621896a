"""How many pods a pod template makes that run at the same time."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING

from policies.field import Field
from policies.unknown import UNKNOWN

if TYPE_CHECKING:
    from policies.inventory import PodSet
    from policies.unknown import Unknown

_MEMBER = re.compile(r"spec\.(?P<path>[A-Za-z.]+)\[(?P<key>[^\]]+)\]")
_REPLICATED = frozenset({"Deployment", "StatefulSet", "ReplicaSet", "ReplicationController"})


def copies_of(pods: PodSet) -> Decimal | Unknown:
    """The number that the object itself asks for.

    UNKNOWN where it does not say one because something else may: an autoscaler sets the replicas of a Deployment that names none.
    """
    if pods.job is not None:
        at_once = _at_least_one(pods.job.at("parallelism"))
        ends = pods.job.at("completions").number()
        width = min(at_once, ends) if isinstance(at_once, Decimal) and isinstance(ends, Decimal) else at_once
        return _times(width, _at_least_one(_member(pods).at("replicas")))
    if pods.kind in _REPLICATED:
        replicas = pods.object_spec.at("replicas").number()
        return UNKNOWN if replicas is None else replicas
    if pods.kind == "LeaderWorkerSet":
        size = _at_least_one(pods.object_spec.at("leaderWorkerTemplate", "size"))
        leads = pods.where.endswith("leaderTemplate.spec")
        width = Decimal(1) if leads or size is UNKNOWN else size - 1
        return _times(UNKNOWN if size is UNKNOWN else width, _at_least_one(pods.object_spec.at("replicas")))
    member = _member(pods)
    most = member.at("maxReplicas")
    return _at_least_one(member.at("replicas") if most.absent else most)


def _member(pods: PodSet) -> Field:
    """The element or the entry of the object that holds the template, such as one of a JobSet's replicatedJobs."""
    found = _MEMBER.match(pods.where)
    if found is None:
        return Field(None)
    held = dict(pods.object_spec.at(*found["path"].split(".")).parts().named)
    return held.get(found["key"], Field(None))


def _at_least_one(count: Field) -> Decimal | Unknown:
    number = count.number()
    return Decimal(1) if number is None else number


def _times(one: Decimal | Unknown, other: Decimal | Unknown) -> Decimal | Unknown:
    return UNKNOWN if one is UNKNOWN or other is UNKNOWN else one * other
