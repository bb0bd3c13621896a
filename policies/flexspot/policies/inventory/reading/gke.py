"""Readers of GKE node pools, alone or inside a cluster, and of node auto-provisioning."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.accelerators import NVIDIA, TPU, of_gce_machine
from flexspot.capacity.catalog.node_labels import (
    GKE_ACCELERATOR_LABEL,
    GKE_POOL_LABEL,
    GKE_SPOT_LABEL,
    GKE_TPU_LABEL,
    GKE_TPU_TOPOLOGY_LABEL,
    INSTANCE_TYPE_LABEL,
)
from flexspot.policies.inventory.gpu_machines import is_gpu_machine
from flexspot.policies.inventory.node_offer import CatalogMachine, NodeOffer, machines_of
from flexspot.policies.inventory.views import Autopilot, Bounds, Ceiling, GkeNodePool, GpuPool, NodeAutoProvisioning, Pool, View
from flexspot.policies.values.field import UNKNOWN, Field, Tri, Unknown, all_of, any_of, negated, product

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexspot.policies.inventory.reading.source import ObjectSource
    from flexspot.policies.inventory.views import Bounds


_CORES_AND_MEMORY = {"cpu": Ceiling.CORES, "memory": Ceiling.MEMORY}


def read(source: ObjectSource) -> Iterator[View]:
    """Yield the node pools of a `gcp:container` NodePool or Cluster, as capacity and as written, and other creators of nodes.

    A cluster has pools in `nodePools` and a default pool, which its own nodeConfig describes unless it is removed.
    """
    if source.family != "gcp:container":
        return
    if source.kind == "NodePool":
        yield from pool(source, source.fields, "")
    elif source.kind == "Cluster":
        for place, each in source.fields.at("nodePools").parts().named:
            yield from pool(source, each, f"nodePools[{place}].")
        autopilot = source.fields.at("enableAutopilot").equals("true")
        # GKE manages the first pool of Autopilot, and the cluster does not describe it.
        if autopilot is not True and source.fields.at("removeDefaultNodePool").equals("true") is not True:
            yield from pool(source, source.fields, "")
        yield from _auto_provisioning(source)
        if autopilot is not False:
            yield Autopilot(source.identity, autopilot, False)


def pool(source: ObjectSource, written: Field, where: str) -> Iterator[View]:
    """Yield a pool at a path, as capacity and as written."""
    node = written.at("nodeConfig")
    accelerators = node.at("guestAccelerators").parts().any(lambda each: negated(each.at("count").equals("0")))
    concerned = _makes_gpus(written)
    bounds = _pool_bounds(written, where)
    machine = node.at("machineType").text()
    # Attached GPUs and unknown machines count as NVIDIA's.
    kind = of_gce_machine(machine) if isinstance(machine, str) else NVIDIA
    spot = any_of([node.at("spot").equals("true"), node.at("preemptible").equals("true")])
    yield (Pool if concerned is False else GpuPool)(
        identity=source.identity,
        concerned=True if concerned is False else concerned,
        partial=False,
        evidence=f"{where}nodeConfig.guestAccelerators" if accelerators is True else f"{where}nodeConfig.machineType",
        taints=node.at("taints").parts(),
        taints_field=f"{where}nodeConfig.taints",
        effect_spelling="NO_SCHEDULE",
        bounds=bounds,
        offer=offer_of(written, spot),
        spot=spot,
        spot_field=f"{where}nodeConfig.spot",
        notice_seconds=notice_of(node),
        gpus=gpus_of(written, bounds),
        node_gpus=node_gpus_of(written),
        owner_labels=node.at("resourceLabels"),
        owner_field=f"{where}nodeConfig.resourceLabels",
        tainted_by=_TAINTED_BY,
        tainted_by_cloud=kind is TPU or (source.kind == "Cluster" and _has_plain_nodes(source.fields)),
        resources=(kind.resource,),
    )
    yield GkeNodePool(source.identity, True, False, where, written)


_TAINTED_BY = "GKE itself adds that taint only to a pool that is created when the cluster already has nodes without GPUs"
"""docs.cloud.google.com/kubernetes-engine/docs/how-to/gpus, "Create a GPU node pool" (2026-11-25). Nodes with TPUs always get theirs."""


def _has_plain_nodes(cluster: Field) -> bool:
    """Return whether a pool of the cluster itself certainly has no GPUs: the default pool, or another one created with it."""
    pools = cluster.at("nodePools").parts().fields
    has_default = cluster.at("removeDefaultNodePool").equals("true") is False
    return any(_makes_gpus(each) is False for each in ((cluster, *pools) if has_default else pools))


def _makes_gpus(pool: Field) -> Tri:
    machine = pool.at("nodeConfig", "machineType").text()
    accelerators = pool.at("nodeConfig", "guestAccelerators").parts().any(lambda each: negated(each.at("count").equals("0")))
    return any_of([accelerators, UNKNOWN if machine is UNKNOWN else is_gpu_machine(machine or "")])


def _pool_bounds(pool: Field, where: str) -> Bounds:
    """Return one of the two autoscaling maxima, or the node count if the pool does not scale. The count defaults to one per zone."""
    autoscaling = pool.at("autoscaling")
    if not autoscaling.absent:
        names = ("maxNodeCount", "totalMaxNodeCount")
        return (tuple(Ceiling(f"{where}autoscaling.{name}", Ceiling.NODES, autoscaling.at(name).number()) for name in names),)
    counts = [name for name in ("nodeCount", "initialNodeCount") if not pool.at(name).absent]
    return tuple((Ceiling(f"{where}{name}", Ceiling.NODES, pool.at(name).number()),) for name in counts[:1])


def _auto_provisioning(source: ObjectSource) -> Iterator[NodeAutoProvisioning]:
    """Yield node auto-provisioning. Autopilot scales by its own rules without resource limits, so it is left out."""
    settings = source.fields.at("clusterAutoscaling")
    on = all_of([settings.at("enabled").equals("true"), negated(source.fields.at("enableAutopilot").equals("true"))])
    if on is False:
        return
    limits = settings.at("resourceLimits").parts()
    maxima: dict[str, Ceiling] = {}
    for place, limit in limits.named:
        named = limit.at("resourceType").text()
        resource = named if isinstance(named, str) else f"[{place}]"
        unit = _CORES_AND_MEMORY.get(resource, Ceiling.GPUS)
        maxima[resource] = Ceiling(f"clusterAutoscaling.resourceLimits {resource}", unit, limit.at("maximum").number())
    # An entry of unknown type may be the one that seems to be missing.
    missing = None if limits.complete and not any(resource.startswith("[") for resource in maxima) else UNKNOWN
    for resource, unit in _CORES_AND_MEMORY.items():
        maxima.setdefault(resource, Ceiling(f"clusterAutoscaling.resourceLimits {resource}", unit, missing))
    if not limits.complete:
        maxima["GPUs"] = Ceiling("clusterAutoscaling.resourceLimits", Ceiling.GPUS, UNKNOWN)
    yield NodeAutoProvisioning(
        identity=source.identity,
        concerned=on,
        partial=False,
        evidence="clusterAutoscaling.enabled",
        bounds=tuple((ceiling,) for ceiling in maxima.values()),
        limits=settings.at("resourceLimits"),
    )


PROVISIONING_LABEL = "cloud.google.com/gke-provisioning"
FLEX_START_LABEL = "cloud.google.com/gke-flex-start"

# Prefixes of labels that GKE, the kubelet and Google's controllers set. A pool's own labels are listed.
_CLOUDS = (
    *("cloud.google.com/", "autoscaling.gke.io/", "gke.io/", "networking.gke.io/", "topology.gke.io/", "kubernetes.io/"),
    *("node.kubernetes.io/", "topology.kubernetes.io/", "beta.kubernetes.io/", "failure-domain.beta.kubernetes.io/"),
)
_CHOSEN = ("cloud.google.com/compute-class", "cloud.google.com/gke-queued")
"""Labels of the cloud that exist only if the pool writes them."""

_SHUTDOWN, _CRITICAL = Decimal(30), Decimal(15)
"""GKE's default seconds of a node's shutdown, and the part reserved for critical pods."""


def offer_of(pool: Field, spot: Tri) -> NodeOffer:
    """Return the labels that the pool's nodes have before they boot.

    Source: docs.cloud.google.com/kubernetes-engine, "Spot VMs", "GPUs", "Flex-start"; GoogleCloudPlatform/cluster-autoscaler.
    """
    node = pool.at("nodeConfig")
    labels, name = node.at("labels").parts(), pool.at("name")
    fixed = dict(labels.named)
    fixed[GKE_POOL_LABEL] = Field(UNKNOWN) if name.absent else name
    fixed[INSTANCE_TYPE_LABEL] = node.at("machineType")
    machine = machines_of("gcp").get(str(node.at("machineType").text()))
    accelerators = node.at("guestAccelerators")
    if has_tpus := is_gpu_machine(str(node.at("machineType").text()), (TPU,)):
        fixed[GKE_TPU_LABEL] = Field(machine.gpu if machine else UNKNOWN)
        fixed[GKE_TPU_TOPOLOGY_LABEL] = _tpu_topology(pool, machine)
    first = next(iter(accelerators.parts().fields), Field(None))
    if has_tpus:
        fixed[GKE_ACCELERATOR_LABEL] = Field(None)
    elif not accelerators.known or (first.absent and not machine and is_gpu_machine(str(node.at("machineType").text()))):
        fixed[GKE_ACCELERATOR_LABEL] = Field(UNKNOWN)
    else:
        fixed[GKE_ACCELERATOR_LABEL] = Field(machine.gpu or None) if first.absent and machine else first.at("type")
    flex = node.at("flexStart").equals("true")
    fixed[GKE_SPOT_LABEL] = _mark(spot)
    fixed[FLEX_START_LABEL] = _mark(flex)
    fixed[PROVISIONING_LABEL] = _provisioning(node, spot, flex)
    for key in _CHOSEN:
        fixed.setdefault(key, Field(None if labels.complete else UNKNOWN))
    return NodeOffer(fixed=fixed, open_prefixes=_CLOUDS, complete=labels.complete)


def _tpu_topology(pool: Field, machine: CatalogMachine | None) -> Field:
    """Return the topology of a slice over several hosts, or of a single host."""
    placement = pool.at("placementPolicy")
    written = placement.at("tpuTopology")
    if not written.absent or not placement.known:
        return written
    return Field(machine.tpu_topology if machine else UNKNOWN)


def _mark(answer: Tri) -> Field:
    return Field(UNKNOWN if answer is UNKNOWN else ("true" if answer else None))


def _provisioning(node: Field, spot: Tri, flex: Tri) -> Field:
    if node.at("preemptible").equals("true") is True:
        return Field("preemptible")
    if spot is True:
        return Field("spot")
    if flex is True:
        return Field("flex-start")
    return Field(UNKNOWN if UNKNOWN in (spot, flex) else "standard")


def notice_of(node: Field) -> Decimal | Unknown | None:
    """Return the seconds that pods have when a Spot node ends: the node's shutdown less the part for critical pods."""
    kubelet = node.at("kubeletConfig")
    shutdown, critical = (kubelet.at(f"shutdownGracePeriod{part}Seconds") for part in ("", "CriticalPods"))
    if not (shutdown.known and critical.known):
        return UNKNOWN
    whole, kept = shutdown.number(), critical.number()
    return (whole if isinstance(whole, Decimal) and whole else _SHUTDOWN) - (kept if isinstance(kept, Decimal) else _CRITICAL)


def node_gpus_of(pool: Field) -> Decimal | Unknown | None:
    """Return the GPUs of one node that pods can use. None if that is not certain, as where pods share a GPU or get slices."""
    node = pool.at("nodeConfig")
    accelerators = node.at("guestAccelerators").parts()
    if not (node.known and accelerators.complete):
        return UNKNOWN
    shared = [each for each in accelerators.fields if not (each.at("gpuSharingConfig").absent and each.at("gpuPartitionSize").absent)]
    machine = machines_of("gcp").get(str(node.at("machineType").text()))
    counts = [each.at("count").number() for each in accelerators.fields] or [
        Decimal(machine.gpu_counts[0]) if machine and machine.gpu else None
    ]
    if UNKNOWN in counts:
        return UNKNOWN
    if shared or None in counts:
        return None
    return sum((count for count in counts if isinstance(count, Decimal)), Decimal(0))


def gpus_of(pool: Field, bounds: Bounds) -> Decimal | Unknown | None:
    """Return the most GPUs of the pool that pods can use. None if that is not certain."""
    return product(_nodes(pool, bounds), node_gpus_of(pool))


def _nodes(pool: Field, bounds: Bounds) -> Decimal | Unknown | None:
    """Return the most nodes in all zones. The total maximum covers all zones; the other maximum, like a count, is per zone."""
    amounts = {ceiling.field.rpartition(".")[2]: ceiling.amount for group in bounds for ceiling in group}
    if (total := amounts.get("totalMaxNodeCount")) is not None:
        return total
    each_zone, zones = next((amount for amount in amounts.values() if amount is not None), None), pool.at("nodeLocations")
    if UNKNOWN in (each_zone, zones.value):
        return UNKNOWN
    # Without its own zones the pool has those of its cluster, which are not known here.
    count = len(zones.parts().fields)
    return each_zone * count if isinstance(each_zone, Decimal) and count else None
