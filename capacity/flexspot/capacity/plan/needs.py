"""Requirements of a stack that it does not create: of an existing cluster, of the account or project, and of the deploying identity."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.account_needs import (
    AwsQuota,
    Market,
    ProjectNeed,
    When,
    address_quota,
    apis_for,
    host_project,
    quota_of_machine,
    roles_for,
)
from flexspot.capacity.catalog.capacity_type import CapacityType, CloudQuota, facts_of
from flexspot.capacity.catalog.machines import Confidential, Vendor, machines_of
from flexspot.capacity.catalog.versions import Addon, Chart, GkeFeature, gke_floors, shipped_versions
from flexspot.capacity.plan.resolve import machines_of_pool
from flexspot.capacity.settings.cluster import EksMode, GkeMode
from flexspot.capacity.settings.gke_security import BinaryAuthorization
from flexspot.capacity.settings.network import Nat, full_name
from flexspot.capacity.settings.pools import ReservationKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from flexspot.capacity.catalog.machines import Machine
    from flexspot.capacity.catalog.node_images import ImageBook
    from flexspot.capacity.plan.model import Plan, PoolPlan
    from flexspot.capacity.settings.platform import EksSettings, GkeSettings
    from flexspot.capacity.settings.pools import EksPool, PoolSettings


_BY_TYPE = {CapacityType.FLEX_START: GkeFeature.FLEX_START, CapacityType.QUEUED: GkeFeature.QUEUED}


@dataclass(frozen=True)
class VersionNeed:
    """The least version of GKE that something needs."""

    version: str
    user: str
    """The part of the stack that needs it, in words."""


@dataclass(frozen=True)
class ClusterNeeds:
    """Requirements for an existing GKE cluster."""

    mode: GkeMode
    versions: tuple[VersionNeed, ...]
    room: dict[str, int]
    """The most that its pools can use, by GKE's resource names: cpu, memory in GiB, and GPUs by kind."""


def cluster_needs(settings: GkeSettings, plan: Plan) -> ClusterNeeds:
    """Return the requirements of the stack for an existing GKE cluster.

    Node auto-provisioning is not one of them: compute classes name pools of the plan, and on Autopilot GKE creates nodes anyway. Where it
    is on, its limits also hold pools back, so they must leave `room`.
    """
    autopilot = settings.cluster.mode is GkeMode.AUTOPILOT
    classes = {pool: each.name for each in plan.compute_classes for pool in each.pools}
    floors = gke_floors()
    versions = [
        VersionNeed(floors[feature].of(autopilot=autopilot), user) for user, feature in gke_features(enumerate(settings.pools), classes)
    ]
    if not settings.queueing.existing_kueue:
        kueue = shipped_versions().kueue
        version = settings.controllers.kueue.version or kueue.chart.version
        versions.append(VersionNeed(kueue.kubernetes_at_least.version, f"Kueue {version}"))
    room = (
        {}
        if autopilot
        else {
            "cpu": sum(pool.ceiling.vcpu for pool in plan.pools),
            "memory": -(-sum(pool.ceiling.memory_mib for pool in plan.pools) // 1024),
            **plan.accelerators,
        }
    )
    return ClusterNeeds(settings.cluster.mode, tuple(versions), room)


def gke_features(pools: Iterable[tuple[int, PoolSettings]], compute_classes: Mapping[str, str]) -> Iterator[tuple[str, GkeFeature]]:
    """Yield each use of a feature that needs a version of GKE, with the setting that uses it.

    `pools` are those of the settings with their indexes. `compute_classes` maps the names of pools to their compute class.
    """
    for number, pool in pools:
        path = f"pools.{number}"
        if feature := _BY_TYPE.get(pool.capacity_type):
            yield f"{path}.capacity_type ({pool.name}: {pool.capacity_type})", feature
        if (grace := getattr(pool, "shutdown_grace_seconds", None)) is not None:
            yield f"{path}.shutdown_grace_seconds ({pool.name}: {grace})", GkeFeature.SHUTDOWN_GRACE
        if (technology := getattr(pool, "confidential_nodes", None)) not in {None, Confidential.SEV}:
            yield f"{path}.confidential_nodes ({pool.name}: {technology})", GkeFeature.CONFIDENTIAL_NODES
        if name := compute_classes.get(pool.name):
            yield f"{path}.serves ({pool.name}: the compute class {name})", GkeFeature.COMPUTE_CLASS
            if pool.capacity_type is CapacityType.RESERVED:
                yield f"{path}.reservation ({pool.name}, in the compute class {name})", GkeFeature.COMPUTE_CLASS_RESERVATION


@dataclass(frozen=True)
class KubernetesNeed:
    """The versions of Kubernetes that something works with."""

    user: str
    """The controller that needs them, in words."""
    least: str | None
    """None: any older version."""
    most: str | None
    """None: any newer version."""
    remedy: str
    """Another way to fix it."""


@dataclass(frozen=True)
class EksClusterNeeds:
    """Requirements for an existing EKS cluster."""

    versions: tuple[KubernetesNeed, ...]
    addons: tuple[Addon, ...]
    """Add-ons that must run on it, whoever installed them."""


def eks_cluster_needs(settings: EksSettings, plan: Plan, images: ImageBook) -> EksClusterNeeds:
    """Return the requirements of the stack for an existing EKS cluster. The EBS driver is not one: the platform has no disk volumes."""
    drivers = [Addon.S3_DRIVER] if len(settings.storage.file_systems) < len(_PURPOSES) else []
    drivers += [Addon.EFS_DRIVER] if settings.storage.has_efs else []
    drivers += [Addon.LUSTRE_DRIVER] if settings.storage.has_lustre else []
    return EksClusterNeeds(tuple(_versions(settings, plan, images)), (Addon.POD_IDENTITY_AGENT, *drivers))


_PURPOSES = ("checkpoints", "datasets")
"""Kinds of storage that each team mounts."""


def _versions(settings: EksSettings, plan: Plan, images: ImageBook) -> Iterator[KubernetesNeed]:
    charts, table = plan.versions.charts, shipped_versions()
    if has := images.versions_of(settings.cluster.image):
        yield KubernetesNeed(f"cluster.ami {settings.cluster.image}", has[0], has[-1], "name a release with images for it")
    if (version := charts.get(Chart.KARPENTER)) and (known := table.karpenter.range_of(version)):
        yield KubernetesNeed(f"Karpenter {version}", known.least, known.most, "name another in controllers.karpenter.version")
    if version := charts.get(Chart.KUEUE):
        least = table.kueue.kubernetes_at_least.version
        yield KubernetesNeed(f"Kueue {version}", least, None, "set queueing.existing_kueue: true if the cluster has an older one")


_OTHER_WORK = "m7i.large"
"""Stands for the machines of other work, all of which count against the Standard quotas."""


@dataclass(frozen=True)
class QuotaUse:
    """Something that counts against a quota."""

    what: str
    amount: int
    """The largest amount, in vCPU or addresses."""


@dataclass(frozen=True)
class QuotaNeed:
    """All uses of a platform that count against one quota."""

    quota: AwsQuota | None
    """None for machines whose quota no source names."""
    uses: tuple[QuotaUse, ...]

    @property
    def amount(self) -> int:
        """The least value of the quota, in addition to what else runs in the account."""
        return sum(each.amount for each in self.uses)

    @property
    def beyond_default(self) -> bool:
        """True if the default value of the quota is too small."""
        return self.quota is None or self.amount > self.quota.default


@dataclass(frozen=True)
class ServiceNeed:
    """An AWS service that the deploying role needs full access to."""

    name: str
    """Prefix of the service's actions."""
    purpose: str


def deployer_services(settings: EksSettings) -> list[ServiceNeed]:
    """Return the services whose actions the role that runs `up` needs. Single actions are not known: none was tried on an account."""
    cluster, storage = settings.cluster, settings.storage
    ours, karpenter = cluster.existing is None, cluster.mode is EksMode.STANDARD and cluster.existing_karpenter is None
    queues = any(team.work_queue for team in settings.teams)
    needs = [
        ServiceNeed("ec2", "the network, launch templates, placement groups; the network of an existing cluster"),
        ServiceNeed("eks", "the cluster (created or read), system nodes, add-ons, access entries, Pod Identity"),
        ServiceNeed("iam", "roles and policies, iam:PassRole for them, iam:CreateServiceLinkedRole for the services that create their own"),
        ServiceNeed("s3", "buckets of checkpoints and datasets"),
    ]
    if ours:
        needs += [ServiceNeed("kms", "the key of the cluster's secrets"), ServiceNeed("logs", "the control plane's logs")]
    if karpenter:
        needs += [ServiceNeed("events", "rules that send interruptions to Karpenter's queue")]
    if karpenter or queues:
        needs += [ServiceNeed("sqs", "Karpenter's queue of interruptions; teams' work queues")]
    if storage.has_efs:
        needs += [ServiceNeed("elasticfilesystem", "EFS file systems")]
    if storage.has_lustre:
        needs += [ServiceNeed("fsx", "the Lustre file system")]
    return needs


def quota_needs(plan: Plan, settings: EksSettings) -> list[QuotaNeed]:
    """Return the quotas that the ceilings of a platform on EKS need, the largest first. Ceilings of zero are left out."""
    uses: dict[AwsQuota | None, list[QuotaUse]] = defaultdict(list)
    for quota, use in _uses(plan, settings):
        if use.amount:
            uses[quota].append(use)
    needs = [QuotaNeed(quota, tuple(each)) for quota, each in uses.items()]
    return sorted(needs, key=lambda each: (-each.amount, each.quota.code if each.quota else ""))


def _uses(plan: Plan, settings: EksSettings) -> Iterator[tuple[AwsQuota | None, QuotaUse]]:
    wanted = {pool.name: pool for pool in settings.pools}
    for pool in plan.pools:
        yield from _pool_uses(pool, machines_of_pool(plan, pool), wanted[pool.name])
    other = settings.cluster.other_work
    for market in (Market.SPOT, Market.ON_DEMAND):
        # Karpenter tries Spot first and may launch all of it on demand when there is no Spot capacity.
        yield quota_of_machine(_OTHER_WORK, market), QuotaUse("other-work", other.max_vcpu if other.max_memory_gib else 0)
    if settings.cluster.existing is None:
        system = settings.cluster.system_pool
        machine = plan.own_machines.get(system.machine) or machines_of(Vendor.AWS)[system.machine]
        vcpu, quota = machine.vcpu, quota_of_machine(system.machine, Market.ON_DEMAND)
        yield quota, QuotaUse("system nodes", vcpu * system.max_nodes)
        # https://docs.aws.amazon.com/eks/latest/userguide/managed-node-update-behavior.html (read 2026-11-24): up to two additional nodes
        # in each zone. In Auto Mode the pool's ceiling includes the nodes that replace others.
        replaced = 0 if settings.cluster.mode is EksMode.AUTO else vcpu * 2 * len(settings.zones)
        yield quota, QuotaUse("system nodes while they are replaced", replaced)
        if settings.network.existing_vpc is None:
            gateways = len(settings.zones) if settings.network.nat is Nat.PER_ZONE else 1
            yield address_quota(), QuotaUse("NAT gateways", gateways)


def _pool_uses(pool: PoolPlan, machines: tuple[Machine, ...], wanted: EksPool) -> Iterator[tuple[AwsQuota | None, QuotaUse]]:
    """Yield what a pool counts against each quota of its machines. All nodes may be of the largest machine, up to the pool's ceiling."""
    if wanted.reservation is not None and wanted.reservation.kind is ReservationKind.CAPACITY_BLOCK:
        return
    market = Market.SPOT if pool.capacity_type is CapacityType.SPOT else Market.ON_DEMAND
    most: dict[AwsQuota | None, int] = {}
    for machine in machines:
        quota = quota_of_machine(machine.name, market)
        most[quota] = max(most.get(quota, 0), min(pool.max_nodes * machine.vcpu, pool.ceiling.vcpu))
    for quota, vcpu in most.items():
        yield quota, QuotaUse(pool.name, vcpu)


@dataclass(frozen=True)
class GpuQuotaNeed:
    """GPUs of one kind, such as nvidia-l4, that a platform may have at once, and the quota that they count against."""

    accelerator: str
    quota: CloudQuota
    gpus: int


KEY_ROLE = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
"""Role that a service agent needs on a key that it uses."""

_AGENTS = {
    "container": "service-{number}@container-engine-robot.iam.gserviceaccount.com",
    "compute": "service-{number}@compute-system.iam.gserviceaccount.com",
    "storage": "service-{number}@gs-project-accounts.iam.gserviceaccount.com",
    "pubsub": "service-{number}@gcp-sa-pubsub.iam.gserviceaccount.com",
    "cloudservices": "{number}@cloudservices.gserviceaccount.com",
}
"""Google's own accounts in a project, which use keys to encrypt their data.

https://docs.cloud.google.com/iam/docs/service-agents (read 2026-11-25)
"""


@dataclass(frozen=True)
class KeyNeed:
    """A key, and the Google account in the project that must be allowed to use it."""

    key: str
    agent: str
    """Address of the account, with {number} in place of the project's number."""
    purpose: str


@dataclass(frozen=True)
class HostGrantNeed:
    """A role in a host project."""

    role: str
    agent: str | None
    """Google account that needs it, as in KeyNeed. None: the deploying identity."""
    subnetwork: str | None
    """Subnetwork on which it is granted. None: the whole project."""


@dataclass(frozen=True)
class HostNeeds:
    """Requirements for the host project of a Shared VPC that has the stack's nodes."""

    project: str
    region: str
    apis: list[str]
    grants: list[HostGrantNeed]


@dataclass(frozen=True)
class ProjectNeeds:
    """Requirements for the project of a stack."""

    apis: list[ProjectNeed]
    roles: list[ProjectNeed]
    quotas: list[GpuQuotaNeed]
    keys: list[KeyNeed]
    host: HostNeeds | None
    """Requirements for the host project of a Shared VPC. None: the network is in the stack's own project."""


def project_needs(plan: Plan, settings: GkeSettings) -> ProjectNeeds:
    """Return the requirements for the project of a stack on GKE, in addition to what else runs there."""
    parts = parts_of(settings)
    gpus: dict[tuple[str, CloudQuota], int] = defaultdict(int)
    for pool in plan.pools:
        quota = facts_of("gke")[pool.capacity_type].quota
        if quota is not CloudQuota.RESERVATION:
            gpus[pool.accelerator, quota] += pool.max_gpus
    quotas = [GpuQuotaNeed(accelerator, quota, count) for (accelerator, quota), count in sorted(gpus.items())]
    return ProjectNeeds(apis_for(parts), roles_for(parts), quotas, key_needs(settings), host_needs(settings))


def host_needs(settings: GkeSettings) -> HostNeeds | None:
    """Return the requirements for another project that the stack's network is in, or None if the network is in the stack's own project."""
    network, subnetwork = settings.network.existing_network, settings.network.existing_subnetwork
    found = [name for each in (network, subnetwork) if each is not None and (name := full_name(each))]
    hosts = {name.project for name in found} - {settings.project}
    if subnetwork is None or not hosts or settings.cluster.existing is not None:
        return None
    needed, name = host_project(), subnetwork.rpartition("/")[2]
    grants = [HostGrantNeed(each.role, _AGENTS.get(each.to), name if each.scope == "subnetwork" else None) for each in needed.grants]
    return HostNeeds(min(hosts), settings.region, list(needed.apis), grants)


def key_needs(settings: GkeSettings) -> list[KeyNeed]:
    """Return which Google account must be allowed to use which key, each pair once.

    The stack grants none of it. Keys are often in another project, and the deploying identity does not need to administer them.
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
    """Return the parts of a stack for which a project has additional requirements."""
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
