"""Costs of a stack in addition to the machines of its pools: system nodes, disks, other nodes and services."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexspot.capacity.catalog.machines import BootDisk, Vendor, machines_of
from flexspot.capacity.catalog.price_book import ServiceItem
from flexspot.capacity.plan.billed import (
    AutoProvisionedNodes,
    BilledAmount,
    OtherNodes,
    PoolDisks,
    PoolShare,
    ServicePart,
    SpendingPlan,
    SystemNodes,
)
from flexspot.capacity.plan.system_room import system_room
from flexspot.capacity.settings.cluster import EksOtherWork, Support
from flexspot.capacity.settings.network import Nat
from flexspot.capacity.settings.platform import EksSettings, GkeSettings, OnUnknownPrices
from flexspot.capacity.settings.pools import (
    GP3_IOPS,
    GP3_THROUGHPUT_MIB,
    OTHER_WORK_VOLUME,
    EksPool,
    GkePool,
    Gp3Volume,
    default_volume,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.capacity.catalog.machines import Machine
    from flexspot.capacity.plan.model import ClusterLimits
    from flexspot.capacity.plan.resolve import ResolvedPool, ResolvedSettings
    from flexspot.capacity.settings.cluster import OtherWork, SystemPool
    from flexspot.capacity.settings.storage import Lustre

GKE_SYSTEM_DISK_GIB, EKS_SYSTEM_DISK_GIB = 100, 50
GKE_OTHER_DISK_GIB = 100
"""Disks of the nodes whose disks are not in the settings, in GiB."""

GKE_SYSTEM_SURGE = 1
"""Additional nodes that an upgrade of the controllers' pool creates at once on GKE."""

_BOTTLEROCKET_GIB = 4
"""Bottlerocket has its system on a separate volume, in addition to the one for images and pods."""

_LOCAL_SSD_GIB = 375
_NAT_NODES_BILLED = 32


def spending_plan(resolved: ResolvedSettings, limits: ClusterLimits | None) -> SpendingPlan:
    """Return the costs that follow from the settings and the cluster's limits.

    The local lab bills nothing, so its plan has only shares and a budget.
    """
    settings = resolved.settings
    gke = isinstance(settings, GkeSettings)
    cluster = settings.cluster if isinstance(settings, GkeSettings | EksSettings) else None
    # Nodes without GPUs count on a cluster that this stack creates. On Autopilot all nodes are GKE's.
    nodes = cluster is not None and cluster.existing is None and not resolved.autopilot
    return SpendingPlan(
        budget_usd=None if settings.budget is None else settings.budget.monthly_usd,
        disks=()
        if resolved.autopilot
        else tuple(PoolDisks(name, each, _surge(resolved, name)) for name in sorted(resolved.pools) if (each := _disks(resolved, name))),
        system_nodes=_system_nodes(resolved, cluster.system_pool) if cluster is not None and nodes else None,
        # On an existing EKS cluster the stack still manages Karpenter's pools. Node auto-provisioning belongs to the cluster's owner.
        other_work=_other_work(resolved, cluster.other_work) if cluster is not None and (nodes or not gke) else None,
        services=tuple(_services(resolved)),
        shares=tuple(_shares(resolved)),
        auto_mode=resolved.auto_mode,
        made_by_itself=_made_by_itself(resolved, limits),
        on_unknown_prices=OnUnknownPrices.WARN if settings.budget is None else settings.budget.on_unknown_prices,
    )


def _made_by_itself(resolved: ResolvedSettings, limits: ClusterLimits | None) -> AutoProvisionedNodes | None:
    """Return what node auto-provisioning may create instead of declared nodes: its limits are the ceilings of all pools together."""
    settings = resolved.settings
    if not isinstance(settings, GkeSettings) or limits is None:
        return None
    gpus: dict[str, int] = {}
    for name in sorted(resolved.pools) if settings.cluster.gpu_auto_provisioning else ():
        pool = resolved.pools[name]
        if gke_could_boot(resolved, pool.gpu.name):
            gpus[pool.gpu.name] = gpus.get(pool.gpu.name, 0) + pool.ceiling.gpus
    disk = (BilledAmount(ServiceItem.PD_BALANCED, GKE_OTHER_DISK_GIB),)
    return AutoProvisionedNodes(limits.vcpu, limits.memory_gib, tuple(sorted(gpus.items())), disk)


def gke_could_boot(resolved: ResolvedSettings, gpu: str) -> bool:
    """Return whether a machine with such GPUs boots from the disk of auto-provisioned nodes, which is not a Hyperdisk.

    Machines of B200, GB200, H200 and RTX PRO 6000 boot only from Hyperdisk (flexspot/capacity/catalog/gcp.yaml has the source), and the
    provider takes one kind of disk for all of them (cluster_autoscaling.auto_provisioning_defaults.disk_type).
    """
    known = (*machines_of(Vendor.GCP).values(), *resolved.machines.values())
    return any(each.boot_disk is not BootDisk.HYPERDISK_BALANCED for each in known if each.gpu is not None and each.gpu.name == gpu)


def _services(resolved: ResolvedSettings) -> Iterator[ServicePart]:
    settings = resolved.settings
    if isinstance(settings, GkeSettings):
        yield from _gke_services(resolved, settings)
    if isinstance(settings, EksSettings):
        yield from _eks_services(settings)


def _shares(resolved: ResolvedSettings) -> Iterator[PoolShare]:
    for team in sorted(resolved.settings.teams, key=lambda each: each.name):
        for pool in sorted({*team.shares, *team.unqueued}):
            if gpus := team.shares.get(pool, 0) + team.unqueued.get(pool, 0):
                yield PoolShare(team.name, pool, gpus)


def _disks(resolved: ResolvedSettings, name: str) -> tuple[BilledAmount, ...]:
    pool = resolved.pools[name]
    settings = pool.settings
    if isinstance(settings, GkePool):
        return _gke_disks(pool, settings)
    if isinstance(settings, EksPool):
        return _gp3(resolved, settings.volume(default_volume(pool.machines)))
    return ()


def _boot_disk(machine: Machine | None) -> ServiceItem:
    hyperdisk = machine is not None and machine.boot_disk is BootDisk.HYPERDISK_BALANCED
    return ServiceItem.HYPERDISK_BALANCED if hyperdisk else ServiceItem.PD_BALANCED


def _gke_disks(pool: ResolvedPool, settings: GkePool) -> tuple[BilledAmount, ...]:
    boot = BilledAmount(_boot_disk(pool.machines[0]), settings.boot_disk_gib)
    # The price of a machine includes its bundled SSDs.
    extra = settings.local_ssd_disks * _LOCAL_SSD_GIB
    return (boot, BilledAmount(ServiceItem.LOCAL_SSD, extra)) if extra else (boot,)


def _gp3(resolved: ResolvedSettings, volume: Gp3Volume) -> tuple[BilledAmount, ...]:
    bottlerocket = isinstance(resolved.settings, EksSettings) and (resolved.settings.cluster.ami or "").startswith("bottlerocket")
    charges = (
        BilledAmount(ServiceItem.GP3_STORAGE, volume.gib + (_BOTTLEROCKET_GIB if bottlerocket else 0)),
        BilledAmount(ServiceItem.GP3_IOPS, volume.iops - GP3_IOPS),
        BilledAmount(ServiceItem.GP3_MIBPS, volume.throughput_mib - GP3_THROUGHPUT_MIB),
    )
    return tuple(each for each in charges if each.amount)


def _system_nodes(resolved: ResolvedSettings, pool: SystemPool) -> SystemNodes:
    boot = BilledAmount(_boot_disk(resolved.machines.get(pool.machine)), GKE_SYSTEM_DISK_GIB)
    disk = _gp3(resolved, Gp3Volume(EKS_SYSTEM_DISK_GIB)) if _on_aws(resolved) else (boot,)
    # An upgrade of a managed node group creates up to two additional nodes for each zone. Nothing else raises it above its minimum.
    # https://docs.aws.amazon.com/eks/latest/userguide/managed-node-update-behavior.html
    surge = max(0, pool.min_nodes + 2 * _zones(resolved) - pool.max_nodes) if _on_aws(resolved) else GKE_SYSTEM_SURGE
    surge = 0 if resolved.auto_mode else surge
    return SystemNodes(pool.machine, _least_system_nodes(resolved, pool), pool.max_nodes, disk, surge)


def _zones(resolved: ResolvedSettings) -> int:
    return len(resolved.settings.zones) if isinstance(resolved.settings, EksSettings) else 0


def _surge(resolved: ResolvedSettings, name: str) -> int:
    """Return the additional nodes that an upgrade of a GKE pool creates at once."""
    settings = resolved.pools[name].settings
    return settings.surge.max_surge if isinstance(settings, GkePool) and settings.surge is not None else 0


def _least_system_nodes(resolved: ResolvedSettings, pool: SystemPool) -> int:
    """Return the number of nodes that always exist. In Auto Mode it is the smallest number on which the controllers fit, at least one."""
    machine = resolved.machines.get(pool.machine)
    if not resolved.auto_mode or machine is None or not isinstance(resolved.settings, EksSettings):
        return pool.min_nodes
    room = system_room(resolved.settings, resolved.words.catalog, machine)
    return next((nodes for nodes in range(1, pool.max_nodes) if not room.waiting(nodes)), pool.max_nodes)


def _other_work(resolved: ResolvedSettings, room: OtherWork) -> OtherNodes | None:
    if not room.max_vcpu or not room.max_memory_gib:
        return None
    aws = isinstance(room, EksOtherWork)
    disk = _gp3(resolved, room.volume(OTHER_WORK_VOLUME)) if aws else (BilledAmount(ServiceItem.PD_BALANCED, GKE_OTHER_DISK_GIB),)
    return OtherNodes(room.max_vcpu, room.max_memory_gib, disk)


def _on_aws(resolved: ResolvedSettings) -> bool:
    return resolved.words.catalog is Vendor.AWS


def _gke_services(resolved: ResolvedSettings, settings: GkeSettings) -> Iterator[ServicePart]:
    if settings.cluster.existing is not None:
        return
    yield ServicePart("control plane", ServiceItem.CLUSTER, 1, 1)
    if resolved.autopilot:
        yield ServicePart("what Autopilot bills for pods", ServiceItem.AUTOPILOT, 1, 1)
    if settings.network.existing_network is None:
        system = settings.cluster.system_pool
        # Each node of other work has at least one vCPU.
        other = 0 if resolved.autopilot else system.max_nodes + GKE_SYSTEM_SURGE + settings.cluster.other_work.max_vcpu
        nodes = sum(pool.max_nodes + _surge(resolved, pool.name) for pool in resolved.pools.values()) + other
        least = sum(pool.settings.min_nodes for pool in resolved.pools.values()) + (0 if resolved.autopilot else system.min_nodes)
        yield ServicePart("Cloud NAT, by node", ServiceItem.NAT_NODE, min(least, _NAT_NODES_BILLED), min(nodes, _NAT_NODES_BILLED))
        yield ServicePart("address of the NAT", ServiceItem.PUBLIC_ADDRESS, 1, 1)


def _eks_services(settings: EksSettings) -> Iterator[ServicePart]:
    zones = len(settings.zones)
    if settings.storage.has_efs and (mibps := settings.storage.efs.provisioned_mibps):
        # EFS does not bill the part of the provisioned throughput that stored data includes. No plan knows the amount of data.
        billed = mibps * len(settings.storage.in_efs)
        yield ServicePart("provisioned throughput of EFS, in MiB/s", ServiceItem.EFS_MIBPS, billed, billed)
    if settings.storage.has_lustre:
        gib = settings.storage.lustre.capacity_gib
        yield ServicePart("file system of Lustre, in GiB", _lustre(settings.storage.lustre), gib, gib)
    if settings.cluster.existing is None:
        yield ServicePart("control plane", ServiceItem.CLUSTER, 1, 1)
        if settings.cluster.support is Support.EXTENDED:
            yield ServicePart("extended support, once standard has ended", ServiceItem.EXTENDED_SUPPORT, 0, 1)
        yield ServicePart("key of the cluster's secrets", ServiceItem.KMS_KEY, 1, 1)
        if settings.network.existing_vpc is None:
            gateways = zones if settings.network.nat is Nat.PER_ZONE else 1
            yield ServicePart("NAT gateways", ServiceItem.NAT_GATEWAY, gateways, gateways)
            yield ServicePart("addresses of the NAT gateways", ServiceItem.PUBLIC_ADDRESS, gateways, gateways)
            if endpoints := zones * len(settings.interface_services):
                yield ServicePart("interface endpoints, by zone", ServiceItem.INTERFACE_ENDPOINT, endpoints, endpoints)


_LUSTRE = {125: ServiceItem.LUSTRE_125, 250: ServiceItem.LUSTRE_250, 500: ServiceItem.LUSTRE_500, 1000: ServiceItem.LUSTRE_1000}


def _lustre(wanted: Lustre) -> ServiceItem:
    mbps_per_tib = wanted.bought_mbps_per_tib
    return ServiceItem.LUSTRE_SCRATCH if mbps_per_tib is None else _LUSTRE[mbps_per_tib]
