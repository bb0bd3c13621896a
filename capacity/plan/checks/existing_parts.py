"""A Karpenter and a GPU operator that somebody else runs: where they can be, and what is said of ours that is not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.catalog.accelerators import NVIDIA
from capacity.settings.platform import EksSettings
from capacity.values.errors import SettingsProblem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from capacity.plan.resolve import ResolvedSettings

_KARPENTER, _OPERATOR = "cluster.existing_karpenter", "cluster.existing_gpu_operator"


def another_karpenter_is_on_its_own_cluster(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """A cluster that is made here has no Karpenter but ours, and feature gates are those of whose Karpenter it is."""
    settings = resolved.settings
    # Auto Mode refuses the setting itself.
    if not isinstance(settings, EksSettings) or resolved.auto_mode or (theirs := settings.cluster.existing_karpenter) is None:
        return
    if settings.cluster.existing is None:
        problem = "is the Karpenter of an existing cluster, but the stack creates its cluster"
        remedy = "name the cluster in cluster.existing, or leave it out"
        yield SettingsProblem(_KARPENTER, theirs.deployment, problem, remedy, "existing-karpenter-of-no-cluster")
    if not settings.cluster.node_repair:
        problem = "is a feature gate of Karpenter, which is its owner's to set"
        yield SettingsProblem("cluster.node_repair", "false", problem, "leave it out", "setting-of-existing-part")


def a_gpu_operator_is_where_it_works(resolved: ResolvedSettings) -> Iterator[SettingsProblem]:
    """Two device plugins of one kind on a node take its GPUs from each other."""
    settings = resolved.settings
    if not isinstance(settings, EksSettings) or resolved.auto_mode or not settings.cluster.existing_gpu_operator:
        return
    if settings.cluster.image.startswith("bottlerocket@"):
        problem = "includes NVIDIA's device plugin, which would run next to the GPU operator's"
        remedy = f"use al2023, or leave out {_OPERATOR}"
        yield SettingsProblem("cluster.ami", repr(settings.cluster.ami), problem, remedy, "gpu-operator-on-bottlerocket")
    if resolved.pools and all(pool.gpu.accelerator is not NVIDIA for pool in resolved.pools.values()):
        problem = "is for NVIDIA GPUs, and no pool has one"
        yield SettingsProblem(_OPERATOR, "true", problem, "leave it out", "gpu-operator-not-used", refused=False)


CHECKS = (another_karpenter_is_on_its_own_cluster, a_gpu_operator_is_where_it_works)
