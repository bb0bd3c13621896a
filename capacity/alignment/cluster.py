"""The cluster itself: whether its system nodes can be there, and whether its nodes stay as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.names import is_production
from capacity.settings.platform import GkeSettings
from capacity.settings.problems import SettingsProblem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from capacity.planning.ground import Ground


def system_nodes_reach_every_zone(ground: Ground) -> Iterator[SettingsProblem]:
    """A regional node pool of GKE begins with a node in each zone."""
    if isinstance(ground.settings, GkeSettings) and ground.settings.cluster.existing is None and not ground.autopilot:
        most, zones = ground.settings.cluster.system_pool.max_nodes, len(set(ground.zones))
        if most < zones:
            problem = f"is below the {zones} zones, in each of which the pool begins with a node"
            remedy = f"raise it to {zones} or more, or name fewer zones"
            yield SettingsProblem("cluster.system_pool.max_nodes", str(most), problem, remedy, "system-pool-below-zones")


def images_are_pinned(ground: Ground) -> Iterator[SettingsProblem]:
    """With `@latest` every release of an AMI is drift, and drift replaces nodes."""
    ami: str = getattr(getattr(ground.settings, "cluster", None), "ami", "")
    if ami.endswith("@latest"):
        remedy = "pin a release, such as al2023@v20250807 or bottlerocket@1.40.0"
        refused = is_production(ground.settings.environment)
        yield SettingsProblem("cluster.ami", repr(ami), "replaces nodes at every release", remedy, "unpinned-ami", refused=refused)


CHECKS = (system_nodes_reach_every_zone, images_are_pinned)
