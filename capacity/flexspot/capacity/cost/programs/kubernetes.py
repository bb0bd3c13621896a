"""Billing of Kubernetes objects: nodes of Karpenter's and GKE's pools, load balancers of services, volumes of claims."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from flexspot.capacity.catalog.capacity_type import CapacityType
from flexspot.capacity.catalog.machines import Vendor, machines_of
from flexspot.capacity.catalog.price_book import ServiceItem, machine_list, vcpu_of
from flexspot.capacity.cost.programs import aws, google
from flexspot.capacity.cost.programs.declared import NONE, Billed, Limit, MachinePart, UnitCounts, fixed, number_of, region_of
from flexspot.capacity.values.quantities import quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from flexspot.capacity.cost.programs.declared import Declared

_CLASSES = {"karpenter.k8s.aws": Vendor.AWS, "eks.amazonaws.com": Vendor.AWS}
_CAPACITY = {"spot": CapacityType.SPOT, "on-demand": CapacityType.ON_DEMAND, "reserved": CapacityType.RESERVED}
_ZONES = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")
_IMAGE_DISKS = {"al2023": (20,), "bottlerocket": (4, 20)}
"""GiB of the gp3 disks of a node whose class names none (karpenter.sh/docs/concepts/nodeclasses, spec.blockDeviceMappings)."""

_STORAGE_CLASSES = {
    "gp2": (Vendor.AWS, ServiceItem.GP2_STORAGE),
    "gp3": (Vendor.AWS, ServiceItem.GP3_STORAGE),
    "standard": (Vendor.GCP, ServiceItem.PD_STANDARD),
    "standard-rwo": (Vendor.GCP, ServiceItem.PD_BALANCED),
    "premium-rwo": (Vendor.GCP, ServiceItem.PD_SSD),
}
"""Classes that EKS and GKE provide; gp3 is the usual name for a class of that type."""

_GIB = 2**30


@dataclass(frozen=True)
class Requirement:
    """A requirement of a NodePool: label, operator and values."""

    key: str
    operator: str
    values: tuple[str, ...]

    def takes(self, value: str) -> bool:
        """Return whether a node may have the label's value. An unknown operator accepts any value, so that a bound stays one."""
        if self.operator in {"In", "NotIn"}:
            return (value in self.values) is (self.operator == "In")
        limit = number_of(self.values[0]) if self.values else None
        mine = number_of(value)
        if limit is None or mine is None:
            return True
        return mine > limit if self.operator == "Gt" else mine < limit if self.operator == "Lt" else True


def _requirements(found: Declared) -> list[Requirement]:
    parts = (found.part(each) for each in found.items("spec", "template", "spec", "requirements"))
    return [Requirement(part.text("key") or "", part.text("operator") or "", tuple(map(str, part.items("values")))) for part in parts]


def bytes_of(written: Any) -> Decimal | None:
    """Return a Kubernetes quantity in bytes, or in units without a suffix. None for text that is not a quantity."""
    found = quantity(written) if isinstance(written, str | int | float) else None
    return found if found is not None and found >= 0 else None


_TYPE = re.compile(r"([a-z]+)(\d+)([a-z0-9-]*)\.([a-z0-9-]+)")


def _labels(machine: str) -> dict[str, str]:
    """Return Karpenter's labels of an EC2 node, as far as the machine's name and the catalog determine them."""
    labels = {"node.kubernetes.io/instance-type": machine}
    named = _TYPE.fullmatch(machine)
    if named is not None:
        own = "karpenter.k8s.aws/instance-"
        labels |= {
            f"{own}category": named[1],
            f"{own}generation": named[2],
            f"{own}family": machine.partition(".")[0],
            f"{own}size": named[4],
            "kubernetes.io/arch": "arm64" if "g" in named[3].partition("-")[0] or machine.startswith("a1") else "amd64",
        }
        if (vcpu := vcpu_of(Vendor.AWS, machine)) is not None:
            labels[f"{own}cpu"] = str(vcpu)
        known = machines_of(Vendor.AWS).get(machine)
        if known is not None and known.gpu is not None:
            labels |= {f"{own}gpu-name": known.gpu.model.split("-")[0], f"{own}gpu-count": str(known.gpu.counts[-1])}
    return labels


_ASKED = re.compile(r"node\.kubernetes\.io/instance-type|karpenter\.k8s\.aws/instance-(?:category|generation|family|gpu-name)")


def _machines(requirements: list[Requirement]) -> tuple[str, ...]:
    """Return the EC2 machines that the requirements leave, named ones in their order. Empty if no requirement restricts them."""
    if not any(_ASKED.fullmatch(each.key) and each.operator in {"In", "Gt"} for each in requirements):
        return ()
    named = next((each.values for each in requirements if each.key == "node.kubernetes.io/instance-type" and each.operator == "In"), None)
    known = dict.fromkeys((*machines_of(Vendor.AWS), *machine_list(Vendor.AWS).machines))
    return tuple(machine for machine in (named or known) if _fits(_labels(machine), requirements))


def _fits(labels: dict[str, str], requirements: Iterable[Requirement]) -> bool:
    for each in requirements:
        own = labels.get(each.key)
        if own is None and each.key.startswith("karpenter.k8s.aws/instance-gpu") and each.operator in {"In", "Gt", "Exists"}:
            return False
        if own is not None and not each.takes(own):
            return False
    return True


def _size(machine: str, resource: str) -> Decimal | None:
    known = machines_of(Vendor.AWS).get(machine)
    if resource == "nodes":
        return Decimal(1)
    if resource == "cpu":
        vcpu = vcpu_of(Vendor.AWS, machine)
        return None if vcpu is None else Decimal(vcpu)
    if known is None:
        return NONE if resource == "nvidia.com/gpu" and machine[0] not in "pg" else None
    if resource == "memory":
        return Decimal(known.memory_mib) * 2**20
    return Decimal(known.gpu.counts[-1]) if resource == "nvidia.com/gpu" and known.gpu is not None else NONE


def _limits(found: Declared, machines: tuple[str, ...]) -> tuple[Limit, ...]:
    """Return the limits of a pool that bound each of its machines."""
    limits: list[Limit] = []
    written = found.get("spec", "limits")
    for resource, amount in written.items() if isinstance(written, dict) else ():
        most = bytes_of(amount)
        sizes = {machine: _size(machine, resource) for machine in machines}
        known = {machine: size for machine, size in sizes.items() if size}
        if most is not None and len(known) == len(machines):
            limits.append(Limit(resource, most, known))
    return tuple(limits)


def _karpenter_pool(billed: Billed, found: Declared, around: Around) -> None:
    requirements = _requirements(found)
    group = found.text("spec", "template", "spec", "nodeClassRef", "group") or "karpenter.k8s.aws"
    if group not in _CLASSES:
        billed.missing.append(f"the prices of nodes of {group}")
        return
    machines = _machines(requirements)
    wanted = next((each for each in requirements if each.key == "karpenter.sh/capacity-type"), None)
    # Karpenter's own default, where nothing is required.
    types = tuple(kind for name, kind in _CAPACITY.items() if (name == "on-demand" if wanted is None else wanted.takes(name)))
    limits = _limits(found, machines)
    billed.by_use.append("its nodes, which come and go with pods")
    if not machines or not types:
        billed.missing.append("which machines it may make")
        return
    if not limits:
        billed.missing.append("how many nodes it may make: no limit of it bounds each of its machines")
    always = found.number("spec", "replicas") or NONE
    most = max(min(limit.most // limit.of_a_node[each] for limit in limits) for each in machines) if limits else None
    nodes = UnitCounts(always, always, most)
    billed.parts.append(MachinePart(Vendor.AWS, machines, types, nodes, limits, managed=group == "eks.amazonaws.com"))
    if group == "karpenter.k8s.aws":
        _class_disks(billed, found, nodes, around)


def _class_disks(billed: Billed, found: Declared, nodes: UnitCounts, around: Around) -> None:
    name = found.text("spec", "template", "spec", "nodeClassRef", "name")
    made = next(
        (each for each in around.linked.values() if each.type.endswith(":EC2NodeClass") and each.text("metadata", "name") == name), None
    )
    if made is None:
        billed.missing.append("the disks of its nodes: their class is not in the program")
        return
    for each in made.items("spec", "blockDeviceMappings"):
        disk = dict(made.part(each).get("ebs") or {})
        size = bytes_of(disk.get("volumeSize"))
        aws.volume(
            billed, made.part({**disk, "volumeSize": None if size is None else str(size / _GIB)}), nodes, "the disk of a node", "gp2"
        )
    if not made.items("spec", "blockDeviceMappings"):
        alias = next(
            (made.part(each).text("alias") for each in made.items("spec", "amiSelectorTerms") if made.part(each).text("alias")), None
        )
        family = (alias or made.text("spec", "amiFamily") or "").partition("@")[0].lower()
        for size in _IMAGE_DISKS.get(family, ()):
            billed.service(Vendor.AWS, ServiceItem.GP3_STORAGE, nodes * size)
        if family not in _IMAGE_DISKS:
            billed.missing.append("the disks of its nodes, which the image chooses")


@dataclass(frozen=True)
class Around:
    """The other resources of a program, and the cloud of its clusters, if there is exactly one."""

    linked: dict[str, Declared]
    cloud: Vendor | None


def _service(billed: Billed, found: Declared, around: Around) -> None:
    if found.text("spec", "type") != "LoadBalancer":
        return
    if around.cloud is None:
        billed.missing.append("the price of its load balancer: on which cloud the cluster is, the program does not say")
        return
    billed.service(around.cloud, ServiceItem.LOAD_BALANCER)
    billed.by_use.append("traffic through it")


def _claim(billed: Billed, found: Declared, around: Around, number: Decimal = Decimal(1)) -> None:
    size, name = bytes_of(found.get("spec", "resources", "requests", "storage")), found.text("spec", "storageClassName")
    cloud, item = _STORAGE_CLASSES.get(name or "", (None, None))
    if size is None or cloud is None or item is None or around.cloud not in {None, cloud}:
        billed.missing.append(f"what a volume of the storage class {name or 'by default'} costs" if size is not None else "its size")
        return
    billed.service(cloud, item, fixed(number * size / _GIB))


def _stateful(billed: Billed, found: Declared, around: Around) -> None:
    replicas = found.number("spec", "replicas")
    for each in found.items("spec", "volumeClaimTemplates"):
        _claim(billed, found.part(each), around, Decimal(1) if replicas is None else replicas)


def _connected(billed: Billed, found: Declared, around: Around) -> None:
    """Add a Config Connector object, which is a resource of Google Cloud."""
    block = found.get("spec")
    spec = replace(found, inputs=dict(block) if isinstance(block, dict) else {}, outputs={})
    if found.type.endswith(":ContainerCluster"):
        google.cluster(billed, spec, {})
        return
    name = spec.text("clusterRef", "name")
    clusters = (
        each for each in around.linked.values() if each.type.endswith(":ContainerCluster") and each.text("metadata", "name") == name
    )
    cluster = next(clusters, None)
    place = None if cluster is None else cluster.get("spec")
    where = {} if not isinstance(place, dict) else {key: place[key] for key in ("location",) if key in place}
    google.node_pool(billed, replace(spec, inputs={**where, **spec.inputs}), {})


_BILLED: Mapping[str, Callable[[Billed, Declared, Around], None]] = {
    "kubernetes:karpenter.sh/v1:NodePool": _karpenter_pool,
    "kubernetes:karpenter.sh/v1beta1:NodePool": _karpenter_pool,
    "kubernetes:core/v1:Service": _service,
    "kubernetes:core/v1:PersistentVolumeClaim": _claim,
    "kubernetes:apps/v1:StatefulSet": _stateful,
    "kubernetes:container.cnrm.cloud.google.com/v1beta1:ContainerCluster": _connected,
    "kubernetes:container.cnrm.cloud.google.com/v1beta1:ContainerNodePool": _connected,
}


KINDS = tuple(_BILLED)
"""The kinds of which something is known to be billed."""


def bill(billed: Billed, found: Declared, around: Around) -> bool:
    """Adds what an object is billed for; False where its kind is not known to be billed."""
    if found.type not in _BILLED:
        return False
    _BILLED[found.type](billed, found, around)
    return True


def place_of(found: Declared) -> str | None:
    """Return the region in an object: from a pool's requirements, or a Config Connector resource."""
    if (said := region_of(found.get("spec", "location"))) is not None:
        return said
    places = {region_of(value) for each in _requirements(found) if each.key in _ZONES and each.operator == "In" for value in each.values}
    return places.pop() if len(places) == 1 else None


def cloud_of(found: Declared) -> Vendor | None:
    """Return the cloud of an object whose kind belongs to one."""
    if found.type.startswith("kubernetes:karpenter.sh/"):
        return _CLASSES.get(found.text("spec", "template", "spec", "nodeClassRef", "group") or "")
    return Vendor.GCP if ".cnrm.cloud.google.com/" in found.type else None
