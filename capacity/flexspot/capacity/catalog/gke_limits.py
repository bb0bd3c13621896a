"""Limits of GKE's node auto-provisioning, as a cluster's inputs have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Mapping


def limits_that_go(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> list[str]:
    """The resources of which node auto-provisioning had a limit and has none any more; none where it is off, or not known."""
    # What is off, or goes off, has no limits to keep.
    before, after = (_limited((each or {}).get("clusterAutoscaling")) for each in (old, new))
    return [] if before is None or after is None else sorted(before - after)


def _limited(autoscaling: object) -> set[str] | None:
    """What node auto-provisioning has a limit of; None where it is off, or not known."""
    if not isinstance(autoscaling, dict):
        return None
    written = cast("dict[str, Any]", autoscaling)
    limits = written.get("resourceLimits")
    if written.get("enabled") is not True or not isinstance(limits, list):
        return None
    return {str(each["resourceType"]) for each in cast("list[dict[str, Any]]", limits)}
