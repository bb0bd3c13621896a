"""Readers that turn resources and manifests, each in its own spelling, into views of the inventory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexspot.policies.inventory.reading import (
    cloud_resources,
    eks,
    gke,
    karpenter,
    kubernetes,
    metrics,
    more_pools,
)
from flexspot.policies.inventory.reading import source as pods
from flexspot.policies.inventory.reading.more_pools import in_own_spelling, in_usual_spelling

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from flexspot.policies.inventory.reading.source import ObjectSource
    from flexspot.policies.inventory.views import View

READERS: tuple[Callable[[ObjectSource], Iterable[View]], ...] = (
    gke.read,
    eks.read,
    eks.read_auto_scaling_group,
    karpenter.read,
    more_pools.read,
    pods.read,
    pods.read_releases,
    kubernetes.read,
    kubernetes.read_kueue_configuration,
    karpenter.read_termination_handler,
    cloud_resources.read,
    cloud_resources.read_iam,
    metrics.read_queries,
    metrics.read_exporters,
    kubernetes.read_spending,
)
"""Every reader receives every object and yields nothing for those that it does not handle."""


def views_of(source: ObjectSource) -> list[View]:
    """Return all views of one object. Most of the clouds' resources have none."""
    usual = in_usual_spelling(source)
    views = (view for read in READERS for view in read(usual))
    return list(views) if usual is source else [in_own_spelling(view, source) for view in views]
