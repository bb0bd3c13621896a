"""What a Google Cloud project must allow before a platform on GKE has its nodes: APIs, roles of the deployer, quotas of GPUs."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from capacity.catalog.capacity_type import CloudQuota, facts_of
from capacity.catalog.gcp_project import ProjectNeed, When, apis_for, host_project, roles_for
from capacity.settings.gke_security import BinaryAuthorization
from capacity.settings.network import full_name

if TYPE_CHECKING:
    from capacity.plan.model import Plan
    from capacity.settings.platform import GkeSettings


@dataclass(frozen=True)
class GpuQuotaNeed:
    """GPUs of one kind, such as nvidia-l4, that a platform may have at once, and the quota that they count against."""

    accelerator: str
    quota: CloudQuota
    gpus: int


KEY_ROLE = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
"""What a service agent needs on a key that it is to use."""

_AGENTS = {
    "container": "service-{number}@container-engine-robot.iam.gserviceaccount.com",
    "compute": "service-{number}@compute-system.iam.gserviceaccount.com",
    "storage": "service-{number}@gs-project-accounts.iam.gserviceaccount.com",
    "pubsub": "service-{number}@gcp-sa-pubsub.iam.gserviceaccount.com",
    "cloudservices": "{number}@cloudservices.gserviceaccount.com",
}
"""Google's own accounts in a project, which use keys for what they keep: https://docs.cloud.google.com/iam/docs/service-agents (read
2026-11-25)."""


@dataclass(frozen=True)
class KeyNeed:
    """A key, and the account of Google's in the project that must be allowed to use it; its number stands for {number}."""

    key: str
    agent: str
    purpose: str


@dataclass(frozen=True)
class HostGrantNeed:
    """A role in a host project: to an account of Google's as in KeyNeed, or to whoever deploys, on a subnetwork or on the whole project."""

    role: str
    agent: str | None
    subnetwork: str | None


@dataclass(frozen=True)
class HostNeeds:
    """What the host project of a Shared VPC must have for a stack whose nodes are in it."""

    project: str
    region: str
    apis: list[str]
    grants: list[HostGrantNeed]


@dataclass(frozen=True)
class ProjectNeeds:
    """All that a project must allow; `host` of a Shared VPC's, None where the network is of the project itself."""

    apis: list[ProjectNeed]
    roles: list[ProjectNeed]
    quotas: list[GpuQuotaNeed]
    keys: list[KeyNeed]
    host: HostNeeds | None


def project_needs(plan: Plan, settings: GkeSettings) -> ProjectNeeds:
    """What the project of a stack on GKE must allow, besides what else runs there."""
    parts = parts_of(settings)
    gpus: dict[tuple[str, CloudQuota], int] = defaultdict(int)
    for pool in plan.pools:
        quota = facts_of("gke")[pool.capacity_type].quota
        if quota is not CloudQuota.RESERVATION:
            gpus[pool.accelerator, quota] += pool.max_gpus
    quotas = [GpuQuotaNeed(accelerator, quota, count) for (accelerator, quota), count in sorted(gpus.items())]
    return ProjectNeeds(apis_for(parts), roles_for(parts), quotas, key_needs(settings), host_needs(settings))


def host_needs(settings: GkeSettings) -> HostNeeds | None:
    """What another project must have, in which the stack's network is; None where it is in the stack's own or says no project."""
    network, subnetwork = settings.network.existing_network, settings.network.existing_subnetwork
    found = [name for each in (network, subnetwork) if each is not None and (name := full_name(each))]
    hosts = {name.project for name in found} - {settings.project}
    if subnetwork is None or not hosts or settings.cluster.existing is not None:
        return None
    needed, name = host_project(), subnetwork.rpartition("/")[2]
    grants = [HostGrantNeed(each.role, _AGENTS.get(each.to), name if each.scope == "subnetwork" else None) for each in needed.grants]
    return HostNeeds(min(hosts), settings.region, list(needed.apis), grants)


def key_needs(settings: GkeSettings) -> list[KeyNeed]:
    """Which account of Google's must be allowed to use which key, each once.

    The stack grants none of it: keys are often of another project, and whoever deploys need not rule over them.
    """
    security, ours = settings.cluster.security, settings.cluster.existing is None
    disks = [security.boot_disk_kms_key, *(pool.boot_disk_kms_key for pool in settings.pools)]
    named = [
        (security.secrets_kms_key if ours else None, "container", "Secrets in the cluster's database"),
        *((key, "compute", "disks of nodes") for key in disks),
        (settings.storage.encryption_key, "storage", "buckets"),
        (settings.storage.encryption_key if any(team.work_queue for team in settings.teams) else None, "pubsub", "work queues"),
    ]
    return list(dict.fromkeys(KeyNeed(key, _AGENTS[agent], purpose) for key, agent, purpose in named if key is not None))


def parts_of(settings: GkeSettings) -> set[When]:
    """The parts of a stack for which a project must have more than for all."""
    own = settings.network.existing_network is None and settings.cluster.existing is None
    parts = {When.OWN_NETWORK if own else When.EXISTING_NETWORK}
    if any(team.work_queue for team in settings.teams):
        parts.add(When.WORK_QUEUE)
    if key_needs(settings):
        parts.add(When.ENCRYPTION_KEY)
    security, ours = settings.cluster.security, settings.cluster.existing is None
    if ours and {security.posture, security.vulnerability_scanning} - {None, "disabled"}:
        parts.add(When.SECURITY_POSTURE)
    if ours and security.binary_authorization is BinaryAuthorization.PROJECT_SINGLETON_POLICY_ENFORCE:
        parts.add(When.BINARY_AUTHORIZATION)
    return parts
