"""What an AWS account must allow before a platform has its nodes: the quotas that its ceilings count against."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from capacity.catalog.aws_quotas import AwsQuota, Market, address_quota, quota_of_machine
from capacity.catalog.capacity_type import CapacityType
from capacity.catalog.machines import Cloud, machines_of
from capacity.plan.own_machines import machines_of_pool
from capacity.settings.cluster import EksMode
from capacity.settings.network import Nat
from capacity.settings.pools import ReservationKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from capacity.catalog.machines import Machine
    from capacity.plan.model import Plan, PoolPlan
    from capacity.settings.platform import EksSettings
    from capacity.settings.pools import EksPool

_OTHER_WORK = "m7i.large"
"""Stands for the machines of other work, all of which count against the Standard quotas."""


@dataclass(frozen=True)
class QuotaUse:
    """Something that counts against a quota, and how much at most: vCPU or addresses."""

    what: str
    amount: int


@dataclass(frozen=True)
class QuotaNeed:
    """All that a platform counts against one quota. `quota` is None for machines of which no source says which quota counts them."""

    quota: AwsQuota | None
    uses: tuple[QuotaUse, ...]

    @property
    def amount(self) -> int:
        """What the quota must be at least, besides what else runs in the account."""
        return sum(each.amount for each in self.uses)

    @property
    def beyond_default(self) -> bool:
        """Whether an account that never asked for more has too little."""
        return self.quota is None or self.amount > self.quota.default


@dataclass(frozen=True)
class ServiceNeed:
    """A service of AWS in which whoever deploys makes, changes and deletes things, by the prefix of its actions, and for what."""

    name: str
    purpose: str


def deployer_services(settings: EksSettings) -> list[ServiceNeed]:
    """The services whose actions the role needs that runs `up`. Of single actions nothing is known: none was tried on an account."""
    cluster, storage = settings.cluster, settings.storage
    ours, karpenter = cluster.existing is None, cluster.mode is EksMode.STANDARD and cluster.existing_karpenter is None
    queues = any(team.work_queue for team in settings.teams)
    needs = [
        ServiceNeed("ec2", "the network, launch templates, placement groups; what a cluster that is there already stands in"),
        ServiceNeed("eks", "the cluster or what is read of it, system nodes, add-ons, access entries, Pod Identity"),
        ServiceNeed("iam", "roles and policies, iam:PassRole for them, iam:CreateServiceLinkedRole for the services that make their own"),
        ServiceNeed("s3", "buckets of checkpoints and datasets"),
    ]
    if ours:
        needs += [ServiceNeed("kms", "the key of the cluster's secrets"), ServiceNeed("logs", "the control plane's logs")]
    if karpenter:
        needs += [ServiceNeed("events", "rules by which Karpenter hears of interruptions")]
    if karpenter or queues:
        needs += [ServiceNeed("sqs", "Karpenter's queue of interruptions; teams' work queues")]
    if storage.has_efs:
        needs += [ServiceNeed("elasticfilesystem", "file systems of EFS")]
    if storage.has_lustre:
        needs += [ServiceNeed("fsx", "the file system of Lustre")]
    return needs


def quota_needs(plan: Plan, settings: EksSettings) -> list[QuotaNeed]:
    """The quotas that the ceilings of a platform on EKS come to, the largest need first; those of a ceiling of zero are left out."""
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
        # Karpenter tries Spot first and may have all of it on-demand when there is none.
        yield quota_of_machine(_OTHER_WORK, market), QuotaUse("other-work", other.max_vcpu if other.max_memory_gib else 0)
    if settings.cluster.existing is None:
        system = settings.cluster.system_pool
        machine = plan.own_machines.get(system.machine) or machines_of(Cloud.AWS)[system.machine]
        vcpu, quota = machine.vcpu, quota_of_machine(system.machine, Market.ON_DEMAND)
        yield quota, QuotaUse("system nodes", vcpu * system.max_nodes)
        # https://docs.aws.amazon.com/eks/latest/userguide/managed-node-update-behavior.html (read 2026-11-24): up to two more in each zone.
        # In Auto Mode the pool's ceiling holds those that replace others, too.
        replaced = 0 if settings.cluster.mode is EksMode.AUTO else vcpu * 2 * len(settings.zones)
        yield quota, QuotaUse("system nodes while they are replaced", replaced)
        if settings.network.existing_vpc is None:
            gateways = len(settings.zones) if settings.network.nat is Nat.PER_ZONE else 1
            yield address_quota(), QuotaUse("NAT gateways", gateways)


def _pool_uses(pool: PoolPlan, machines: tuple[Machine, ...], wanted: EksPool) -> Iterator[tuple[AwsQuota | None, QuotaUse]]:
    """What a pool counts against each quota of its machines: all of its nodes may be of the largest of them, up to the pool's ceiling."""
    if wanted.reservation is not None and wanted.reservation.kind is ReservationKind.CAPACITY_BLOCK:
        return
    market = Market.SPOT if pool.capacity_type is CapacityType.SPOT else Market.ON_DEMAND
    most: dict[AwsQuota | None, int] = {}
    for machine in machines:
        quota = quota_of_machine(machine.name, market)
        most[quota] = max(most.get(quota, 0), min(pool.max_nodes * machine.vcpu, pool.ceiling.vcpu))
    for quota, vcpu in most.items():
        yield quota, QuotaUse(pool.name, vcpu)
