"""From resources and manifests, each in its own spelling, to the views of the inventory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policies.reading import (
    cloud_resources,
    eks,
    exporters,
    gke,
    iam,
    karpenter,
    kubernetes,
    kueue_configuration,
    pods,
    queries,
    spending,
    termination_handler,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from policies.inventory import View
    from policies.reading.source import Source

READERS: tuple[Callable[[Source], Iterable[View]], ...] = (
    gke.read,
    eks.read,
    karpenter.read,
    pods.read,
    kubernetes.read,
    kueue_configuration.read,
    termination_handler.read,
    cloud_resources.read,
    iam.read,
    queries.read,
    exporters.read,
    spending.read,
)
"""Every reader sees every object and yields nothing for those that are not its own."""


def views_of(source: Source) -> list[View]:
    """Everything in one object that rules judge; for most of the clouds' resources nothing."""
    return [view for read in READERS for view in read(source)]
