"""Review of a stack with a change of one pool."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from flexspot.infra.deployment.losses import loss_of
from flexspot.infra.review.resource_changes import ResourceChange, ResourceOperation
from flexspot.infra.review.stack_review import PolicyVerdict, StackPreview, StackReview

POOL = "urn:pulumi:prod-gke::acme::flexspot:index:GkeNodePool$gcp:container/nodePool:NodePool::{}"


def pool(name: str, becomes: ResourceOperation, *paths: str) -> ResourceChange:
    return ResourceChange(POOL.format(name), becomes, {"name": name}, {"name": name}, paths)


def review_of(name: str, message: str = "the pool has no taint", **other: Any) -> StackReview:
    """Return a review with a replaced pool and a verdict on it."""
    anew = pool(name, ResourceOperation.REPLACED, "nodeConfig.guestAccelerators[0].count")
    loss = loss_of(anew.urn, {"name": name}, replaced=True, paths=anew.paths)
    assert loss is not None
    there = StackPreview(None)
    made = StackReview(
        "prod-gke", there, there, (anew,), (loss,), (), (PolicyVerdict("gpu-pool-without-taint", anew.urn, message, mandatory=True),), ()
    )
    return replace(made, **other)
