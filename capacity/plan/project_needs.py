"""What a Google Cloud project must allow before a platform on GKE has its nodes: APIs, roles of the deployer, quotas of GPUs."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from capacity.catalog.capacity_type import CloudQuota, facts_of
from capacity.catalog.gcp_project import ProjectNeed, When, apis_for, roles_for

if TYPE_CHECKING:
    from capacity.plan.model import Plan
    from capacity.settings.platform import GkeSettings


@dataclass(frozen=True)
class GpuQuotaNeed:
    """GPUs of one kind, such as nvidia-l4, that a platform may have at once, and the quota that they count against."""

    accelerator: str
    quota: CloudQuota
    gpus: int


@dataclass(frozen=True)
class ProjectNeeds:
    """All that a project must allow."""

    apis: list[ProjectNeed]
    roles: list[ProjectNeed]
    quotas: list[GpuQuotaNeed]


def project_needs(plan: Plan, settings: GkeSettings) -> ProjectNeeds:
    """What the project of a stack on GKE must allow, besides what else runs there."""
    parts = parts_of(settings)
    gpus: dict[tuple[str, CloudQuota], int] = defaultdict(int)
    for pool in plan.pools:
        quota = facts_of("gke")[pool.capacity_type].quota
        if quota is not CloudQuota.RESERVATION:
            gpus[pool.accelerator, quota] += pool.max_gpus
    quotas = [GpuQuotaNeed(accelerator, quota, count) for (accelerator, quota), count in sorted(gpus.items())]
    return ProjectNeeds(apis_for(parts), roles_for(parts), quotas)


def parts_of(settings: GkeSettings) -> set[When]:
    """The parts of a stack for which a project must have more than for all."""
    own = settings.network.existing_network is None and settings.cluster.existing is None
    parts = {When.OWN_NETWORK if own else When.EXISTING_NETWORK}
    if any(team.work_queue for team in settings.teams):
        parts.add(When.WORK_QUEUE)
    if settings.storage.encryption_key is not None:
        parts.add(When.ENCRYPTION_KEY)
    return parts
