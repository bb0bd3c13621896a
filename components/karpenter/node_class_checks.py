"""What Karpenter, EC2 or a policy would refuse of an EC2NodeClass, told before anything is registered."""

import re

from capacity.catalog.machines import Cloud, machines_of
from capacity.settings.pools import IOPS_PER_GIB, IOPS_PER_MIB, EksPool, ReservationKind
from capacity.values.names import AMI_ALIAS, CAPACITY_RESERVATION
from components.karpenter.node_class_args import NodeClass

# The name of a Kubernetes object: a DNS subdomain.
_OBJECT_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")

_ALIAS_LENGTH = 30
"""Karpenter's definition of EC2NodeClass takes no longer alias."""

_RESERVED_TAGS = ("eks:eks-cluster-name", "karpenter.sh/nodepool", "karpenter.sh/nodeclaim", "karpenter.k8s.aws/ec2nodeclass")
_RESERVED_PREFIXES = ("kubernetes.io/cluster", "aws:")


def check_node_class(name: str, node_class: NodeClass) -> None:
    """Raises ValueError for what cannot be, or what no policy lets through.

    The message begins with the rule's name where a policy has one, and names the input, its value, what is allowed and the next step.
    Values that may be Outputs are not looked at.
    """
    where = f"Ec2NodeClass {name}"
    if not _OBJECT_NAME.fullmatch(node_class.node_class):
        allowed = "it has lower-case letters, digits, inner hyphens and dots, 253 at most"
        raise ValueError(f"{where}: node_class is {node_class.node_class!r}; {allowed}; rename it")
    _check_image(where, node_class)
    _check_disk(where, node_class)
    _check_reservation(where, node_class)
    most = max(machine.efa_interfaces for machine in machines_of(Cloud.AWS).values())
    if not 0 <= node_class.efa_interfaces <= most:
        allowed = f"it is the number of the machine's network cards, {most} at most"
        raise ValueError(f"{where}: efa_interfaces is {node_class.efa_interfaces}; {allowed}; leave it out for none")
    for key in sorted(node_class.tags):
        if key in _RESERVED_TAGS or key.startswith(_RESERVED_PREFIXES) or not key:
            own = ", ".join((*_RESERVED_TAGS, *(f"{prefix}..." for prefix in _RESERVED_PREFIXES)))
            raise ValueError(f"{where}: tags has the key {key!r}; empty keys are refused, and Karpenter or AWS set {own}; leave it out")


def _check_image(where: str, node_class: NodeClass) -> None:
    ami = node_class.ami
    if not re.fullmatch(AMI_ALIAS, ami) or len(ami) > _ALIAS_LENGTH:
        allowed = f"it is al2023@RELEASE or bottlerocket@RELEASE, {_ALIAS_LENGTH} characters at most"
        raise ValueError(f"{where}: ami is {ami!r}; {allowed}; write one such as al2023@v20250807 or bottlerocket@1.40.0")
    if ami.endswith("@latest") and not node_class.allow_latest_ami:
        raise ValueError(
            f"ami-not-pinned: {where} has ami={ami}, with which every release of the image replaces the nodes; pin one, such as "
            "al2023@v20250807 or bottlerocket@1.40.0, or set allow_latest_ami"
        )


def _check_disk(where: str, node_class: NodeClass) -> None:
    values = {"disk_gib": node_class.disk_gib, "disk_iops": node_class.disk_iops, "disk_throughput_mib": node_class.disk_throughput_mib}
    for argument, value in values.items():
        least, most = EksPool.bounds(f"boot_{argument}")
        if not least <= value <= most:
            raise ValueError(f"{where}: {argument} is {value}; a gp3 volume takes {least} to {most}; use one of these")
    if node_class.disk_iops > IOPS_PER_GIB * node_class.disk_gib:
        allowed = f"{node_class.disk_gib} GiB take {IOPS_PER_GIB * node_class.disk_gib}"
        raise ValueError(f"{where}: disk_iops is {node_class.disk_iops}; {allowed}; lower it, or raise disk_gib")
    if IOPS_PER_MIB * node_class.disk_throughput_mib > node_class.disk_iops:
        allowed = f"disk_iops {node_class.disk_iops} take {node_class.disk_iops // IOPS_PER_MIB}"
        raise ValueError(f"{where}: disk_throughput_mib is {node_class.disk_throughput_mib}; {allowed}; lower it, or raise disk_iops")


def _check_reservation(where: str, node_class: NodeClass) -> None:
    kind, ids, tags = node_class.reservation_kind, node_class.reservation_ids, node_class.reservation_tags
    if kind not in set(ReservationKind):
        raise ValueError(f"{where}: reservation_kind is {kind}; kinds are {' and '.join(ReservationKind)}; use one of these")
    if ids and tags:
        raise ValueError(f"{where}: reservation_ids is {', '.join(ids)} beside reservation_tags; a pool has one of them; leave one out")
    for each in ids:
        if not re.fullmatch(CAPACITY_RESERVATION, each):
            raise ValueError(f"{where}: reservation_ids has {each!r}; an id looks like cr-0a1b2c3d4e5f60718; copy it from the reservation")
    for key, value in sorted(tags.items()):
        if not key or not value:
            raise ValueError(f"{where}: reservation_tags has {key!r}: {value!r}; neither may be empty; write '*' for any value")
    if kind != ReservationKind.CAPACITY_BLOCK:
        return
    if not ids and not tags:
        raise ValueError(f"{where}: reservation_kind is {kind}, and no reservation is named; give reservation_ids or reservation_tags")
    if len(set(node_class.zones)) != 1:
        found = ", ".join(node_class.zones) or "not given"
        raise ValueError(
            f"capacity-block-without-zone: {where} has zones {found}; a capacity block is in exactly one zone; name it alone, and for the "
            "NodePool as well"
        )
