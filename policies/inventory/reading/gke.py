"""GKE: node pools, alone or inside a cluster, and node auto-provisioning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capacity.catalog.accelerators import NVIDIA, TPU, of_gce_machine
from policies.inventory.gke_nodes import gpus_of, node_gpus_of, notice_of, offer_of
from policies.inventory.gpu_machines import is_gpu_machine
from policies.inventory.views import Autopilot, Bounds, Ceiling, GkeNodePool, GpuPool, NodeAutoProvisioning, Pool, Taint
from policies.values.field import UNKNOWN, Tri, all_of, any_of, negated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policies.inventory.reading.source import Source
    from policies.inventory.views import View
    from policies.values.field import Field

_CORES_AND_MEMORY = {"cpu": Ceiling.CORES, "memory": Ceiling.MEMORY}


def read(source: Source) -> Iterator[View]:
    """The node pools of a `gcp:container` NodePool or Cluster, each as capacity and as it is written, and who else makes nodes in it.

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
        # The pool that Autopilot begins with is GKE's, and the cluster says nothing of it.
        if autopilot is not True and source.fields.at("removeDefaultNodePool").equals("true") is not True:
            yield from pool(source, source.fields, "")
        yield from _auto_provisioning(source)
        if autopilot is not False:
            yield Autopilot(source.identity, autopilot, False)


def pool(source: Source, written: Field, where: str) -> Iterator[View]:
    """A pool as it is written at a path, as capacity and as it is."""
    node = written.at("nodeConfig")
    accelerators = node.at("guestAccelerators").parts().any(lambda each: negated(each.at("count").equals("0")))
    concerned = _makes_gpus(written)
    taints = node.at("taints").parts()
    bounds = _pool_bounds(written, where)
    machine = node.at("machineType").text()
    # Of machines with GPUs attached, and of one that nobody knows yet, the devices are NVIDIA's.
    kind = of_gce_machine(machine) if isinstance(machine, str) else NVIDIA
    spot = any_of([node.at("spot").equals("true"), node.at("preemptible").equals("true")])
    yield (Pool if concerned is False else GpuPool)(
        identity=source.identity,
        concerned=True if concerned is False else concerned,
        partial=False,
        evidence=f"{where}nodeConfig.guestAccelerators" if accelerators is True else f"{where}nodeConfig.machineType",
        taints=tuple(Taint(taint.at("key"), taint.at("value"), taint.at("effect")) for taint in taints.fields),
        taints_complete=taints.complete,
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
"""docs.cloud.google.com/kubernetes-engine/docs/how-to/gpus, "Create a GPU node pool" (2026-11-25). Nodes with TPUs get theirs always."""


def _has_plain_nodes(cluster: Field) -> bool:
    """Whether a pool of the cluster itself surely has no GPUs: the default pool, or another that is made with it."""
    pools = cluster.at("nodePools").parts().fields
    has_default = cluster.at("removeDefaultNodePool").equals("true") is False
    return any(_makes_gpus(each) is False for each in ((cluster, *pools) if has_default else pools))


def _makes_gpus(pool: Field) -> Tri:
    machine = pool.at("nodeConfig", "machineType").text()
    accelerators = pool.at("nodeConfig", "guestAccelerators").parts().any(lambda each: negated(each.at("count").equals("0")))
    return any_of([accelerators, UNKNOWN if machine is UNKNOWN else is_gpu_machine(machine or "")])


def _pool_bounds(pool: Field, where: str) -> Bounds:
    """One of the two autoscaling maxima, or the node count where the pool does not scale; the count defaults to one a zone."""
    autoscaling = pool.at("autoscaling")
    if not autoscaling.absent:
        names = ("maxNodeCount", "totalMaxNodeCount")
        return (tuple(Ceiling(f"{where}autoscaling.{name}", Ceiling.NODES, autoscaling.at(name).number()) for name in names),)
    counts = [name for name in ("nodeCount", "initialNodeCount") if not pool.at(name).absent]
    return tuple((Ceiling(f"{where}{name}", Ceiling.NODES, pool.at(name).number()),) for name in counts[:1])


def _auto_provisioning(source: Source) -> Iterator[NodeAutoProvisioning]:
    """Autopilot scales by its own rules and takes no resource limits, so it is left out."""
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
    # A type that nobody knows yet may be the one that seems to be missing.
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
