"""Limits of GKE's node auto-provisioning in a cluster's inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Mapping


def limits_that_go(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> list[str]:
    """Return the resources whose auto-provisioning limit is removed. Empty if auto-provisioning is off or its state is unknown."""
    # Disabled auto-provisioning has no limits to keep.
    before, after = (_limited((each or {}).get("clusterAutoscaling")) for each in (old, new))
    return [] if before is None or after is None else sorted(before - after)


def _limited(autoscaling: object) -> set[str] | None:
    """Return the resources with an auto-provisioning limit. None if auto-provisioning is off or its state is unknown."""
    if not isinstance(autoscaling, dict):
        return None
    written = cast("dict[str, Any]", autoscaling)
    limits = written.get("resourceLimits")
    if written.get("enabled") is not True or not isinstance(limits, list):
        return None
    return {str(each["resourceType"]) for each in cast("list[dict[str, Any]]", limits)}
