"""Billing of resources of the pulumi-gcp package, and of Config Connector, whose fields are the same."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.machines import LOCAL_SSD_GB, Vendor, machines_of
from flexspot.capacity.catalog.price_book import ServiceItem
from flexspot.capacity.cost.programs.declared import NONE, Billed, UnitCounts, fixed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from flexspot.capacity.cost.programs.declared import Declared

Linked = dict[str, "Declared"]
"""The other resources of the program by URN."""

_NODE_MACHINE, _NODE_DISK_GB, _NODE_DISK = "e2-medium", 100, "pd-balanced"
"""Defaults of GKE's nodes (cloud.google.com/kubernetes-engine/docs/reference/rest, NodeConfig)."""

_ZONES_OF_A_REGION = 3
"""Default number of zones with nodes of a regional cluster (.../concepts/regional-clusters)."""

_NAT_NODES_COUNTED = 32
"""Most nodes that Cloud NAT bills (cloud.google.com/nat/pricing)."""

_DISKS = {
    "pd-standard": ServiceItem.PD_STANDARD,
    "pd-balanced": ServiceItem.PD_BALANCED,
    "pd-ssd": ServiceItem.PD_SSD,
    "local-ssd": ServiceItem.LOCAL_SSD,
    "scratch": ServiceItem.LOCAL_SSD,
}


def _disk(billed: Billed, kind: str | None, size: Decimal | None, nodes: UnitCounts, what: str) -> None:
    name = (kind or "pd-standard").rpartition("/")[2]
    if size is None:
        billed.missing.append(f"{what}: its size is not said")
    elif name in _DISKS:
        billed.service(Vendor.GCP, _DISKS[name], nodes * size)
    else:
        billed.missing.append(f"{what}: the price of a disk of type {name}")


def _machine(billed: Billed, found: Declared, machine: str | None, capacity_type: CapacityType, nodes: UnitCounts) -> None:
    name = (machine or "").rpartition("/")[2]
    if not name:
        billed.missing.append("its machine type is not known yet")
        return
    billed.machine(Vendor.GCP, (name,), capacity_type, nodes)
    known = machines_of(Vendor.GCP).get(name)
    for each in (*found.items("guestAccelerators"), *found.items("guestAccelerator")):
        gpu = found.part(each)
        if (known is None or known.gpu is None) and gpu.number("count") != NONE:
            billed.missing.append(f"the price of {gpu.text('type') or 'GPUs'} attached to a machine")


def _node_config(billed: Billed, node: Declared, nodes: UnitCounts, *, queued: bool = False) -> None:
    """Add nodes of a pool: machine, disk, and local SSD that the machine's price does not include."""
    flexible = queued or node.true("flexStart")
    spot = node.true("spot") or node.true("preemptible")
    reserved = node.text("reservationAffinity", "consumeReservationType") == "SPECIFIC_RESERVATION"
    kind = CapacityType.FLEX_START if flexible else CapacityType.SPOT if spot else CapacityType.RESERVED if reserved else None
    machine = node.text("machineType") or _NODE_MACHINE
    _machine(billed, node, machine, kind or CapacityType.ON_DEMAND, nodes)
    size = node.number("diskSizeGb") or node.number("bootDisk", "sizeGb") or Decimal(_NODE_DISK_GB)
    _disk(billed, node.text("diskType") or node.text("bootDisk", "diskType") or _NODE_DISK, size, nodes, "the disk of a node")
    known = machines_of(Vendor.GCP).get(machine)
    if known is None or not known.local_ssd_gb:
        for block in ("ephemeralStorageLocalSsdConfig", "localNvmeSsdBlockConfig"):
            if disks := node.number(block, "localSsdCount"):
                billed.service(Vendor.GCP, ServiceItem.LOCAL_SSD, nodes * disks * LOCAL_SSD_GB)


def _zones(pool: Declared, cluster: Declared | None) -> int:
    """Return the number of zones in which a pool has nodes."""
    for each in (pool, cluster):
        if each is not None and (zones := each.items("nodeLocations")):
            # In a zonal cluster these are additional zones. GKE's answer includes the cluster's own zone, a declaration does not.
            own = (each.text("location") or "").rpartition("/")[2]
            return len(set(zones) | ({own} if each is cluster and own.count("-") > 1 else set()))
    place = pool.text("location") or (None if cluster is None else cluster.text("location"))
    return 1 if place is not None and place.rpartition("/")[2].count("-") > 1 else _ZONES_OF_A_REGION


def _pool_nodes(billed: Billed, pool: Declared, zones: int) -> UnitCounts | None:
    """Return the number of nodes of a pool in all its zones."""
    first = pool.number("initialNodeCount")
    count = pool.number("nodeCount")
    if not pool.items("autoscaling"):
        number = first if count is None else count
        if number is None:
            billed.missing.append("how many nodes it has is not known yet")
            return None
        return fixed(number * zones)
    scaling = pool.part(pool.items("autoscaling")[0])
    most, least = scaling.number("totalMaxNodeCount"), scaling.number("totalMinNodeCount") or NONE
    if not most:
        most, least = scaling.number("maxNodeCount"), (scaling.number("minNodeCount") or NONE) * zones
        most = None if most is None else most * zones
    if most is None:
        billed.missing.append("how many nodes it may have is not known yet")
        return None
    initial = first if count is None else count
    return UnitCounts(least if initial is None else min(max(initial * zones, least), most), least, most)


def _cluster_of(pool: Declared, linked: Linked) -> Declared | None:
    return next((linked[urn] for urn in pool.depends.get("cluster", ()) if urn in linked and linked[urn].type.endswith(":Cluster")), None)


def node_pool(billed: Billed, pool: Declared, linked: Linked) -> None:
    """Add a GKE node pool."""
    _pool(billed, pool, pool, _zones(pool, _cluster_of(pool, linked)))


def _pool(billed: Billed, pool: Declared, of: Declared, zones: int) -> None:
    nodes = _pool_nodes(billed, pool, zones)
    if nodes is None:
        return
    blocks = pool.items("nodeConfig")
    queued = pool.true("queuedProvisioning", "enabled")
    _node_config(billed, of.part(blocks[0] if blocks else {}), nodes, queued=queued)


def cluster(billed: Billed, found: Declared, _: Linked) -> None:
    """Add a cluster: its fee, and the pools in its own declaration."""
    billed.service(Vendor.GCP, ServiceItem.CLUSTER)
    if found.true("enableAutopilot"):
        billed.by_use.append("pods of Autopilot")
        return
    pools = found.items("nodePools")
    for block in pools:
        _pool(billed, found.part({"location": found.text("location"), **block}), found, _zones(found, None))
    first = found.number("initialNodeCount")
    if not pools and not found.true("removeDefaultNodePool") and first is not None:
        blocks = found.items("nodeConfig")
        _node_config(billed, found.part(blocks[0] if blocks else {}), fixed(first * _zones(found, None)))
    if found.true("clusterAutoscaling", "enabled"):
        billed.by_use.append("nodes that auto-provisioning makes")


def _instance_parts(billed: Billed, found: Declared, nodes: UnitCounts) -> None:
    spot = found.text("scheduling", "provisioningModel") == "SPOT" or found.true("scheduling", "preemptible")
    _machine(billed, found, found.text("machineType"), CapacityType.SPOT if spot else CapacityType.ON_DEMAND, nodes)
    for each in found.items("networkInterfaces"):
        if found.part(each).items("accessConfigs"):
            billed.service(Vendor.GCP, ServiceItem.PUBLIC_ADDRESS, nodes)


def _instance(billed: Billed, found: Declared, _: Linked) -> None:
    _instance_parts(billed, found, fixed())
    if found.text("bootDisk", "source") is None:
        made = found.part((found.items("bootDisk") or [{}])[0])
        _disk(
            billed,
            made.text("initializeParams", "type"),
            made.number("initializeParams", "size"),
            fixed(),
            "its boot disk, which the image chooses" if made.number("initializeParams", "size") is None else "its boot disk",
        )
    for each in found.items("scratchDisks"):
        _disk(billed, "local-ssd", found.part(each).number("size") or Decimal(LOCAL_SSD_GB), fixed(), "a scratch disk")


def _group(billed: Billed, found: Declared, linked: Linked) -> None:
    template = next(
        (linked[urn] for urn in found.depends.get("versions", ()) if urn in linked and "nstanceTemplate" in linked[urn].type), None
    )
    scaler = next((each for each in linked.values() if "utoscaler" in each.type and found.urn in each.depends.get("target", ())), None)
    size = found.number("targetSize")
    if scaler is not None:
        least, most = (scaler.number("autoscalingPolicy", each) for each in ("minReplicas", "maxReplicas"))
        nodes = None if least is None or most is None else UnitCounts(least, least, most)
    else:
        nodes = None if size is None else fixed(size)
    if template is None or nodes is None:
        billed.missing.append("its template is not in the program" if template is None else "how many machines it has")
        return
    _instance_parts(billed, template, nodes)
    for each in template.items("disks"):
        disk = template.part(each)
        kind = disk.text("diskType") or ("local-ssd" if disk.text("type") == "SCRATCH" else None)
        _disk(billed, kind, disk.number("diskSizeGb"), nodes, "a disk of its template")


def _volume(billed: Billed, found: Declared, _: Linked) -> None:
    _disk(billed, found.text("type"), found.number("size"), fixed(), "its disk")


def _address(billed: Billed, found: Declared, _: Linked) -> None:
    if found.text("addressType") != "INTERNAL":
        billed.service(Vendor.GCP, ServiceItem.PUBLIC_ADDRESS)


def _rule(billed: Billed, _found: Declared, _: Linked) -> None:
    billed.service(Vendor.GCP, ServiceItem.LOAD_BALANCER)
    billed.by_use.append("traffic through it")


def _nat(billed: Billed, _found: Declared, _: Linked) -> None:
    """Add a NAT. Each node that uses it is billed, up to a maximum. The program does not declare their number."""
    billed.service(Vendor.GCP, ServiceItem.NAT_NODE, UnitCounts(NONE, NONE, Decimal(_NAT_NODES_COUNTED)))
    billed.by_use.append("nodes that go out by it, and traffic through it")


BILLED: Mapping[str, Callable[[Billed, Declared, Linked], None]] = {
    "gcp:compute/instance:Instance": _instance,
    "gcp:compute/disk:Disk": _volume,
    "gcp:compute/instanceGroupManager:InstanceGroupManager": _group,
    "gcp:compute/regionInstanceGroupManager:RegionInstanceGroupManager": _group,
    "gcp:container/cluster:Cluster": cluster,
    "gcp:container/nodePool:NodePool": node_pool,
    "gcp:compute/routerNat:RouterNat": _nat,
    "gcp:compute/address:Address": _address,
    "gcp:compute/globalAddress:GlobalAddress": _address,
    "gcp:compute/forwardingRule:ForwardingRule": _rule,
    "gcp:compute/globalForwardingRule:GlobalForwardingRule": _rule,
}
"""Functions that find the billed parts of a resource, by its type."""
