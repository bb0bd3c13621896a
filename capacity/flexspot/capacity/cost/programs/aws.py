"""Billing of resources of the pulumi-aws package. Defaults are those of EC2's, EKS's and the provider's own reference."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal
from typing import TYPE_CHECKING

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.machines import Vendor
from flexspot.capacity.catalog.price_book import ServiceItem
from flexspot.capacity.cost.programs.declared import NONE, Billed, UnitCounts, fixed
from flexspot.capacity.settings.pools import GP3_IOPS, GP3_THROUGHPUT_MIB

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from flexspot.capacity.cost.programs.declared import Declared

Linked = dict[str, "Declared"]
"""The other resources of the program by URN."""

_NODE_GROUP_MACHINE = "t3.medium"
"""Default type of a node group (CreateNodegroup's instanceTypes)."""


def volume(billed: Billed, disk: Declared, nodes: UnitCounts, what: str, otherwise: str | None) -> None:
    """Add a disk for each of `nodes`; `otherwise` is its default type."""
    kind, size = disk.text("volumeType") or disk.text("type") or otherwise, disk.number("volumeSize") or disk.number("size")
    if kind is None or size is None:
        billed.missing.append(f"{what}: its {'type' if kind is None else 'size'} is not said")
        return
    if kind not in {"gp2", "gp3"}:
        billed.missing.append(f"{what}: the price of a disk of type {kind}")
        return
    billed.service(Vendor.AWS, ServiceItem.GP2_STORAGE if kind == "gp2" else ServiceItem.GP3_STORAGE, nodes * size)
    if kind == "gp3":
        for field, item, free in (
            ("iops", ServiceItem.GP3_IOPS, GP3_IOPS),
            ("throughput", ServiceItem.GP3_MIBPS, GP3_THROUGHPUT_MIB),
        ):
            more = (disk.number(field) or NONE) - free
            if more > 0:
                billed.service(Vendor.AWS, item, nodes * more)


def _instance(billed: Billed, found: Declared, _: Linked) -> None:
    market = found.text("instanceMarketOptions", "marketType") == "spot" or "spotInstanceRequest" in found.type
    _nodes(billed, found, (found.text("instanceType"),), CapacityType.SPOT if market else CapacityType.ON_DEMAND, fixed())
    if not found.items("rootBlockDevice"):
        billed.missing.append("its root disk, which the image chooses")
    for disk in found.items("rootBlockDevice"):
        volume(billed, found.part(disk), fixed(), "its root disk", None)
    for disk in found.items("ebsBlockDevices"):
        volume(billed, found.part(disk), fixed(), "a disk of it", "gp2")
    if found.true("associatePublicIpAddress"):
        billed.service(Vendor.AWS, ServiceItem.PUBLIC_ADDRESS)


def _nodes(billed: Billed, found: Declared, machines: tuple[str | None, ...], capacity_type: CapacityType, nodes: UnitCounts) -> None:
    known = tuple(each for each in machines if each)
    if found.text("tenancy") in {"dedicated", "host"} or found.text("placement", "tenancy") in {"dedicated", "host"}:
        billed.missing.append("the price of dedicated hardware")
    elif known:
        billed.machine(Vendor.AWS, known, capacity_type, nodes)
    else:
        billed.missing.append("its machine type is not known yet")


def _template(found: Declared, linked: Linked) -> Declared | None:
    """Return the launch template that a resource names, as it will be."""
    for name, urns in found.depends.items():
        if name in {"launchTemplate", "mixedInstancesPolicy", "launchConfiguration"}:
            for urn in urns:
                if urn in linked and linked[urn].type.rpartition(":")[2] in {"LaunchTemplate", "LaunchConfiguration"}:
                    return linked[urn]
    return None


def _template_disks(billed: Billed, template: Declared | None, nodes: UnitCounts, without: str) -> None:
    if template is None or not template.items("blockDeviceMappings"):
        billed.missing.append(without)
        return
    for each in template.items("blockDeviceMappings"):
        block = template.part(each)
        if block.items("ebs"):
            volume(billed, template.part(block.items("ebs")[0]), nodes, f"the disk {block.text('deviceName') or ''} of its template", "gp2")


def _node_group(billed: Billed, found: Declared, linked: Linked) -> None:
    template = _template(found, linked)
    least, desired, most = (found.number("scalingConfig", each) for each in ("minSize", "desiredSize", "maxSize"))
    if least is None or most is None:
        billed.missing.append("how many nodes it has is not known yet")
        return
    nodes = UnitCounts(least if desired is None else desired, least, most)
    types = tuple(each for each in found.items("instanceTypes") if isinstance(each, str))
    if not types and template is not None and (named := template.text("instanceType")):
        types = (named,)
    spot = found.text("capacityType") == "SPOT"
    _nodes(billed, found, types or (_NODE_GROUP_MACHINE,), CapacityType.SPOT if spot else CapacityType.ON_DEMAND, nodes)
    names_template = found.get("launchTemplate") is not None
    _template_disks(
        billed,
        template,
        nodes,
        "its disks, which its launch template does not specify" if names_template else "its disks, whose type EKS chooses",
    )


def _group(billed: Billed, found: Declared, linked: Linked) -> None:
    template = _template(found, linked)
    least, desired, most = (found.number(each) for each in ("minSize", "desiredCapacity", "maxSize"))
    if least is None or most is None:
        billed.missing.append("how many machines it has is not known yet")
        return
    nodes = UnitCounts(least if desired is None else desired, least, most)
    own = None if template is None else template.text("instanceType")
    mixed = found.items("mixedInstancesPolicy")
    if not mixed:
        spot = template is not None and template.text("instanceMarketOptions", "marketType") == "spot"
        _nodes(billed, found, (own,), CapacityType.SPOT if spot else CapacityType.ON_DEMAND, nodes)
    else:
        policy = found.part(mixed[0])
        overrides = (found.part(each).text("instanceType") for each in policy.items("launchTemplate", "overrides"))
        types = tuple(each for each in overrides if each) or (own,)
        on_demand = _on_demand_part(policy, nodes)
        _nodes(billed, found, types, CapacityType.ON_DEMAND, on_demand)
        rest = UnitCounts(*(whole - part for whole, part in zip(_three(nodes), _three(on_demand), strict=True)))
        if rest.most:
            _nodes(billed, found, types, CapacityType.SPOT, rest)
    _template_disks(billed, template, nodes, "its disks, which its launch template does not specify")


def _three(counts: UnitCounts) -> tuple[Decimal, Decimal, Decimal]:
    return counts.declared, counts.least, counts.most or NONE


def _on_demand_part(policy: Declared, nodes: UnitCounts) -> UnitCounts:
    """Return the on-demand machines of a mixed group: a base, and a percentage of the rest, rounded up to whole machines."""
    base = policy.number("instancesDistribution", "onDemandBaseCapacity") or NONE
    percent = policy.number("instancesDistribution", "onDemandPercentageAboveBaseCapacity")
    above = Decimal(100) if percent is None else percent

    def part(of: Decimal) -> Decimal:
        first = min(of, base)
        return first + ((of - first) * above / 100).to_integral_value(ROUND_CEILING)

    return UnitCounts(*map(part, _three(nodes)))


def _cluster(billed: Billed, found: Declared, _: Linked) -> None:
    billed.service(Vendor.AWS, ServiceItem.CLUSTER)
    if found.true("computeConfig", "enabled"):
        billed.by_use.append("nodes of EKS Auto Mode, with its fee on them")


def _balancer(billed: Billed, found: Declared, _: Linked) -> None:
    kind = found.text("loadBalancerType") or "application"
    items = {"application": ServiceItem.APPLICATION_LOAD_BALANCER, "network": ServiceItem.LOAD_BALANCER}
    if kind not in items:
        billed.missing.append(f"the price of a {kind} load balancer")
        return
    billed.service(Vendor.AWS, items[kind])
    billed.by_use.append("traffic through it")


def _endpoint(billed: Billed, found: Declared, _: Linked) -> None:
    kind = found.text("vpcEndpointType") or "Gateway"
    if kind == "Gateway":
        return
    zones = len(found.items("subnetIds"))
    if kind != "Interface" or not zones:
        billed.missing.append(f"the price of a {kind} endpoint" if kind != "Interface" else "in how many zones it is")
        return
    billed.service(Vendor.AWS, ServiceItem.INTERFACE_ENDPOINT, zones)
    billed.by_use.append("traffic through it")


def _lustre(billed: Billed, found: Declared, _: Linked) -> None:
    size, kind = found.number("storageCapacity"), found.text("deploymentType") or "SCRATCH_1"
    throughput = found.number("perUnitStorageThroughput")
    name = "lustre-scratch" if kind == "SCRATCH_2" else f"lustre-{throughput}" if kind == "PERSISTENT_2" else ""
    if size is None or name not in set(ServiceItem):
        billed.missing.append(f"the price of {kind}" if size is not None else "its size is not known yet")
    else:
        billed.service(Vendor.AWS, ServiceItem(name), size)


def _gateway(billed: Billed, _found: Declared, _: Linked) -> None:
    billed.service(Vendor.AWS, ServiceItem.NAT_GATEWAY)
    billed.by_use.append("traffic through it")


def _files(billed: Billed, found: Declared, _: Linked) -> None:
    billed.by_use.append("what it stores and moves")
    if provisioned := found.number("provisionedThroughputInMibps"):
        billed.service(Vendor.AWS, ServiceItem.EFS_MIBPS, provisioned)


def _of(item: ServiceItem) -> Callable[[Billed, Declared, Linked], None]:
    return lambda billed, _found, _linked: billed.service(Vendor.AWS, item)


BILLED: Mapping[str, Callable[[Billed, Declared, Linked], None]] = {
    "aws:ec2/instance:Instance": _instance,
    "aws:ec2/spotInstanceRequest:SpotInstanceRequest": _instance,
    "aws:ebs/volume:Volume": lambda billed, found, _linked: volume(billed, found, fixed(), "its disk", "gp2"),
    "aws:autoscaling/group:Group": _group,
    "aws:eks/cluster:Cluster": _cluster,
    "aws:eks/nodeGroup:NodeGroup": _node_group,
    "aws:ec2/natGateway:NatGateway": _gateway,
    "aws:ec2/eip:Eip": _of(ServiceItem.PUBLIC_ADDRESS),
    "aws:ec2/vpcEndpoint:VpcEndpoint": _endpoint,
    "aws:lb/loadBalancer:LoadBalancer": _balancer,
    "aws:alb/loadBalancer:LoadBalancer": _balancer,
    "aws:kms/key:Key": _of(ServiceItem.KMS_KEY),
    "aws:efs/fileSystem:FileSystem": _files,
    "aws:fsx/lustreFileSystem:LustreFileSystem": _lustre,
}
"""Functions that find the billed parts of a resource, by its type."""
